"""A job's way in one trace, as a real collector gets it from a real node and a real worker; and nothing at all where
nobody asked for traces."""

import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from msgspec import Raw

from foliot.sdk.async_client import AsyncClient
from foliot.wire import RetryBody, ScheduleBody, SubmitBody, TemplateBody, encode
from tests.processes import KEY, REGISTERED, Process, Programs
from tests.telemetry.collector import Collector, Span

CALLER = "b7ad6b7169203331"
QUICKLY = RetryBody(backoff="fixed", initial=0.01, jitter=0)


class Site:
    """A node and a worker of `traced_app` that trace to a collector."""

    def __init__(self, programs: Programs, collector: Collector, *words: str) -> None:
        self.collector = collector
        traced = {"FOLIOT_OTLP_ENDPOINT": collector.url}
        self.node, self.url = programs.serve("node", *words, **traced)
        self.worker: Process = programs.start(
            "worker", "worker", "tests.telemetry.traced_app:app", FOLIOT_URL=self.url, **traced
        )
        self.worker.wait_for(REGISTERED)

    async def run(self, body: SubmitBody, headers: dict[str, str] | None = None) -> str:
        """Submits, as any program would over HTTP, and waits for the end."""
        async with AsyncClient(self.url, KEY) as client:
            _, _, answer = await client.request("POST", "/jobs", encode(body), headers)
            job_id = str(json.loads(answer)["job_id"])
            await client.wait(job_id)
            return job_id


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One for all tests, each of which has traces of its own."""
    with Collector().open() as collector, Programs(tmp_path_factory.mktemp("site")) as programs:
        yield Site(programs, collector)


@pytest.fixture
def trace() -> str:
    return secrets.token_hex(16)


def sent(trace: str, *, sampled: bool = True) -> dict[str, str]:
    return {"traceparent": f"00-{trace}-{CALLER}-0{int(sampled)}"}


async def test_a_job_runs_in_its_callers_trace(site: Site, trace: str) -> None:
    job_id = await site.run(SubmitBody(job_type="nest", queue="mail"), sent(trace))
    names = ("foliot.submit", "foliot.run nest", "foliot.queue", "own in a loop")
    submit, run, queue, own = [site.collector.wait(name, trace=trace)[0] for name in names]
    assert [submit.parent, run.parent, queue.parent, own.parent] == [CALLER, submit.span, submit.span, run.span]
    assert (submit.service, run.service) == ("foliot", "foliot-worker")
    assert run.about == {
        "foliot.job_id": job_id,
        "foliot.job_type": "nest",
        "foliot.queue": "mail",
        "foliot.attempt": 1,
        "foliot.outcome": "success",
    }
    assert queue.start <= queue.end
    assert run.links == []


async def test_without_a_caller_the_submit_begins_the_trace(site: Site) -> None:
    job_id = await site.run(SubmitBody(job_type="nest"), {"traceparent": "junk"})
    (run,) = site.collector.wait("foliot.run nest", job_id=job_id)
    (submit,) = site.collector.wait("foliot.submit", trace=run.trace)
    assert (submit.parent, run.parent) == ("", submit.span)


async def test_what_the_caller_does_not_sample_is_not_sent(site: Site, trace: str) -> None:
    await site.run(SubmitBody(job_type="nest"), sent(trace, sampled=False))
    job_id = await site.run(SubmitBody(job_type="nest_in_thread"), sent(secrets.token_hex(16)))
    site.collector.wait("foliot.run nest_in_thread", job_id=job_id)
    assert [span for span in site.collector.spans if span.trace == trace] == []


async def test_each_retry_links_to_the_attempt_before_it(site: Site, trace: str) -> None:
    await site.run(SubmitBody(job_type="flaky", retry=QUICKLY), sent(trace))
    first, second, third = site.collector.wait("foliot.run flaky", 3, trace=trace)
    (submit,) = site.collector.wait("foliot.submit", trace=trace)
    assert {span.parent for span in (first, second, third)} == {submit.span}
    assert _linked(first) == []
    assert _linked(second) == [("retry_of", first.trace, first.span)]
    assert _linked(third) == [("retry_of", second.trace, second.span)]
    assert [span.about["foliot.outcome"] for span in (first, second, third)] == [
        "retriable_failure",
        "retriable_failure",
        "success",
    ]
    assert [span.failed for span in (first, second, third)] == ["retriable_failure", "retriable_failure", None]
    assert "secret" not in str(site.collector.spans), "an error's message may hold what the payload held"


async def test_a_dependent_links_to_the_runs_of_its_parents(site: Site, trace: str) -> None:
    async with AsyncClient(site.url, KEY) as client:
        flaky = SubmitBody(job_id="flaky", job_type="flaky", retry=QUICKLY)
        await client.request("POST", "/jobs", encode(flaky), sent(trace))
        await client.submit(SubmitBody(job_id="plain", job_type="nest_in_thread"))
        await client.submit(SubmitBody(job_id="child", job_type="nest", depends_on=["flaky", "plain"]))
        assert (await client.wait("child")).status == "completed"
    (child,) = site.collector.wait("foliot.run nest", job_id="child")
    (plain,) = site.collector.wait("foliot.run nest_in_thread", job_id="plain")
    *_, last = site.collector.wait("foliot.run flaky", 3, trace=trace)
    assert sorted(_linked(child)) == sorted(
        [("depends_on", last.trace, last.span), ("depends_on", plain.trace, plain.span)]
    )
    assert child.trace not in (last.trace, plain.trace), "it was submitted by another request"


async def test_a_job_that_a_handler_submits_carries_its_trace_on(site: Site, trace: str) -> None:
    await site.run(SubmitBody(job_type="parent"), sent(trace))
    (child,) = site.collector.wait("foliot.run nest", trace=trace)
    (run,) = site.collector.wait("foliot.run parent", trace=trace)
    (submit,) = [span for span in site.collector.wait("foliot.submit", 2, trace=trace) if span.parent == run.span]
    assert child.parent == submit.span


@pytest.mark.parametrize(("job_type", "own"), [("nest_in_thread", "a thread"), ("nest_in_process", "a process")])
async def test_a_handlers_own_spans_belong_to_its_run_wherever_it_runs(
    site: Site, trace: str, job_type: str, own: str
) -> None:
    await site.run(SubmitBody(job_type=job_type), sent(trace))
    (made,) = site.collector.wait(f"own in {own}", trace=trace)
    (run,) = site.collector.wait(f"foliot.run {job_type}", trace=trace)
    assert made.parent == run.span


async def test_a_run_of_a_schedule_begins_a_trace(site: Site) -> None:
    async with AsyncClient(site.url, KEY) as client:
        body = ScheduleBody(schedule_id="often", every="1h", job=TemplateBody(job_type="nest_in_thread"))
        await client.create_schedule(body)
        await client.trigger_schedule("often")
    (fire,) = site.collector.wait("foliot.fire")
    (run,) = site.collector.wait("foliot.run nest_in_thread", trace=fire.trace)
    assert (run.parent, fire.parent) == (fire.span, "")
    assert fire.about["foliot.schedule_id"] == "often"


async def test_an_http_job_carries_the_trace_on_and_what_is_left_is_sent_at_the_end(
    programs: Programs, collector: Collector, database_url: str, trace: str
) -> None:
    where = urlsplit(collector.url).netloc
    site = Site(programs, collector, "--http-allow", where, "--database", database_url)
    payload = {"url": f"{collector.url}/called", "method": "POST"}
    await site.run(SubmitBody(job_type="http", payload=_raw(payload)), sent(trace))
    own = payload | {"headers": {"TraceParent": "mine"}}
    await site.run(SubmitBody(job_type="http", payload=_raw(own)), sent(trace))
    assert site.worker.stop() == 0, site.worker.said
    assert site.node.stop() == 0, site.node.said
    run, _ = collector.named("foliot.run http")
    (_, first), (_, second) = collector.requests
    assert first["traceparent"] == f"00-{trace}-{run.span}-01"
    assert second["traceparent"] == "mine", "a payload's own header is left as it is"


async def test_a_collector_that_is_away_holds_nothing_up(programs: Programs, free_port: int) -> None:
    node, url = programs.serve("node", FOLIOT_OTLP_ENDPOINT=f"http://user:hunter2@127.0.0.1:{free_port}")
    async with AsyncClient(url, KEY) as client:
        job_id = await client.submit(SubmitBody(job_type="echo"))
        assert (await client.wait(job_id)).status == "completed"
    assert node.stop() == 0
    assert "Traceback" not in node.said
    assert "hunter2" not in node.said


async def test_where_nobody_asks_for_traces_there_is_nothing_of_them(programs: Programs, collector: Collector) -> None:
    where = urlsplit(collector.url).netloc
    node, url = programs.serve("node", "--http-allow", where)
    async with AsyncClient(url, KEY) as client:
        payload = {"url": f"{collector.url}/called", "method": "POST"}
        _, _, answer = await client.request(
            "POST", "/jobs", encode(SubmitBody(job_type="http", payload=_raw(payload))), sent(secrets.token_hex(16))
        )
        assert (await client.wait(json.loads(answer)["job_id"])).status == "completed"
    assert node.stop() == 0
    ((_, headers),) = collector.requests
    assert "traceparent" not in headers
    assert collector.spans == []


def test_without_tracing_nothing_of_opentelemetry_is_imported() -> None:
    code = """
import asyncio, sys, tempfile
from foliot import Foliot

app = Foliot(f"sqlite:///{tempfile.mkdtemp()}/jobs.db")

@app.job
async def add(a: int, b: int) -> int:
    return a + b

with app:
    assert add.submit(1, 2).result() == 3
import foliot.main.server, foliot.worker.child
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15)
    assert (shown.stdout, shown.stderr) == ("[]\n", "")


def test_tracing_without_its_extra_says_what_to_install() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
from foliot.cli import main
main(["serve", "--port", "0", "--data-dir", sys.argv[1]])
"""
    environ = {"FOLIOT_OTLP_ENDPOINT": "http://127.0.0.1:4318", "PATH": ""}
    shown = subprocess.run(
        [sys.executable, "-c", code, "data"], env=environ, capture_output=True, text=True, timeout=15
    )
    assert shown.returncode == 2
    assert "pip install 'foliot[otel]'" in shown.stderr
    assert "Traceback" not in shown.stderr


def _linked(span: Span) -> list[tuple[str, str, str]]:
    return [(str(link.about["foliot.link"]), link.trace, link.span) for link in span.links]


def _raw(value: object) -> Raw:
    return Raw(encode(value))
