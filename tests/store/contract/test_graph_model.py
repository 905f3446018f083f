"""Random graphs of jobs with concurrency keys, played on the store and on a model beside it."""

import asyncio
import itertools
import os
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from foliot.domain import events, states
from foliot.domain.changes import Change, End, Refusal, Requeue
from foliot.domain.duration import HOUR, SECOND
from foliot.domain.graph import Edge, On, holds
from foliot.domain.ids import IdMaker, JobKey
from foliot.domain.job import Ended, Job, Lane, Lease, Ready, Row, State, Ties, Waiting
from foliot.domain.placement import Order
from foliot.domain.rank import rank
from foliot.domain.retry import Retry
from foliot.domain.worker import Worker
from foliot.store.base import Accepted, Parent, Store
from tests.store.builders import Scene
from tests.store.conftest import MakeStore

RETRIES = (Retry(delays=(0,)), Retry(delays=(SECOND,)), Retry(max_attempts=1))

EVENTS: tuple[events.Event, ...] = (
    events.Succeed(),
    events.FailRetriable(),
    events.FailFatal(),
    events.WorkerGone(),
    events.Release(),
    events.Cancel(),
    events.Stopped(),
    events.Pause(),
    events.Resume(),
)


class Link:
    """An edge of the model; it counts until it is `done`."""

    def __init__(self, parent: JobKey, child: JobKey, on: On) -> None:
        self.edge = Edge(parent, child, on)
        self.done = False


