"""A worker never runs more than it offers, asks for all that is free, and gives back what its jobs held."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from foliot.domain.errors import BadInput
from foliot.sdk.context import JobContext
from foliot.sdk.handler import Handler
from foliot.worker import Worker
from tests.worker.conftest import running
from tests.worker.lone_runner import LoneRunner, assigned, error_of
from tests.worker.real_node import KEY, Jobs, NodeProcess
from tests.worker.sample_handlers import HANDLERS


class Ledger:
    """Handlers that write down what they hold between their start and their end."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.begun: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}
        self.changed = asyncio.Event()
        self.handlers = {
            "brief": Handler(name="brief", function=self.brief),
            "gated": Handler(name="gated", function=self.gated),
        }

    async def brief(self, payload: bytes, context: JobContext) -> None:
        self._take(context)
        try:
            await asyncio.sleep(0.001)
        finally:
            self._give_back(context)

    async def gated(self, payload: bytes, context: JobContext) -> str:
        self._take(context)
        try:
            await self.gates.setdefault(context.job_id, asyncio.Event()).wait()
        finally:
            self._give_back(context)
        return "opened"

    async def until(self, *begun: str) -> None:
        """Until exactly these have begun, in this order."""
        while len(self.begun) < len(begun):
            self.changed.clear()
            await self.changed.wait()
        assert self.begun == list(begun)

    def open(self, job_id: str) -> None:
        self.gates[job_id].set()

    def _take(self, context: JobContext) -> None:
        self.held.update(context.resources)
        self.most |= self.held
        self.begun.append(context.job_id)
        self.changed.set()

    def _give_back(self, context: JobContext) -> None:
        self.held.subtract(context.resources)


def free_of(lone: LoneRunner) -> dict[str, int]:
    return lone.runner.free


async def test_what_a_node_sends_beyond_the_offer_waits_for_room() -> None:
    ledger = Ledger()
    lone = LoneRunner(ledger.handlers, resources={"cpu": 2})
    assert free_of(lone) == {"slot": 8000, "cpu": 2000}
    lone.begin(*(assigned("gated", {}, number=number, resources={"cpu": 1}) for number in (1, 2, 3)))
    await ledger.until("j1", "j2")
    assert free_of(lone) == {"slot": 5000}
    ledger.open("j1")
    await ledger.until("j1", "j2", "j3")
    for job in ("j2", "j3"):
        ledger.open(job)
    await lone.runner.wait_idle()
    assert free_of(lone) == {"slot": 8000, "cpu": 2000}
    assert ledger.most == {"slot": 2, "cpu": 2}
    await lone.close()


async def test_a_big_job_that_waits_is_stepped_over_and_keeps_its_claim() -> None:
    ledger = Ledger()
    lone = LoneRunner(ledger.handlers, resources={"cpu": 2})
    lone.begin(assigned("gated", {}, number=1, resources={"cpu": 1}))
    lone.begin(assigned("gated", {}, number=2, resources={"cpu": 2}))
    lone.begin(assigned("gated", {}, number=3, resources={"cpu": 0.5}))
    await ledger.until("j1", "j3")
    assert free_of(lone) == {"slot": 5000}, "what is left is asked for by nobody else"
    ledger.open("j3")
    await lone.ended()
    assert free_of(lone) == {"slot": 6000}
    ledger.open("j1")
    await ledger.until("j1", "j3", "j2")
    await lone.close()


async def test_a_job_that_holds_more_than_there_will_ever_be_is_given_back_as_a_failure() -> None:
    lone = LoneRunner(HANDLERS, resources={"cpu": 2})
    report, _ = await lone.run(assigned("add", {"a": 1, "b": 1}, resources={"cpu": 3}))
    assert (report.status, error_of(report).code) == ("retriable_failure", "resources")
    report, _ = await lone.run(assigned("add", {"a": 1, "b": 1}, number=2, resources={"gpu": 1}))
    assert (report.status, error_of(report).code) == ("retriable_failure", "resources")
    assert free_of(lone) == {"slot": 8000, "cpu": 2000}
    await lone.close()


@pytest.mark.parametrize("how", ["cancel", "fence", "fence_all", "unknown", "fail"])
async def test_whatever_ends_an_attempt_gives_back_what_it_held(how: str) -> None:
    lone = LoneRunner(HANDLERS, resources={"cpu": 2})
    job_type = {"unknown": "no.such.type", "fail": "fail"}.get(how, "sleep")
    lone.begin(assigned(job_type, {}, resources={"cpu": 2}))
    if job_type == "sleep":
        assert free_of(lone) == {"slot": 7000}
        await lone.said("begun")
    match how:
        case "cancel":
            lone.runner.cancel("t1")
        case "fence":
            lone.runner.fence("j1", 1)
        case "fence_all":
            lone.runner.fence_all()
    await lone.runner.wait_idle()
    assert free_of(lone) == {"slot": 8000, "cpu": 2000}
    await lone.close()


