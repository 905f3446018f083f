"""Where a node traces, runs of schedules begin a trace, and a job comes with the runs of those that it waited for."""

from collections.abc import Iterator

import msgspec
import pytest

from foliot.domain.access import ADMIN
from foliot.telemetry import tracing
from foliot.telemetry.traceparent import of_run
from foliot.wire import SubmitBody
from tests.service.almanac import open_almanac, run_id
from tests.service.network import Network, open_network
from tests.telemetry.collector import Collector

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector().open() as opened:
        tracing.start(opened.url, service="foliot", version="1")
        yield opened
        tracing.stop()


async def submit(network: Network, trace: str | None, **fields: object) -> str:
    body = msgspec.convert({"job_type": "echo", **fields}, SubmitBody)
    return (await network.services.submit.one(body, b"", ADMIN, None, trace)).job_id


async def test_a_job_comes_with_the_runs_of_its_parents(collector: Collector) -> None:
    async with open_network() as network:
        worker = await network.worker()
        traced = await submit(network, TRACE)
        plain = await submit(network, None)
        ended = await submit(network, TRACE, delay="1h")
        waits = [{"job_id": each, "on": "any"} for each in (traced, plain, ended)]
        child = await submit(network, None, job_id="child", depends_on=waits)
        await network.cancel(ended)  # it never ran
        parents = {job.job_id: job for job in await network.take(worker)}
        assert set(parents) == {traced, plain}
        for parent in parents.values():
            await network.report(worker, parent, "success")
        await network.settle()
        (job,) = await network.take(worker)
        assert job.job_id == child
        assert job.trace_links == [of_run(TRACE, parents[traced].idempotency_key, 1)]
        assert job.trace is msgspec.UNSET


async def test_a_run_of_a_schedule_begins_a_trace(collector: Collector) -> None:
    async with open_almanac() as almanac:
        await almanac.create(every="10s", overlap="allow")
        await almanac.move_to(20)
        first, second = [(await almanac.services.query.find(run_id(due), ADMIN)).job.trace for due in (10, 20)]
    tracing.stop()
    spans = {f"00-{span.trace}-{span.span}" for span in collector.named("foliot.fire")}
    assert first is not None
    assert second is not None
    assert spans == {first.rpartition("-")[0], second.rpartition("-")[0]}
    assert len(spans) == 2