class Graphs(RuleBasedStateMachine):
    """Jobs of one lane with keys of their own. The store is shared by all runs."""

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
        self.jobs: dict[JobKey, Job] = {}
        self.rows: dict[JobKey, Row] = {}
        self.links: list[Link] = []
        self.untold: dict[JobKey, State] = {}
        self.worker: Worker = self.wait(self.scene.worker(until=now + HOUR))
        self.most = {f"{self.lane.job_type} {name}": 1 for name in "ab"}
        self.numbers = {name: self.wait(self.scene.limit(name, most)) for name, most in self.most.items()}

    def wait(self, awaitable: Any) -> Any:
        return self.runner.run(awaitable)

    def limit_of(self, name: str | None) -> tuple[str | None, int | None]:
        key = None if name is None else f"{self.lane.job_type} {name}"
        return key, None if key is None else self.numbers[key]

    @rule(
        target=keys,
        parents=st.lists(st.tuples(keys, st.sampled_from(On)), max_size=3, unique_by=lambda pair: pair[0]),
        name=st.sampled_from([None, "a", "a", "b"]),
        delay=st.sampled_from([0, 0, SECOND]),
        priority=st.integers(4, 6),
        retry=st.sampled_from(RETRIES),
    )
    def submit(
        self, parents: Sequence[tuple[JobKey, On]], name: str | None, delay: int, priority: int, retry: Retry
    ) -> JobKey:
        limit_key, limit_id = self.limit_of(name)
        job: Job = self.wait(
            self.scene.job(
                job_type=self.lane.job_type,
                due=self.scene.now + delay,
                priority=priority,
                retry=retry,
                limit_key=limit_key,
            )
        )
        new = self.scene.new(job, *(Parent(key, on) for key, on in parents))
        (answer,) = self.wait(self.scene.insert(self.scene.request(new)))
        ended = [key for key, _ in parents if isinstance(self.rows[key], Ended)]
        assert isinstance(answer, Accepted)
        assert answer.parents_ended is bool(ended)
        self.jobs[job.id] = job
        self.rows[job.id] = states.submit(
            job, self.scene.now, parents=len(parents), limit_id=limit_id, ties=Ties.PARENTS if parents else 0
        )
        self.links += [Link(key, job.id, on) for key, on in parents]
        self.depend_on([key for key, _ in parents])
        return job.id

    @initialize(target=keys, names=st.lists(st.sampled_from(["a", "b"]), min_size=3, max_size=6))
    def begin(self, names: Sequence[str]) -> Any:
        """Some that run at once, and more that wait for the same keys."""
        made = [self.submit([], name, 0, 5, RETRIES[0]) for name in names]
        made += [self.submit([(made[0], On.ANY)], "a", 0, 5, RETRIES[0])]
        self.go_on(0, 4)
        return multiple(*made)

    @rule(target=keys, length=st.integers(2, 4), on=st.sampled_from(On))
    def submit_a_chain(self, length: int, on: On) -> Any:
        """A whole graph in one request, the last link first."""
        jobs: list[Job] = self.wait(self.scene.jobs(length, job_type=self.lane.job_type))
        new = [self.scene.new(jobs[0])]
        self.rows[jobs[0].id] = states.submit(jobs[0], self.scene.now)
        for parent, child in itertools.pairwise(jobs):
            new.append(self.scene.new(child, Parent(parent.id, on)))
            self.rows[child.id] = states.submit(child, self.scene.now, parents=1, ties=Ties.PARENTS)
            self.links.append(Link(parent.id, child.id, on))
        self.jobs.update((job.id, job) for job in jobs)
        self.depend_on([job.id for job in jobs[:-1]])
        (answer,) = self.wait(self.scene.insert(self.scene.request(*reversed(new))))
        assert isinstance(answer, Accepted)
        assert not answer.parents_ended
        return multiple(*(job.id for job in jobs))

    def depend_on(self, parents: Sequence[JobKey]) -> None:
        for key in parents:
            row = self.rows[key]
            if isinstance(row, Ended):
                self.untold[key] = row.state
            else:
                self.rows[key] = msgspec.structs.replace(row, ties=row.ties | Ties.CHILDREN)

    def claim(self, count: int) -> None:
        now, nonce = self.scene.now, self.scene.new_nonce()
        ready = sorted((row.rank, row.id) for row in self.rows.values() if isinstance(row, Ready))[:count]
        (lane_id,) = self.wait(self.store.lane_ids([self.lane]))
        claimed = self.wait(self.store.claim([Order(lane_id, self.worker.id, count)], nonce, now))
        assert {entry.lease.id for entry in claimed} == {key for _, key in ready}
        for _, key in ready:
            row = self.rows[key]
            assert isinstance(row, Ready)
            event = events.Claim(worker=self.worker.id, nonce=nonce, timeout=self.jobs[key].timeout)
            self.rows[key] = states.claim(row, event, now)

    @rule(key=keys, choice=st.integers(0, 9))
    def happen(self, key: JobKey, choice: int) -> None:
        """One of the events that are legal for it."""
        retry, row = self.jobs[key].retry, self.rows[key]
        legal = [
            event
            for event in EVENTS
            if not isinstance(states.transition(row, event, self.scene.now, retry=retry), Refusal)
        ]
        if legal:
            self.carry_out(key, legal[choice % len(legal)])

    @rule(place=st.integers(0, 9), event=st.sampled_from([events.Succeed(), events.FailFatal()]))
    def finish(self, place: int, event: events.Event) -> None:
        """One that runs, so that graphs move on."""
        running = [key for key, row in sorted(self.rows.items()) if isinstance(row, Lease)]
        if running:
            self.carry_out(running[place % len(running)], event)

    @rule(seconds=st.integers(0, 2), count=st.integers(1, 4))
    def go_on(self, seconds: int, count: int) -> None:
        """What nodes do all the time, but for releases: ends may wait for those."""
        self.scene.now += seconds * SECOND
        self.admit()
        self.give_tokens()
        self.claim(count)

    @rule(key=keys, name=st.sampled_from([None, "a", "b"]))
    def change_the_key(self, key: JobKey, name: str | None) -> None:
        limit_key, limit_id = self.limit_of(name)
        job = msgspec.structs.replace(self.jobs[key], limit_key=limit_key)
        if self.carry_out(key, events.Reschedule(job=job, due=job.due, limit_id=limit_id)):
            self.jobs[key] = job

    @rule(key=keys, wait=st.booleans())
    def redrive(self, key: JobKey, wait: bool) -> None:
        job = self.jobs[key]
        to_it = [link for link in self.links if link.edge.child == key]
        children = any(link.edge.parent == key for link in self.links)
        reopened = [link.edge.parent for link in to_it] if wait else []
        limit_id = None if job.limit_key is None else self.numbers[job.limit_key]
        ties = (Ties.PARENTS if to_it else 0) | (Ties.CHILDREN if children else 0)
        if self.carry_out(key, events.Redrive(job=job, limit_id=limit_id, ties=ties, reopened=reopened)):
            self.untold.pop(key, None)
            for link in to_it:
                link.done = not wait
            self.depend_on(reopened)

    def carry_out(self, key: JobKey, event: events.Event) -> bool:
        """Whether the event is legal; then the store does what the model does."""
        before, job = self.rows[key], self.jobs[key]
        change = states.transition(before, event, self.scene.now, retry=job.retry)
        record = self.wait(self.scene.record(key))
        real = states.transition(record.row, event, self.scene.now, retry=job.retry)
        assert type(real) is type(change)
        if isinstance(change, Refusal) or isinstance(real, Refusal):
            return False
        saved = self.wait(self.store.save([real], self.scene.now))
        assert saved.done == {key}
        after = self.apply(change)
        limits = {before.limit_id} if isinstance(before, Ready | Lease) and not isinstance(after, Lease) else set()
        if isinstance(after, Waiting) and after.for_key:
            limits.add(after.limit_id)
        assert saved.limits == limits - {None}
        if isinstance(event, events.Redrive):
            assert saved.parents_ended is any(isinstance(self.rows[parent], Ended) for parent in event.reopened)
        else:
            assert saved.parents_ended is (isinstance(after, Ended) and key in self.untold)
        return True

    def apply(self, change: Change) -> Row:
        before = self.rows[change.id]
        match change:
            case Requeue():
                after: Row = change.row
            case End():
                assert not isinstance(before, Ended)
                if before.ties & Ties.CHILDREN:
                    self.untold[change.id] = change.state
                after = Ended(
                    id=before.id,
                    lane_id=before.lane_id,
                    state=change.state,
                    reason=change.reason,
                    attempt=before.attempt,
                    counted=before.counted,
                    lost=before.lost,
                    version=before.version + 1,
                    due=before.due,
                    ended=change.ended,
                    last=None,
                )
            case _:
                assert isinstance(before, Lease)
                after = msgspec.structs.replace(before, cancel_asked=change.cancel_asked)
        self.rows[change.id] = after
        return after

    def admit(self) -> None:
        """By the store's clock all that waits for its time is due."""
        waiting = [row for row in self.rows.values() if isinstance(row, Waiting)]
        due = [row for row in waiting if not row.hold and not row.parents and not row.for_key]
        admitted = self.wait(self.store.admit(list(self.rows)))
        assert {key for key, _ in admitted.ready} == {row.id for row in due if row.limit_id is None}
        assert set(admitted.for_key) == {(row.id, row.limit_id) for row in due if row.limit_id is not None}
        for row in due:
            change = states.transition(row, events.Due(), row.due, retry=Retry())
            assert isinstance(change, Requeue)
            self.apply(change)

    @rule(name=st.sampled_from("ab"), most=st.integers(1, 4))
    def set_the_limit(self, name: str, most: int) -> None:
        key = f"{self.lane.job_type} {name}"
        assert self.wait(self.scene.limit(key, most)) == self.numbers[key]
        self.most[key] = most

    def give_tokens(self) -> None:
        given = self.wait(self.store.give_tokens(list(self.numbers.values()), self.scene.now))
        expected: set[JobKey] = set()
        for key, number in self.numbers.items():
            rows = [row for row in self.rows.values() if not isinstance(row, Ended) and row.limit_id == number]
            free = self.most[key] - sum(isinstance(row, Ready | Lease) for row in rows)
            line = sorted(
                (rank(row.priority, row.due), row.id) for row in rows if isinstance(row, Waiting) and row.for_key
            )
            expected.update(waiter for _, waiter in line[: max(0, free)])
        assert {key for key, _ in given} == expected
        for turn in expected:
            change = states.transition(self.rows[turn], events.TokenFree(), self.scene.now, retry=Retry())
            assert isinstance(change, Requeue)
            self.apply(change)

    @rule(limit=st.sampled_from([1, 3, 100]))
    def release(self, limit: int) -> None:
        released = self.wait(self.scene.release(limit))
        cancelled = set()
        while self.untold:
            parent, state = self.untold.popitem()
            for link in self.links:
                if link.edge.parent != parent or link.done:
                    continue
                link.done = True
                if self.tell(self.rows[link.edge.child], holds(link.edge.on, state)):
                    cancelled.add(link.edge.child)
        assert released.cancelled == cancelled

    def tell(self, child: Row, holding: bool) -> bool:
        """Whether the end of a parent cancels its child."""
        if not isinstance(child, Waiting) or not child.parents:
            return False
        if holding and child.parents > 1:
            self.rows[child.id] = msgspec.structs.replace(child, parents=child.parents - 1)
            return False
        event: events.Event = events.ParentsDone() if holding else events.ParentEndedOtherwise(reason="parent_…")
        change = states.transition(child, event, self.scene.now, retry=Retry())
        assert not isinstance(change, Refusal)
        self.apply(change)
        return not holding

    @invariant()
    def the_store_tells_what_the_model_tells(self) -> None:
        records = self.wait(self.store.load(list(self.rows)))
        assert {key: shape(record.row) for key, record in records.items()} == {
            key: shape(row) for key, row in self.rows.items()
        }

    @invariant()
    def a_job_counts_the_edges_that_are_not_done(self) -> None:
        for key, row in self.rows.items():
            if isinstance(row, Waiting):
                assert row.parents == sum(link.edge.child == key and not link.done for link in self.links)

    def teardown(self) -> None:
        edges = self.wait(self.store.edges(list(self.rows), 10_000))
        assert sorted(edges, key=msgspec.structs.astuple) == sorted(
            (msgspec.structs.replace(link.edge, done=link.done) for link in self.links), key=msgspec.structs.astuple
        )
        for limit in self.wait(self.store.limits("default", keys=list(self.numbers))):
            rows = [row for row in self.rows.values() if not isinstance(row, Ended) and row.limit_id == limit.limit_id]
            assert limit.held == sum(isinstance(row, Ready | Lease) for row in rows)
            assert limit.waiting == sum(isinstance(row, Waiting) and row.for_key for row in rows)
        self.wait(self.scene.release())  # leave nothing behind for the next run to carry on


def shape(row: Row) -> tuple[Any, ...]:
    """What the model knows of a row."""
    if isinstance(row, Ended):
        return (Ended, row.state, (row.reason or "").startswith("parent_"))
    extra: tuple[Any, ...] = ()
    if isinstance(row, Waiting):
        extra = (row.hold, row.parents, row.for_key)
    return (type(row), row.due, row.limit_id, row.ties, row.attempt, row.tries_left, *extra)


def test_random_graphs_go_as_the_rules_have_it(make_store: MakeStore) -> None:
    async def opened() -> Store:
        store = make_store()
        await store.open()
        return store

    with asyncio.Runner() as runner:
        store = runner.run(opened())

        class GraphsHere(Graphs):
            pass

        GraphsHere.runner, GraphsHere.store, GraphsHere.ids = runner, store, IdMaker(node=200)
        try:
            run_state_machine_as_test(
                GraphsHere,
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
