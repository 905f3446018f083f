"""Random lives of jobs, played on the store and on a model beside it; after every step both must tell the same."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from foliot.domain import events, states
from foliot.domain.changes import Change, End, Mark, Refusal, Requeue
from foliot.domain.duration import HOUR, SECOND
from foliot.domain.ids import IdMaker, JobKey
from foliot.domain.job import Attempt, Ended, Job, Lane, Lease, Ready, Record, Waiting
from foliot.domain.placement import Order
from foliot.domain.retry import Retry
from foliot.domain.worker import Worker
from foliot.store.base import Store
from tests.store.builders import Scene
from tests.store.conftest import MakeStore

# Waits stay far below the hour by which the scene lies in the past, so that by the store's clock all that waits is due.
RETRIES = (Retry(initial=SECOND, max=SECOND), Retry(max_attempts=1), Retry(on_lost="fail"), Retry(delays=(0,)))

EVENTS: dict[str, Callable[[Job], events.Event]] = {
    "progress": lambda _: events.Progress(started=1, progress="{}"),
    "succeed": lambda _: events.Succeed(result="[1]"),
    "fail": lambda _: events.FailRetriable(error='"e"', exit_code=1),
    "fail_fatal": lambda _: events.FailFatal(error='"f"', code="bad"),
    "time_out": lambda _: events.TimeOut(),
    "lose": lambda _: events.WorkerGone(),
    "release": lambda _: events.Release(),
    "cancel": lambda _: events.Cancel(),
    "stop": lambda _: events.Stopped(),
    "grace_over": lambda _: events.CancelGraceOver(),
    "pause": lambda _: events.Pause(),
    "resume": lambda _: events.Resume(),
    "parents_done": lambda _: events.ParentsDone(),
    "parent_failed": lambda _: events.ParentEndedOtherwise(reason="parent_failed"),
    "expire": lambda _: events.Expire(),
    "change": lambda job: events.Reschedule(
        job=msgspec.structs.replace(job, payload='"changed"', priority=9), due=job.due
    ),
    "redrive": lambda job: events.Redrive(job=msgspec.structs.replace(job, payload='"again"'), rewrite=True),
}


def applied(record: Record, change: Change) -> Record:
    """What a store must make of a change that takes effect."""
    row = record.row
    match change:
        case Requeue():
            job = record.job if change.job is None else change.job
            return Record(job=job, row=change.row, last=change.attempt or record.last)
        case End():
            assert not isinstance(row, Ended)
            last = None
            if isinstance(row, Lease):
                assert change.attempt_status is not None
                last = Attempt(
                    id=row.id,
                    attempt=row.attempt,
                    status=change.attempt_status,
                    worker=row.worker,
                    nonce=row.nonce,
                    due=row.due,
                    claimed=row.claimed,
                    started=row.started if change.started is None else change.started,
                    ended=change.ended,
                    error=change.error,
                    exit_code=change.exit_code,
                    admitted=row.since,
                )
            ended = Ended(
                id=row.id,
                lane_id=row.lane_id,
                state=change.state,
                reason=change.reason,
                attempt=row.attempt,
                counted=row.counted,
                lost=row.lost,
                version=row.version + 1,
                due=row.due,
                ended=change.ended,
                last=last,
                result=change.result,
            )
            return Record(job=record.job, row=ended, last=last or record.last)
        case Mark():
            assert isinstance(row, Lease)
            given = {
                name: value
                for name in ("started", "progress", "cancel_asked", "check_at")
                if (value := getattr(change, name)) is not None
            }
            version = row.version + (change.cancel_asked is not None)
            return msgspec.structs.replace(record, row=msgspec.structs.replace(row, **given, version=version))


class Lives(RuleBasedStateMachine):
    """Jobs of one lane. The store is shared by all runs; each run has its own lane and looks at its own jobs."""

    runner: asyncio.Runner
    store: Store
    runs = 0
    ids: IdMaker

    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        type(self).runs += 1
        now: int = self.wait(self.store.now())
        self.scene = Scene(self.store, now - HOUR, self.ids)
        self.wait(self.store.prepare_days(self.scene.now))
        self.lane = Lane("default", "default", f"run{self.runs}")
        self.records: dict[JobKey, Record] = {}
        self.attempts: dict[JobKey, list[Attempt]] = {}
        self.worker: Worker = self.wait(self.scene.worker(until=now + HOUR))

    def wait(self, awaitable: Any) -> Any:
        return self.runner.run(awaitable)

    @rule(
        target=keys,
        delay=st.sampled_from([0, SECOND]),
        parents=st.sampled_from([0, 0, 1]),
        priority=st.integers(0, 9),
        retry=st.sampled_from(RETRIES),
        deadline=st.sampled_from([None, 2 * SECOND]),
    )
    def submit(self, delay: int, parents: int, priority: int, retry: Retry, deadline: int | None) -> JobKey:
        now = self.scene.now
        job: Job = self.wait(
            self.scene.job(
                job_type=self.lane.job_type,
                due=now + delay,
                priority=priority,
                retry=retry,
                deadline=None if deadline is None else now + deadline,
            )
        )
        self.wait(self.scene.submit(job, parents=parents))
        self.records[job.id] = Record(job=job, row=states.submit(job, now, parents=parents))
        self.attempts[job.id] = []
        return job.id

    @rule(seconds=st.integers(1, 5))
    def time_passes(self, seconds: int) -> None:
        self.scene.now += seconds * SECOND

    @rule(count=st.integers(1, 3))
    def claim(self, count: int) -> None:
        now, nonce = self.scene.now, self.scene.new_nonce()
        ready = [(record.row, record) for record in self.records.values() if isinstance(record.row, Ready)]
        ready.sort(key=lambda entry: (entry[0].rank, entry[0].id))
        expected = {}
        for row, record in ready[:count]:
            event = events.Claim(worker=self.worker.id, nonce=nonce, timeout=record.job.timeout)
            expected[row.id] = states.claim(row, event, now)
            self.records[row.id] = msgspec.structs.replace(record, row=expected[row.id])
        (lane_id,) = self.wait(self.store.lane_ids([self.lane]))
        claimed = self.wait(self.store.claim([Order(lane_id, self.worker.id, count)], nonce, now))
        assert {entry.lease.id: entry.lease for entry in claimed} == expected
        for entry in claimed:
            assert entry.job == self.records[entry.lease.id].job

    @rule(key=keys, name=st.sampled_from(sorted(EVENTS)))
    def happen(self, key: JobKey, name: str) -> None:
        record = self.records[key]
        change = states.transition(record.row, EVENTS[name](record.job), self.scene.now, retry=record.job.retry)
        if isinstance(change, Refusal):
            return
        assert self.wait(self.scene.save([change])) == {key}
        self.records[key] = applied(record, change)
        ended = change.attempt if isinstance(change, Requeue) else None
        after = self.records[key].row
        if isinstance(after, Ended) and after.last is not None:
            ended = after.last
        if ended is not None and ended not in self.attempts[key]:
            self.attempts[key].append(ended)
        assert isinstance(change, Mark) or self.wait(self.scene.save([change])) == set()

    @rule(key=keys, name=st.sampled_from(sorted(EVENTS)))
    def come_too_late(self, key: JobKey, name: str) -> None:
        """The same event, decided on a row that has been replaced."""
        record = self.records[key]
        change = states.transition(record.row, EVENTS[name](record.job), self.scene.now, retry=record.job.retry)
        if isinstance(change, Requeue) or (isinstance(change, End) and change.version is not None):
            assert change.version is not None
            old = msgspec.structs.replace(change, version=change.version - 1)
            assert self.wait(self.scene.save([old])) == set()

    @rule()
    def admit(self) -> None:
        waiting = [record.row for record in self.records.values() if isinstance(record.row, Waiting)]
        due = {row.id: row for row in waiting if not row.hold and not row.parents}
        moved = self.wait(self.store.admit(list(self.records)))
        assert {key for key, _ in moved.ready} == set(due)
        for key, record in self.wait(self.store.load(list(due))).items():
            change = states.transition(due[key], events.Due(), record.row.since, retry=record.job.retry)
            assert isinstance(change, Requeue)
            self.records[key] = applied(self.records[key], change)

    @rule()
    def lose_the_worker(self) -> None:
        """All that it held is missed, and goes back."""
        assert self.wait(self.store.remove_worker(self.worker.id))
        held = {key for key, record in self.records.items() if isinstance(record.row, Lease)}
        missed = self.wait(self.store.missed(self.scene.now, 1000))
        assert held == {entry.record.job.id for entry in missed} & set(self.records)
        for key in sorted(held):
            self.happen(key, "lose")
        self.worker = self.wait(self.scene.worker(until=self.worker.until))

    @rule()
    def expire_what_is_over(self) -> None:
        over = {
            key
            for key, record in self.records.items()
            if isinstance(record.row, Waiting | Ready)
            and record.row.deadline is not None
            and record.row.deadline <= self.scene.now
        }
        found = self.wait(self.store.expired(self.scene.now, 1000))
        assert over == {record.job.id for record in found} & set(self.records)
        for key in sorted(over):
            self.happen(key, "expire")

    @invariant()
    def the_store_tells_what_the_model_tells(self) -> None:
        assert self.wait(self.store.load(list(self.records))) == self.records

    def teardown(self) -> None:
        for key, record in self.records.items():
            executions = self.wait(self.store.executions(key))
            running = isinstance(record.row, Lease)
            assert (executions[:-1] if running else executions) == self.attempts[key]
            assert not running or executions[-1].ended is None
        for key in [key for key, record in self.records.items() if isinstance(record.row, Lease)]:
            self.happen(key, "succeed")  # leave no lease behind for the next run to miss
        self.wait(self.store.remove_worker(self.worker.id))


def test_random_lives_go_as_the_rules_have_it(make_store: MakeStore) -> None:
    async def opened() -> Store:
        store = make_store()
        await store.open()
        return store

    with asyncio.Runner() as runner:
        store = runner.run(opened())

        class LivesHere(Lives):
            pass

        LivesHere.runner, LivesHere.store, LivesHere.ids = runner, store, IdMaker(node=200)
        try:
            run_state_machine_as_test(
                LivesHere,
                settings=settings(
                    max_examples=25,
                    stateful_step_count=30,
                    deadline=None,
                    derandomize="CI" in os.environ,
                    suppress_health_check=[HealthCheck.too_slow],
                ),
            )
        finally:
            runner.run(store.close())
