"""Random lives of a job: whatever happens, in whatever order, the promises of the state table hold."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain import events as e
from foliot.domain.changes import Change, End, Held, Mark, Refusal, Requeue
from foliot.domain.duration import HOUR, MINUTE, SECOND, Micros
from foliot.domain.ids import JobKey
from foliot.domain.job import AttemptStatus, Ended, Job, Lease, Narrow, Ready, Row, State, Ties, Waiting
from foliot.domain.rank import rank
from foliot.domain.retry import Retry
from foliot.domain.states import RULES, claim, state_of, submit, transition
from tests.domain.rows import NOW, WORKER, carry_out, make_job

KINDS = list(RULES)
POLICIES = st.builds(
    Retry,
    max_attempts=st.integers(1, 5),
    delays=st.lists(st.sampled_from([0, SECOND]), max_size=2).map(tuple),
    on_lost=st.sampled_from(["retry", "retry", "fail"]),
    max_lost=st.integers(1, 3),
)
JOBS = st.builds(
    make_job,
    priority=st.integers(0, 9),
    due=st.sampled_from([NOW, NOW + MINUTE]),
    deadline=st.sampled_from([None, NOW + SECOND, NOW + HOUR]),
    retry=POLICIES,
)


LIMITS = st.sampled_from([None, 3, 4])


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Something happens after `elapsed`. `choice` picks the event, `job` is what a user's change would ask for, with
    which key; a redrive would wait for `reopened`."""

    choice: int
    elapsed: Micros
    job: Job
    limit_id: int | None
    reopened: tuple[JobKey, ...]


STEPS = st.builds(
    Step,
    choice=st.integers(0, 10_000),
    elapsed=st.sampled_from([0, 1, SECOND, MINUTE, HOUR, -1000]),  # back: a node whose clock is behind
    job=JOBS,
    limit_id=LIMITS,
    reopened=st.sampled_from([(), (), (JobKey(7),)]),
)


class Life:
    """A job, its row, and what was recorded of its attempts."""

    def __init__(self, job: Job, parents: int, limit_id: int | None) -> None:
        self.job = job
        self.now = NOW
        self.latest = NOW
        self.ties = Ties.CHILDREN
        self.row: Row = submit(job, NOW, parents=parents, limit_id=limit_id, ties=self.ties)
        self.claims = 0
        self.released = 0
        self.recorded: list[int] = []
        assert self.row.version == 1
        self.check_narrow(self.row)

    def take(self, step: Step) -> None:
        self.now += step.elapsed
        self.latest = max(self.latest, self.now)
        state = state_of(self.row)
        legal = [kind for kind in KINDS if state in RULES[kind].moves]
        kinds = legal * 4 + KINDS  # most steps lead somewhere, some are refused
        event = self.event(kinds[step.choice % len(kinds)], step)
        before = self.row
        if isinstance(before, Ready) and isinstance(event, e.Claim):
            self.row = claim(before, event, self.now)
            self.claims += 1
            assert self.row.version == before.version + 1
            assert self.row.attempt == self.claims
            self.check_narrow(self.row)
            return
        outcome = transition(before, event, self.now, retry=self.job.retry)
        self.check_token_decides_the_same(before, event, outcome)
        if isinstance(outcome, Refusal):
            assert outcome.state is state
            return
        self.follow(before, event, outcome)

    def event(self, kind: type[e.Event], step: Step) -> e.Event:
        fields: dict[str, Any] = {
            "reason": "parent_failed",
            "worker": WORKER,
            "nonce": step.choice,
            "timeout": MINUTE,
            "due": step.job.due,
            "job": step.job if kind is e.Reschedule else self.job,
            "limit_id": step.limit_id,
            "ties": self.ties,
            "reopened": step.reopened,
        }
        return kind(**{name: fields[name] for name in kind.__struct_fields__ if name in fields})

    def follow(self, before: Row, event: e.Event, change: Change) -> None:
        after = carry_out(change, before)
        assert state_of(after) in RULES[type(event)].moves[state_of(before)]
        self.row = after
        match change:
            case Requeue():
                assert after.version == before.version + 1
                self.check_cancel_holds(before)
                self.check_hold_holds(before, event, change.row)
                self.check_token_is_given(event, change.row)
                if change.job is not None:
                    self.job = change.job
                if isinstance(before, Lease):
                    assert change.attempt is not None
                    self.record(change.attempt.attempt, change.attempt.status)
                else:
                    assert change.attempt == (before.last if isinstance(before, Ended) else None)
                self.check_narrow(change.row)
            case End():
                assert isinstance(after, Ended)
                assert (after.last is not None) is isinstance(before, Lease)
                if after.last is not None:
                    self.record(after.last.attempt, after.last.status)
            case Mark():
                assert isinstance(after, Lease)
                self.check_narrow(after)

    def record(self, attempt: int, status: AttemptStatus) -> None:
        self.recorded.append(attempt)
        self.released += status is AttemptStatus.RELEASED

    def check_narrow(self, row: Narrow) -> None:
        assert row.attempt == self.claims
        assert row.counted == self.claims - self.released
        assert row.tries_left >= (0 if isinstance(row, Lease) else 1)
        assert row.deadline is None or row.attempt == 0
        assert row.ties == self.ties
        if isinstance(row, Ready):
            assert row.due <= self.latest
            assert row.rank == rank(row.priority, row.due)

    def check_token_is_given(self, event: e.Event, after: Waiting | Ready) -> None:
        if isinstance(after, Ready):
            assert (after.limit_id is None) is not isinstance(event, e.TokenFree)
        elif after.for_key:
            assert after.limit_id is not None
            assert not after.hold
            assert not after.parents
            assert after.due <= self.latest

    def check_cancel_holds(self, before: Row) -> None:
        assert not (isinstance(before, Lease) and before.cancel_asked is not None)

    def check_hold_holds(self, before: Row, event: e.Event, after: Waiting | Ready) -> None:
        if isinstance(before, Waiting) and before.hold and not isinstance(event, e.Resume):
            assert isinstance(after, Waiting)
            assert after.hold
        if isinstance(before, Waiting) and before.parents and not isinstance(event, e.ParentsDone):
            assert isinstance(after, Waiting)
            assert after.parents == before.parents

    def check_token_decides_the_same(self, row: Row, event: e.Event, outcome: Change | Refusal) -> None:
        if not isinstance(row, Lease):
            return
        held = Held(id=row.id, nonce=row.nonce)
        by_token = transition(held, event, self.now, retry=self.job.retry)
        if not isinstance(by_token, Refusal):
            assert by_token == (msgspec.structs.replace(outcome, version=None) if isinstance(outcome, End) else outcome)


@given(job=JOBS, parents=st.integers(0, 2), limit_id=LIMITS, steps=st.lists(STEPS, max_size=40))
def test_every_life_keeps_the_promises_of_the_table(
    job: Job, parents: int, limit_id: int | None, steps: list[Step]
) -> None:
    life = Life(job, parents, limit_id)
    completed: Row | None = None
    for step in steps:
        life.take(step)
        if state_of(life.row) is State.COMPLETED:
            completed = completed or life.row
        assert completed is None or life.row is completed
    running = isinstance(life.row, Lease)
    assert life.recorded == list(range(1, life.claims + (not running)))
