"""Random days of a queue, played on the store and on a model beside it: limits hold, nothing is lost or doubled, and
keys that always have jobs in a fair queue get their shares."""

import asyncio
import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from foliot.domain import events
from foliot.domain.changes import Requeue
from foliot.domain.duration import HOUR, MINUTE, SECOND
from foliot.domain.ids import IdMaker, JobKey
from foliot.domain.job import NAMESPACE, Ended, Job, Lease, Ready, Record, Waiting
from foliot.domain.placement import Order
from foliot.domain.queue import DEFAULT_RULES, Queue, QueueRules, Room, changes_order
from foliot.domain.rank import cost, rank
from foliot.domain.rate import RateLimit, after_starts, carried_over
from foliot.domain.retry import Retry
from foliot.domain.worker import Worker
from foliot.store.base import Crowd, Store
from tests.store.builders import Scene
from tests.store.conftest import MakeStore

# The beats are minutes long: within a run no beat passes. They have no common measure, so that a few nanoseconds decide
# nothing where one rate comes after another.
RATES = (RateLimit(limit=7, per=HOUR, burst=4), RateLimit(limit=11, per=HOUR, burst=9))
RULES = (
    DEFAULT_RULES,
    QueueRules(policy="fair"),
    QueueRules(policy="fair", weights={"a": 3.0, "b": 0.5}),
    QueueRules(policy="fair", weights={"c": 2.0}, max_concurrency=4),
    QueueRules(policy="fair", weights={"a": 3.0, "b": 0.5}, rate_limit=RATES[0]),
    QueueRules(policy="fifo", max_concurrency=2, rate_limit=RATES[1]),
    QueueRules(aging=MINUTE, rate_limit=RATES[0]),
    QueueRules(max_concurrency=3),
    QueueRules(policy="fifo"),
)
ENDS: tuple[events.Event, ...] = (events.Succeed(), events.FailFatal(), events.FailRetriable(), events.Release())


