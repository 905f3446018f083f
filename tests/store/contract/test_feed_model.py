"""Random lives and random graphs, followed through the record: it tells of every job each status it went through."""

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from foliot.domain.feed import ALL_STATUSES, Entry, Position, read_position
from foliot.domain.ids import IdMaker, JobKey
from foliot.domain.job import Row
from foliot.domain.status import STATUSES, status_of
from foliot.store.base import Store
from tests.store.conftest import MakeStore
from tests.store.contract.test_graph_model import Graphs
from tests.store.contract.test_model import Lives


class Observed(dict[JobKey, Any]):
    """What a model knows of its jobs, with each status that they went through."""

    def __init__(self, row_of: Callable[[Any], Row]) -> None:
        super().__init__()
        self._row_of = row_of
        self.lived: dict[JobKey, list[str]] = {}

    def __setitem__(self, key: JobKey, value: Any) -> None:
        super().__setitem__(key, value)
        status = status_of(self._row_of(value))
        lived = self.lived.setdefault(key, [])
        if lived[-1:] != [status]:
            lived.append(status)


class Followed(RuleBasedStateMachine):
    """A model whose store is read now and then, a little at a time."""

    store: Store
    runner: asyncio.Runner
    observed: Observed

    def begin_to_follow(self) -> None:
        self.position: Position = self.runner.run(self.store.feed_end())
        self.told: dict[JobKey, list[Entry]] = {}

    @rule(limit=st.integers(1, 4))
    def read_on(self, limit: int) -> None:
        self.read(limit)

    def read(self, limit: int) -> bool:
        """Whether there may be more."""
        reading = self.runner.run(self.store.read_feed(self.position, limit, mask=ALL_STATUSES))
        for batch in reading.batches:
            assert not self.position.covers(batch)
            for entry in batch.entries:
                self.told.setdefault(entry.id, []).append(entry)
        self.position = reading.position
        return bool(reading.more)

    @rule()
    def come_back_with_a_saved_position(self) -> None:
        assert read_position(self.position.text()) == self.position
        self.position = read_position(self.position.text()) or Position()

    def check_what_was_told(self) -> None:
        while self.read(7):
            pass
        records = self.runner.run(self.store.load(list(self.observed)))
        for key, lived in self.observed.lived.items():
            told = self.told.pop(key)
            versions = [entry.version for entry in told]
            assert versions == sorted(set(versions))
            assert [STATUSES[entry.status] for entry in told] == lived
            assert lived[-1] == status_of(records[key].row)
            assert told[-1].version <= records[key].row.version
        assert self.told == {}


class FollowedLives(Followed, Lives):
    def __init__(self) -> None:
        super().__init__()
        self.records = self.observed = Observed(lambda record: record.row)
        self.begin_to_follow()

    def teardown(self) -> None:
        self.check_what_was_told()
        super().teardown()


class FollowedGraphs(Followed, Graphs):
    def __init__(self) -> None:
        super().__init__()
        self.rows = self.observed = Observed(lambda row: row)
        self.begin_to_follow()

    def teardown(self) -> None:
        self.check_what_was_told()
        super().teardown()


@pytest.mark.parametrize("machine", [FollowedLives, FollowedGraphs], ids=["lives", "graphs"])
def test_the_record_tells_every_status_that_a_job_went_through(make_store: MakeStore, machine: type[Any]) -> None:
    async def opened() -> Store:
        store = make_store()
        await store.open()
        return store

    with asyncio.Runner() as runner:
        store = runner.run(opened())
        machine_here = type("MachineHere", (machine,), {"runner": runner, "store": store, "ids": IdMaker(node=200)})
        try:
            run_state_machine_as_test(
                machine_here,
                settings=settings(
                    max_examples=15,
                    stateful_step_count=30,
                    deadline=None,
                    derandomize="CI" in os.environ,
                    suppress_health_check=[HealthCheck.too_slow],
                ),
            )
        finally:
            runner.run(store.close())
