"""When to tell people, and what: rules, and the trouble that an incident is the record of. Pure.

Signals that belong together (a rule, a kind, a queue and job type) are one trouble: it opens with the first, goes on
with the others, and is over when it has recovered. It is told of when it opens, then at most once per `throttle` and
only where there is more to tell, and once more when it is over, if its beginning was told.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, assert_never, get_args

import msgspec

from foliot.domain.duration import DAY, MINUTE, SECOND, Micros
from foliot.domain.job import AttemptStatus, Ended, Job, Lane, Record

Kind = Literal[
    "failed",
    "exhausted",
    "late",
    "overrun",
    "missed",
    "queue_age",
    "no_worker",
    "worker_lost",
    "node_lost",
    "store",
    "slo",
    "webhook_disabled",
]
NoticeKind = Literal["opened", "ongoing", "recovered"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
TIMED: Final[frozenset[Kind]] = frozenset({"late", "overrun", "queue_age", "no_worker"})  # these need `after`
CONDITIONS: Final[frozenset[Kind]] = TIMED | {"store", "slo"}  # over when they no longer hold

JOB_RULE, QUEUE_RULE = "job:", "queue:"
THROTTLE = 5 * MINUTE
CALM = MINUTE  # a condition that comes and goes is one trouble
QUIET = DAY  # without news, and with nothing that would tell its end, a trouble is over
SAMPLES = 10
NOTICES_KEPT = 20
TRIES = 5
FIRST_PAUSE = 10 * SECOND


class Match(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which jobs; None matches all."""

    queue: str | None = None
    job_type: str | None = None
    schedule_id: str | None = None
    tag: str | None = None

    def takes_lane(self, lane: Lane) -> bool:
        return self.queue in (None, lane.queue) and self.job_type in (None, lane.job_type)

    def takes(self, job: Job) -> bool:
        return (
            self.takes_lane(job.lane)
            and self.schedule_id in (None, job.schedule_id)
            and (self.tag is None or self.tag in job.tags)
        )


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """When to tell whom. `after` is how late, how long or how old, for the kinds of `TIMED`. Rules that users define
    have plain names; what a queue or a job says itself has a name with a colon."""

    namespace: str
    name: str
    on: tuple[Kind, ...]
    match: Match = Match()
    after: Micros | None = None
    channels: tuple[str, ...] = ()
    throttle: Micros = THROTTLE

    def tells(self, kind: Kind, namespace: str | None) -> bool:
        """Whether it is about this kind there; what has no namespace is everybody's."""
        return kind in self.on and namespace in (None, self.namespace)