class Days(RuleBasedStateMachine):
    """One queue of two job types. The store is shared by all runs; each has its own queue and types."""

    runner: asyncio.Runner
    store: Store
    runs = 0
    ids: IdMaker

    def __init__(self) -> None:
        super().__init__()
        type(self).runs += 1
        now: int = self.wait(self.store.now())
        self.scene = Scene(self.store, now - HOUR, self.ids)
        self.wait(self.store.prepare_days(self.scene.now))
        self.name = f"run{self.runs}"
        self.worker: Worker = self.wait(self.scene.worker(until=now + HOUR))
        self.jobs: dict[JobKey, Job] = {}
        self.stands: dict[JobKey, type] = {}
        self.in_order: set[JobKey] = set()
        self.held: set[str] = set()
        self.next_beat = 0
        self.disturbed: set[str] = set()
        self.pairs: dict[tuple[str, str], Counter[str]] = {}
        made: Queue | None = self.wait(self.store.put_queue(self.wanted(), expected=0, now=self.scene.now))
        assert made is not None
        self.queue = made

    def wait(self, awaitable: Any) -> Any:
        return self.runner.run(awaitable)

    def wanted(self, rules: QueueRules = DEFAULT_RULES, *, paused: bool = False) -> Queue:
        return Queue(queue_id=0, namespace=NAMESPACE, name=self.name, paused=paused, rules=rules)

    def standing(self, row: type) -> list[JobKey]:
        return sorted(key for key, stands in self.stands.items() if stands is row)

    def fair_keys(self) -> Counter[str]:
        """How many are ready of each fair key."""
        return Counter(self.jobs[key].fair_key or "" for key in self.standing(Ready))

    @initialize(rules=st.sampled_from(RULES))
    def begin(self, rules: QueueRules) -> None:
        self.put(rules)
        for fair_key, count in (("a", 20), ("b", 12), ("c", 3)):
            self.submit(count, fair_key, "one", 5)

    @rule(
        count=st.integers(1, 6),
        fair_key=st.sampled_from("abc"),
        kind=st.sampled_from(["one", "two"]),
        priority=st.integers(4, 6),
    )
    def submit(self, count: int, fair_key: str, kind: str, priority: int) -> None:
        self.scene.now += SECOND
        jobs: list[Job] = self.wait(
            self.scene.jobs(
                count,
                queue=self.name,
                job_type=f"{self.name}-{kind}",
                fair_key=fair_key,
                priority=priority,
                retry=Retry(delays=(0,), max_attempts=100),
            )
        )
        self.wait(self.scene.submit(*jobs))
        self.jobs.update((job.id, job) for job in jobs)
        self.stands.update((job.id, Ready) for job in jobs)

    @rule(rules=st.sampled_from(RULES))
    def put(self, rules: QueueRules) -> None:
        self.change(rules, paused=self.queue.paused)

    @rule()
    def pause_or_resume_the_queue(self) -> None:
        self.change(self.queue.rules, paused=not self.queue.paused)

    def change(self, rules: QueueRules, *, paused: bool) -> None:
        before, now = self.queue, self.scene.now
        wanted = self.wanted(rules, paused=paused)
        assert self.wait(self.store.put_queue(wanted, expected=before.version + 1, now=now)) is None
        after: Queue = self.wait(self.store.put_queue(wanted, expected=before.version, now=self.wait(self.store.now())))
        changed = (rules, paused) != (before.rules, before.paused)
        assert (after.rules, after.paused, after.version) == (rules, paused, before.version + changed)
        if changes_order(before.rules, rules):
            assert after.ordered == after.version
            self.in_order.clear()
            self.disturbed.clear()
            self.pairs.clear()
        else:
            assert after.ordering == before.ordering
        if before.rules.rate_limit != rules.rate_limit:
            self.next_beat = carried_over(rules.rate_limit, self.next_beat, self.wait(self.store.now()))
        self.queue = after

    @rule(kind=st.sampled_from(["one", "two", "two", "none"]))
    def hold_or_release_a_type(self, kind: str) -> None:
        job_type = f"{self.name}-{kind}"
        self.held ^= {job_type}
        self.wait(self.store.hold_type(NAMESPACE, job_type, held=job_type in self.held))

    @rule(place=st.integers(0, 30), event=st.sampled_from([events.Cancel(), events.Pause()]))
    def take_one_out(self, place: int, event: events.Event) -> None:
        """One that is ready, with its refund where it stood in order."""
        ready = self.standing(Ready)
        if not ready:
            return
        key = ready[place % len(ready)]
        self.stands[key] = type(self.wait(self.scene.happen(key, event)).row)
        assert self.stands[key] in (Ended, Waiting)
        fair_key = self.jobs[key].fair_key or ""
        if key in self.in_order:
            self.in_order.remove(key)
            self.disturbed.add(fair_key)
            self.wait(self.store.refund(NAMESPACE, self.name, fair_key, 1))

    @rule()
    def resume_one(self) -> None:
        for key in self.standing(Waiting)[:1]:
            self.wait(self.scene.happen(key, events.Resume()))
            self.stands[key] = Ready

    @rule(count=st.integers(1, 4), event=st.sampled_from(ENDS))
    def end(self, count: int, event: events.Event) -> None:
        self.scene.now += SECOND
        keys = self.standing(Lease)[:count]
        records = self.wait(self.store.load(keys))
        changes = [self.scene.decide(records[key], event) for key in keys]
        saved = self.wait(self.store.save(changes, self.scene.now))
        assert saved.done == set(keys)
        counts = bool(keys) and self.queue.rules.max_concurrency is not None
        assert saved.queues == ({self.queue.queue_id} if counts else set())
        for change in changes:
            self.stands[change.id] = type(change.row) if isinstance(change, Requeue) else Ended
            assert self.stands[change.id] in (Ready, Ended)

    @rule()
    def forget(self) -> None:
        while self.wait(self.store.forget(0, 100)):
            pass

    def job_type_of(self, lane_id: int) -> str:
        lane = self.store.lane(lane_id)
        assert lane is not None
        return lane.job_type

    def put_in_order(self, limit: int) -> list[int]:
        """All that is ready; the lanes where it stands then."""
        lanes: set[int] = set()
        for lane_id in self.wait(self.store.occupied_lanes()):
            lane = self.store.lane(lane_id)
            assert lane is not None
            if lane.queue == self.name:
                lanes.add(lane_id)
                while (ordered := self.wait(self.store.put_in_order(lane_id, limit))).moved:
                    assert 0 < ordered.moved <= limit
                    lanes |= ordered.lanes
        self.in_order = set(self.standing(Ready))
        return sorted(lanes)

    @rule(count=st.integers(1, 8), limit=st.sampled_from([2, 7, 100]), greedy=st.booleans())
    def claim(self, count: int, limit: int, greedy: bool) -> None:
        """As nodes do it: put in order, look at the heads, claim the first of them. One that is greedy asks for more
        than the limits allow."""
        lanes = self.put_in_order(limit)
        heads: dict[int, list[int]] = self.wait(self.store.heads(lanes, 1000))
        ranks = self.look_at(heads)
        now: int = self.wait(self.store.now())
        running = len(self.standing(Lease))
        starts = Room(rules=self.queue.rules, running=running, next_beat=self.next_beat).starts(now)
        free = {lane_id: found for lane_id, found in heads.items() if self.job_type_of(lane_id) not in self.held}
        line = sorted((place, lane_id) for lane_id, found in free.items() for place in found)
        first = line[: count if greedy or starts is None else min(count, starts)]
        allowed = 0 if self.queue.paused else len(first) if starts is None else min(len(first), starts)
        orders = [
            Order(lane_id, self.worker.id, number, self.queue.rules.limited)
            for lane_id, number in Counter(lane_id for _, lane_id in first).items()
        ]
        self.watch_shares()
        claimed = self.wait(self.store.claim(orders, self.scene.new_nonce(), self.scene.now))
        keys = {one.lease.id for one in claimed}
        assert len(keys) == len(claimed) == allowed
        assert keys <= set(self.standing(Ready))
        assert all(one.job == self.jobs[one.lease.id] and one.lease.lane_id == one.job.lane_id for one in claimed)
        if allowed == len(first):
            assert sorted(ranks[key] for key in keys) == [place for place, _ in first]
        elif allowed:
            self.disturb_all()
        if self.queue.rules.rate_limit is not None and claimed:
            self.next_beat = after_starts(self.queue.rules.rate_limit, self.next_beat, now, len(claimed))
        self.stands.update((key, Lease) for key in keys)
        self.in_order -= keys
        self.check_shares([one.job.fair_key for one in claimed])

    @rule(rounds=st.integers(1, 3), count=st.integers(1, 6), fair_key=st.sampled_from("abc"), more=st.integers(0, 3))
    def work(self, rounds: int, count: int, fair_key: str, more: int) -> None:
        """What goes on most of the time."""
        for _ in range(rounds):
            self.claim(count, 100, False)
            self.end(count, events.Succeed())
            if more:
                self.submit(more, fair_key, "two", 5)

    @rule(count=st.integers(3, 8))
    def come_back(self, count: int) -> None:
        """A key that had nothing to do has many jobs again."""
        for fair_key in sorted(set("abc") - set(self.fair_keys())):
            self.submit(count, fair_key, "one", 5)
            self.work(2, 2, fair_key, 0)

    def look_at(self, heads: Mapping[int, Sequence[int]]) -> dict[JobKey, int]:
        """All that is ready is there once, in a lane of the queue's ordering, ranked by its policy."""
        ordering = self.queue.ordering
        ready: dict[JobKey, Record] = self.wait(self.store.load(self.standing(Ready)))
        ranks = {key: record.row.rank for key, record in ready.items() if isinstance(record.row, Ready)}
        lanes = {lane_id: self.store.lane(lane_id) for lane_id, found in heads.items() if found}
        assert all(lane is not None and lane.ordering == ordering for lane in lanes.values())
        assert sorted(place for found in heads.values() for place in found) == sorted(ranks.values())
        if self.queue.rules.policy != "fair":
            for key, record in ready.items():
                assert ranks[key] == rank(self.jobs[key].priority, record.row.due, ordering)
        return ranks

    def disturb_all(self) -> None:
        self.disturbed.update(self.fair_keys())

    def watch_shares(self) -> None:
        """Follow the pairs of keys that both have jobs, and had all the time, as they were put in order."""
        if self.held:
            self.disturb_all()
        self.disturbed &= set(self.fair_keys())
        steady = sorted(set(self.fair_keys()) - self.disturbed) if self.queue.rules.policy == "fair" else []
        self.pairs = {pair: self.pairs.get(pair, Counter()) for pair in itertools.combinations(steady, 2)}

    def check_shares(self, started: Sequence[str]) -> None:
        """Of such a pair none is more than a job of each ahead, by weight."""
        left = self.fair_keys()
        for (one, other), starts in self.pairs.items():
            starts.update(started)
            if left[one] and left[other] and not {one, other} & self.disturbed:
                costs = [cost(self.queue.rules.weights.get(key, 1.0)) for key in (one, other)]
                apart = starts[one] * costs[0] - starts[other] * costs[1]
                assert abs(apart) <= sum(costs), (one, other, starts)
        self.pairs = {pair: starts for pair, starts in self.pairs.items() if left[pair[0]] and left[pair[1]]}

    @invariant()
    def the_store_tells_what_the_model_tells(self) -> None:
        records = self.wait(self.store.load(list(self.jobs)))
        assert {key: type(record.row) for key, record in records.items()} == self.stands
        assert all(record.row.lane_id == record.job.lane_id for record in records.values())
        ready = [record.row.due for record in records.values() if isinstance(record.row, Ready)]
        running = len(self.standing(Lease))
        crowd = Crowd(waiting=len(ready), running=running, oldest=min(ready, default=None))
        assert self.wait(self.store.crowds([self.queue.queue_id])) == {self.queue.queue_id: crowd}
        room = self.wait(self.store.rooms([self.queue.queue_id]))[self.queue.queue_id]
        assert room.rules == self.queue.rules
        if self.queue.rules.max_concurrency is not None:
            assert room.running == running
        now = self.wait(self.store.now())
        expected = Room(rules=self.queue.rules, running=running, next_beat=self.next_beat)
        assert room.starts(now) == expected.starts(now)

    def teardown(self) -> None:
        for job_type in self.held:
            self.wait(self.store.hold_type(NAMESPACE, job_type, held=False))
        self.wait(self.store.put_queue(self.wanted(), expected=None, now=self.scene.now))
        while keys := self.standing(Ready) + self.standing(Lease):  # leave nothing behind for the next run to look at
            for key in keys:
                self.stands[key] = type(self.wait(self.scene.happen(key, events.Cancel())).row)
                if self.stands[key] is Lease:
                    self.stands[key] = type(self.wait(self.scene.happen(key, events.Stopped())).row)
        self.wait(self.store.remove_worker(self.worker.id))


def test_random_days_of_a_queue_go_as_the_rules_have_it(make_store: MakeStore) -> None:
    async def opened() -> Store:
        store = make_store()
        await store.open()
        return store

    with asyncio.Runner() as runner:
        store = runner.run(opened())

        class DaysHere(Days):
            pass

        DaysHere.runner, DaysHere.store, DaysHere.ids = runner, store, IdMaker(node=200)
        try:
            run_state_machine_as_test(
                DaysHere,
                settings=settings(
                    max_examples=25,
                    stateful_step_count=15,
                    deadline=None,
                    derandomize="CI" in os.environ,
                    suppress_health_check=[HealthCheck.too_slow],
                ),
            )
        finally:
            runner.run(store.close())