async def test_without_a_free_slot_or_when_leaving_nothing_is_asked_for() -> None:
    lone = LoneRunner(HANDLERS, concurrency=1, resources={"cpu": 2}, stop_grace=3600)
    lone.begin(assigned("sleep", {}, resources={"cpu": 1}))
    assert free_of(lone) == {}
    lone.runner.cancel("t1")
    await lone.runner.wait_idle()
    assert free_of(lone) == {"slot": 1000, "cpu": 2000}
    lone.runner.take_no_more()
    assert free_of(lone) == {}
    await lone.close()


@pytest.mark.parametrize(
    ("resources", "field"),
    [({"cpu": -1}, "resources.cpu"), ({"memory": "much"}, "resources.memory"), ({"slot": 3}, "resources.slot")],
)
def test_an_offer_that_makes_no_sense_is_refused_before_anything_starts(
    resources: dict[str, float | str], field: str
) -> None:
    with pytest.raises(BadInput, match=field):
        Worker("http://127.0.0.1:1", KEY, HANDLERS, resources=resources)


def offering(node: NodeProcess, jobs: Jobs, ledger: Ledger, **resources: float | str) -> Worker:
    queues, labels = [jobs.queue], {"zone": "eu"}
    return Worker(
        node.url, KEY, ledger.handlers, queues=queues, concurrency=8, resources=resources, labels=labels, stop_grace=0.5
    )


async def test_jobs_of_many_kinds_never_hold_more_than_the_worker_offers(shared_node: NodeProcess, jobs: Jobs) -> None:
    kinds: Sequence[dict[str, float]] = ({}, {"cpu": 0.5}, {"cpu": 2}, {"cpu": 1, "gpu": 1}, {"cpu": 4}, {"slot": 3})
    ledger = Ledger()
    found = [await jobs.submit("brief", resources=kinds[number % len(kinds)]) for number in range(120)]
    async with running(offering(shared_node, jobs, ledger, cpu=4, gpu=1)) as worker:
        for job_id in found:
            job, _ = await jobs.ended(job_id)
            assert (job["status"], job["attempt"]) == ("completed", 1)
        assert ledger.most["slot"] <= 8
        assert ledger.most["cpu"] == 4, "what is offered is also used"
        assert ledger.most["gpu"] == 1
        assert not any(ledger.held.values())
        while worker.unacknowledged:  # noqa: ASYNC110 - its last report is on its way
            await asyncio.sleep(0)
        assert worker._runner.free == {"slot": 8000, "cpu": 4000, "gpu": 1000}


async def test_what_a_cancelled_job_held_is_used_by_the_next(shared_node: NodeProcess, jobs: Jobs) -> None:
    ledger = Ledger()
    async with running(offering(shared_node, jobs, ledger, cpu=4)):
        first = await jobs.submit("gated", resources={"cpu": 3})
        await ledger.until(first)
        second = await jobs.submit("gated", resources={"cpu": 3})
        small = await jobs.submit("gated", resources={"cpu": 1})
        await ledger.until(first, small)
        assert (await jobs.get(f"/jobs/{second}"))["status"] == "queued"
        await jobs.cancel(first)
        await ledger.until(first, small, second)
        ledger.open(second)
        ledger.open(small)
        assert (await jobs.ended(second))[0]["status"] == "completed"


async def test_a_job_that_needs_what_several_jobs_gave_back_starts_when_the_last_has(
    shared_node: NodeProcess, jobs: Jobs
) -> None:
    """The worker's waiting call says one; three more come back one after the other."""
    ledger = Ledger()
    async with running(offering(shared_node, jobs, ledger, cpu=4)):
        found = []
        for _ in range(3):
            found.append(await jobs.submit("gated", resources={"cpu": 1}))
            await ledger.until(*found)
        big = await jobs.submit("gated", resources={"cpu": 4}, requires={"zone": "eu"})
        never = await jobs.submit("gated", resources={"cpu": 4}, requires={"zone": "us"}, priority="high")
        for job_id in found:
            ledger.open(job_id)
        await ledger.until(*found, big)
        ledger.open(big)
        assert (await jobs.ended(big))[0]["status"] == "completed"
        assert (await jobs.get(f"/jobs/{never}"))["status"] == "queued"


async def test_a_handler_in_a_process_is_told_what_it_holds(shared_node: NodeProcess, jobs: Jobs) -> None:
    handlers = {"told": Handler(name="told", function=what_it_holds, isolation="process")}
    worker = Worker(shared_node.url, KEY, handlers, queues=[jobs.queue], resources={"memory": "8Gi"})
    async with running(worker):
        job_id = await jobs.submit("told", resources={"memory": "1Gi"}, timeout=7)
        assert (await jobs.ended(job_id))[0]["status"] == "completed"
        assert await jobs.get(f"/jobs/{job_id}/result") == [{"slot": 1, "memory": 2**30}, 7]


def what_it_holds(payload: bytes, context: JobContext) -> object:
    return [msgspec.to_builtins(context.resources), context.timeout]