class Notify(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a queue says of its jobs, or a job of itself, instead of a rule; a job that has one is left out of its
    queue's."""

    on: tuple[Kind, ...] = ()
    late_after: Micros | None = None
    channels: tuple[str, ...] = ()

    def as_rule(self, namespace: str, queue: str | None = None) -> Rule:
        """Of a queue, or of all jobs that name the same channels."""
        name = f"{JOB_RULE}{','.join(self.channels)}" if queue is None else f"{QUEUE_RULE}{queue}"
        return Rule(
            namespace=namespace,
            name=name,
            on=self.on,
            match=Match(queue=queue),
            after=self.late_after,
            channels=self.channels,
        )


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a rule is to be told of. `count` is how often it was seen since the signal before; of a condition,
    which holds on, how much of it there is now."""

    kind: Kind
    group: str
    time: Micros
    count: int = 1
    jobs: Sequence[str] = ()
    detail: str = ""

    @property
    def subject(self) -> str:
        return f"{self.kind}:{self.group}"


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What was told, when, and by which channels; of those that it did not go out by, why."""

    kind: NoticeKind
    time: Micros
    count: int
    sent: tuple[str, ...] = ()
    failed: Mapping[str, str] = {}


class Trouble(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An incident's body. `next` is when a notice is due, None for never. `under_way` is the notice that has not gone
    out by all channels yet: by `sent` it has, `failing` are those that are tried again, `tries` times so far."""

    kind: Kind
    group: str
    first: Micros
    last: Micros
    count: int = 1
    jobs: tuple[str, ...] = ()
    detail: str = ""
    channels: tuple[str, ...] = ()
    throttle: Micros = THROTTLE
    mended: Micros | None = None  # since when it looks as if it were over
    over: Micros | None = None
    ended_by: str = ""  # who says so; "" where it has recovered by itself
    quiet: bool = False  # over without a word
    acknowledged: Micros | None = None
    acknowledged_by: str | None = None
    silenced: Micros | None = None
    told: Micros | None = None
    told_count: int = 0
    recovery_told: bool = False
    next: Micros | None = None
    under_way: NoticeKind | None = None
    sent: tuple[str, ...] = ()
    failing: Mapping[str, str] = {}
    tries: int = 0
    notices: tuple[Notice, ...] = ()


def fold(trouble: Trouble | None, signal: Signal, rule: Rule) -> Trouble:
    """The trouble with one more signal; a new one where there is none yet."""
    if trouble is None:
        opened = Trouble(
            kind=signal.kind,
            group=signal.group,
            first=signal.time,
            last=signal.time,
            count=signal.count,
            jobs=tuple(signal.jobs[:SAMPLES]),
            detail=signal.detail,
            channels=rule.channels,
            throttle=rule.throttle,
        )
        return planned(opened)
    known = [job for job in signal.jobs if job not in trouble.jobs]
    count = max(trouble.count, signal.count) if signal.kind in CONDITIONS else trouble.count + signal.count
    return planned(
        msgspec.structs.replace(
            trouble,
            last=max(trouble.last, signal.time),
            mended=None,
            count=count,
            jobs=(*trouble.jobs, *known)[:SAMPLES],
            detail=signal.detail or trouble.detail,
            channels=rule.channels,
            throttle=rule.throttle,
        )
    )


def mend(trouble: Trouble, now: Micros) -> Trouble:
    """It looks as if it were over: the condition no longer holds, a later job has completed, a later run has started.
    It is, once that has lasted."""
    return trouble if trouble.mended is not None else msgspec.structs.replace(trouble, mended=now)


def is_over(trouble: Trouble, now: Micros) -> bool:
    """Whether it was mended for so long that it would not come and go."""
    if trouble.mended is None:
        return False
    if trouble.kind in CONDITIONS:
        return now - trouble.mended >= min(trouble.throttle, CALM)
    return now - trouble.last >= trouble.throttle


def is_forgotten(trouble: Trouble, now: Micros) -> bool:
    """Whether nothing was heard of it for so long that it is over, without a word."""
    return now - max(trouble.last, trouble.silenced or 0) >= QUIET


def end(trouble: Trouble, now: Micros, *, by: str = "", quiet: bool = False) -> Trouble:
    """It is over: it has recovered, or somebody says so; `quiet` where nobody needs to hear of it."""
    return planned(msgspec.structs.replace(trouble, over=now, ended_by=by, quiet=quiet))


def acknowledge(trouble: Trouble, by: str, now: Micros) -> Trouble:
    """Somebody looks after it: nothing more is told but its end."""
    return planned(msgspec.structs.replace(trouble, acknowledged=now, acknowledged_by=by))


def silence(trouble: Trouble, until: Micros) -> Trouble:
    """Nothing is told until then."""
    return planned(msgspec.structs.replace(trouble, silenced=until))


def notice_of(trouble: Trouble) -> NoticeKind | None:
    """Which notice is outstanding, whenever it is due."""
    begun = trouble.told is not None or bool(trouble.sent)
    if not trouble.channels or trouble.quiet:
        return None
    if trouble.over is not None and (begun or trouble.kind in CONDITIONS):
        return "recovered" if begun and not trouble.recovery_told else None
    if trouble.acknowledged is not None:
        return None
    if trouble.told is None:  # also of a job that failed, though the next one has completed meanwhile
        return "opened"
    return "ongoing" if trouble.count > trouble.told_count else None


def planned(trouble: Trouble) -> Trouble:
    """With the time at which its next notice is due. One that is tried again keeps its time, unless another notice has
    taken its place."""
    notice = notice_of(trouble)
    if notice is not None and notice == trouble.under_way and trouble.next is not None:
        return msgspec.structs.replace(trouble, next=max(trouble.next, trouble.silenced or 0))
    match notice:
        case None:
            at = None
        case "opened":
            at = trouble.first
        case "ongoing":
            at = (trouble.told or 0) + trouble.throttle
        case "recovered":
            at = trouble.over
        case _:
            assert_never(notice)
    if at is not None and trouble.silenced is not None:
        at = max(at, trouble.silenced)
    return msgspec.structs.replace(trouble, next=at)


def to_send(trouble: Trouble, now: Micros) -> tuple[NoticeKind, tuple[str, ...]] | None:
    """What is to go out now, and by which channels; None where nothing is (any more)."""
    notice = notice_of(trouble)
    if notice is None or trouble.next is None or trouble.next > now:
        return None
    done = trouble.sent if notice == trouble.under_way else ()
    return notice, tuple(channel for channel in trouble.channels if channel not in done)


def after_sending(
    trouble: Trouble, notice: NoticeKind, count: int, now: Micros, *, sent: Sequence[str], failed: Mapping[str, str]
) -> Trouble:
    """What came of it; `count` is the one that was told. What did not go out is tried again a few times, each time
    after a longer pause."""
    same = notice == trouble.under_way
    done = (*trouble.sent, *sent) if same else tuple(sent)
    tries = trouble.tries + 1 if same else 1
    if failed and tries < TRIES:
        again = now + FIRST_PAUSE * 3 ** (tries - 1)
        return planned(
            msgspec.structs.replace(trouble, under_way=notice, sent=done, failing=dict(failed), tries=tries, next=again)
        )
    told = Notice(kind=notice, time=now, count=count, sent=done, failed=dict(failed))
    return planned(
        msgspec.structs.replace(
            trouble,
            told=now,
            told_count=count,
            recovery_told=notice == "recovered",
            under_way=None,
            sent=(),
            failing={},
            tries=0,
            notices=(*trouble.notices, told)[-NOTICES_KEPT:],
        )
    )


def is_exhausted(record: Record) -> bool:
    """Whether a failed job would have been tried again, had it a try left: its last attempt failed in a way after which
    another one follows."""
    row = record.row
    last = row.last if isinstance(row, Ended) else record.last
    if last is None:
        return False
    if last.status is AttemptStatus.LOST:
        return record.job.retry.on_lost == "retry"
    return last.status in (AttemptStatus.RETRIABLE_FAILURE, AttemptStatus.TIMED_OUT)
