"""When people are told, and of what."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.alert import (
    CALM,
    CONDITIONS,
    FIRST_PAUSE,
    KINDS,
    NOTICES_KEPT,
    QUIET,
    SAMPLES,
    THROTTLE,
    TRIES,
    Kind,
    Match,
    Notify,
    Rule,
    Signal,
    Trouble,
    acknowledge,
    after_sending,
    end,
    fold,
    is_exhausted,
    is_forgotten,
    is_over,
    mend,
    notice_of,
    silence,
    to_send,
)
from foliot.domain.duration import DAY, HOUR, MINUTE, SECOND
from foliot.domain.ids import JobKey, WorkerKey
from foliot.domain.job import Attempt, AttemptStatus, Ended, Job, Lane, Ready, Record, State
from foliot.domain.retry import Retry

NOW = 1_800_000_000 * SECOND
RULE = Rule(namespace="default", name="r", on=("failed", "late"), channels=("ops",))
LANE = Lane("default", "mail", "send")


def signal(time: int = NOW, kind: Kind = "failed", count: int = 1, jobs: tuple[str, ...] = ("a",)) -> Signal:
    return Signal(kind=kind, group="mail/send", time=time, count=count, jobs=jobs, detail="d")


def opened(kind: Kind = "failed", rule: Rule = RULE) -> Trouble:
    return fold(None, signal(kind=kind), rule)


def told(trouble: Trouble, now: int = NOW) -> Trouble:
    due = to_send(trouble, now)
    assert due is not None
    return after_sending(trouble, due[0], trouble.count, now, sent=due[1], failed={})


def job(**fields: object) -> Job:
    return Job(id=JobKey(1), name=None, lane=LANE, lane_id=1, due=NOW, created=NOW, **fields)  # type: ignore[arg-type]


def test_a_trouble_is_told_at_once_when_it_opens() -> None:
    trouble = opened()
    assert signal().subject == "failed:mail/send"
    assert trouble.next == NOW
    assert to_send(trouble, NOW) == ("opened", ("ops",))
    assert to_send(trouble, NOW - 1) is None


def test_once_told_nothing_more_is_due_until_there_is_more_to_tell() -> None:
    trouble = told(opened())
    assert (trouble.next, trouble.told, trouble.told_count) == (None, NOW, 1)
    assert to_send(trouble, NOW + HOUR) is None


def test_what_goes_on_is_told_once_per_throttle_with_its_count() -> None:
    trouble = told(opened())
    for second in range(1, 1000):
        trouble = fold(trouble, signal(NOW + second, jobs=(f"j{second}",)), RULE)
    assert trouble.count == 1000
    assert trouble.next == NOW + THROTTLE
    assert to_send(trouble, NOW + THROTTLE) == ("ongoing", ("ops",))
    assert trouble.jobs == ("a", *(f"j{n}" for n in range(1, SAMPLES)))
    again = told(trouble, NOW + THROTTLE)
    assert again.next is None
    assert [notice.count for notice in again.notices] == [1, 1000]


def test_a_condition_counts_how_much_of_it_there_was_at_most() -> None:
    trouble = fold(None, signal(kind="late", count=3), RULE)
    for count in (5, 2, 4):
        trouble = fold(trouble, signal(kind="late", count=count), RULE)
    assert trouble.count == 5


def test_its_end_is_told_where_its_beginning_was() -> None:
    trouble = end(told(opened("late")), NOW + MINUTE)
    assert to_send(trouble, NOW + MINUTE) == ("recovered", ("ops",))
    over = told(trouble, NOW + MINUTE)
    assert over.recovery_told
    assert over.next is None


def test_a_condition_that_was_never_told_ends_without_a_word() -> None:
    assert end(opened("late"), NOW).next is None


def test_a_failure_is_told_though_the_next_job_has_completed_meanwhile() -> None:
    trouble = end(opened("failed"), NOW + SECOND)
    assert to_send(trouble, NOW + SECOND) == ("opened", ("ops",))
    assert to_send(told(trouble, NOW + SECOND), NOW + SECOND) == ("recovered", ("ops",))


def test_a_quiet_end_is_never_told() -> None:
    assert end(told(opened()), NOW, quiet=True).next is None


def test_what_is_silenced_is_told_after_that() -> None:
    until = NOW + HOUR
    assert silence(opened(), until).next == until
    grown = fold(silence(told(opened()), until), signal(NOW + 1), RULE)
    assert grown.next == until
    assert end(silence(told(opened()), until), NOW + MINUTE).next == until


def test_what_is_acknowledged_is_told_of_only_when_it_is_over() -> None:
    trouble = acknowledge(told(opened()), "ann", NOW)
    trouble = fold(trouble, signal(NOW + 1), RULE)
    assert trouble.next is None
    assert (trouble.acknowledged_by, trouble.acknowledged) == ("ann", NOW)
    assert notice_of(end(trouble, NOW + 2)) == "recovered"
    assert notice_of(acknowledge(opened(), "ann", NOW)) is None


def test_without_channels_nothing_is_told() -> None:
    assert opened(rule=msgspec.structs.replace(RULE, channels=())).next is None


def test_a_channel_that_fails_is_tried_again_after_longer_and_longer_pauses_and_then_given_up() -> None:
    rule = msgspec.structs.replace(RULE, channels=("ops", "mail"))
    trouble, now, pauses = opened(rule=rule), NOW, []
    for tries in range(1, TRIES):
        trouble = after_sending(trouble, "opened", 1, now, sent=["ops"] if tries == 1 else [], failed={"mail": "no"})
        assert trouble.tries == tries
        assert trouble.failing == {"mail": "no"}
        assert trouble.next is not None
        pauses.append(trouble.next - now)
        now = trouble.next
        assert to_send(trouble, now) == ("opened", ("mail",))
    assert pauses == [FIRST_PAUSE, 3 * FIRST_PAUSE, 9 * FIRST_PAUSE, 27 * FIRST_PAUSE]
    trouble = after_sending(trouble, "opened", 1, now, sent=[], failed={"mail": "no"})
    assert (trouble.next, trouble.failing, trouble.told) == (None, {}, now)
    assert [(notice.sent, notice.failed) for notice in trouble.notices] == [(("ops",), {"mail": "no"})]


def test_more_of_the_same_does_not_hurry_a_notice_that_is_tried_again() -> None:
    trouble = after_sending(opened(), "opened", 1, NOW, sent=[], failed={"ops": "no"})
    assert fold(trouble, signal(NOW + 1), RULE).next == NOW + FIRST_PAUSE
    assert silence(trouble, NOW + HOUR).next == NOW + HOUR


def test_an_end_takes_the_place_of_a_notice_that_is_tried_again() -> None:
    rule = msgspec.structs.replace(RULE, channels=("ops", "mail"))
    trouble = after_sending(opened("late", rule), "opened", 1, NOW, sent=["ops"], failed={"mail": "no"})
    over = end(trouble, NOW + SECOND)
    assert to_send(over, NOW + SECOND) == ("recovered", ("ops", "mail"))
    unheard = end(after_sending(opened("late"), "opened", 1, NOW, sent=[], failed={"ops": "no"}), NOW + 1)
    assert unheard.next is None


def test_what_happened_while_a_notice_was_sent_is_told_next() -> None:
    trouble = fold(opened(), signal(NOW + 1), RULE)
    after = after_sending(trouble, "opened", 1, NOW + 2, sent=["ops"], failed={})
    assert notice_of(after) == "ongoing"
    assert after.next == NOW + 2 + THROTTLE


def test_only_the_last_notices_are_kept() -> None:
    trouble = opened()
    for number in range(NOTICES_KEPT + 5):
        trouble = after_sending(trouble, "ongoing", number, NOW + number, sent=["ops"], failed={})
    assert [notice.count for notice in trouble.notices] == list(range(5, NOTICES_KEPT + 5))


def test_a_failure_is_over_when_a_later_job_completed_and_none_failed_for_the_throttle() -> None:
    trouble = told(opened())
    assert not is_over(trouble, NOW + DAY)
    mended = mend(trouble, NOW + SECOND)
    assert mend(mended, NOW + MINUTE) == mended
    assert not is_over(mended, NOW + THROTTLE - 1)
    assert is_over(mended, NOW + THROTTLE)
    assert not is_over(fold(mended, signal(NOW + 2 * SECOND), RULE), NOW + DAY)


def test_a_condition_is_over_when_it_has_not_held_for_a_moment() -> None:
    mended = mend(told(opened("late")), NOW + SECOND)
    assert not is_over(mended, NOW + SECOND + CALM - 1)
    assert is_over(mended, NOW + SECOND + CALM)
    short = msgspec.structs.replace(mended, throttle=0)
    assert is_over(short, NOW + SECOND)


def test_what_nothing_is_heard_of_is_over_after_a_day() -> None:
    assert not is_forgotten(opened(), NOW + QUIET - 1)
    assert is_forgotten(opened(), NOW + QUIET)
    assert not is_forgotten(silence(opened(), NOW + QUIET), NOW + QUIET)


@pytest.mark.parametrize(
    ("match", "takes"),
    [
        (Match(), True),
        (Match(queue="mail", job_type="send", schedule_id="s", tag="t"), True),
        (Match(queue="other"), False),
        (Match(job_type="other"), False),
        (Match(schedule_id="other"), False),
        (Match(tag="other"), False),
    ],
)
def test_a_rule_matches_jobs_by_queue_type_schedule_and_tag(match: Match, takes: bool) -> None:
    assert match.takes(job(schedule_id="s", tags=("t",))) is takes


def test_what_has_no_namespace_concerns_the_rules_of_all() -> None:
    assert RULE.tells("failed", "default")
    assert RULE.tells("failed", None)
    assert not RULE.tells("failed", "other")
    assert not RULE.tells("missed", "default")


def test_what_jobs_say_of_themselves_is_one_rule_for_all_that_name_the_same_channels() -> None:
    notify = Notify(on=("late",), late_after=SECOND, channels=("a", "b"))
    assert notify.as_rule("n").name == "job:a,b"
    assert notify.as_rule("n", "mail").name == "queue:mail"
    assert notify.as_rule("n", "mail").match == Match(queue="mail")


@pytest.mark.parametrize(
    ("status", "retry", "exhausted"),
    [
        (AttemptStatus.RETRIABLE_FAILURE, Retry(), True),
        (AttemptStatus.TIMED_OUT, Retry(), True),
        (AttemptStatus.FATAL_FAILURE, Retry(), False),
        (AttemptStatus.LOST, Retry(), True),
        (AttemptStatus.LOST, Retry(on_lost="fail"), False),
        (None, Retry(), False),
    ],
)
def test_tries_are_used_up_where_another_one_would_have_followed(
    status: AttemptStatus | None, retry: Retry, exhausted: bool
) -> None:
    last = None
    if status is not None:
        last = Attempt(
            id=JobKey(1),
            attempt=3,
            status=status,
            worker=WorkerKey(1),
            nonce=1,
            due=NOW,
            claimed=NOW,
            started=NOW,
            ended=NOW,
        )
    row = Ended(
        id=JobKey(1),
        lane_id=1,
        state=State.FAILED,
        reason=None,
        attempt=3,
        counted=3,
        lost=0,
        version=9,
        due=NOW,
        ended=NOW,
        last=last,
    )
    assert is_exhausted(Record(job=job(retry=retry), row=row)) is exhausted
    again = Ready(
        id=JobKey(1),
        lane_id=1,
        priority=5,
        due=NOW,
        deadline=None,
        attempt=3,
        counted=3,
        tries_left=3,
        lost=0,
        version=10,
        since=NOW,
        rank=0,
    )
    assert is_exhausted(Record(job=job(retry=retry), row=again, last=last)) is exhausted  # run again since


@given(
    st.lists(
        st.tuples(st.sampled_from(["signal", "mend", "end", "acknowledge", "silence", "send"]), st.integers(1, 400)),
        max_size=60,
    ),
    st.sampled_from(KINDS),
)
def test_whatever_happens_a_trouble_is_opened_once_ended_once_and_never_told_faster_than_the_throttle(
    steps: list[tuple[str, int]], kind: Kind
) -> None:
    trouble, now = fold(None, signal(kind=kind), RULE), NOW
    for step, seconds in steps:
        now += seconds * SECOND
        match step:
            case "signal" if trouble.over is None:
                trouble = fold(trouble, signal(now, kind=kind, count=seconds), RULE)
            case "mend":
                trouble = mend(trouble, now)
            case "end" if trouble.over is None:
                trouble = end(trouble, now)
            case "acknowledge":
                trouble = acknowledge(trouble, "ann", now)
            case "silence":
                trouble = silence(trouble, now + seconds * SECOND)
            case "send" if to_send(trouble, now) is not None:
                assert trouble.silenced is None or trouble.silenced <= now
                trouble = told(trouble, now)
    kinds = [notice.kind for notice in trouble.notices]
    assert kinds[:1] in ([], ["opened"])
    assert kinds.count("opened") <= 1
    assert kinds.count("recovered") <= 1
    assert "recovered" not in kinds[:-1]
    times = [notice.time for notice in trouble.notices if notice.kind != "recovered"]
    assert all(later - earlier >= THROTTLE for earlier, later in pairwise(times))
    assert msgspec.json.decode(msgspec.json.encode(trouble), type=Trouble) == trouble


def test_every_kind_is_a_condition_or_ends_by_what_happens() -> None:
    assert set(KINDS) > CONDITIONS
