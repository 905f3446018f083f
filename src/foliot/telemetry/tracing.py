"""Traces: OpenTelemetry behind a seam of ours.

Off unless `start` is called; then nothing of OpenTelemetry is imported, and who would make a span looks at `active()`
and finds None. Spans go out in batches as OTLP over HTTP, from a thread of their own; where the collector does not
answer they are dropped, and nothing waits for it. What is sampled is the caller's to decide (the flags of its
`traceparent`); where there is no caller, the sampler that `OTEL_TRACES_SAMPLER` names.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from foliot.telemetry import traceparent

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Link, Span, SpanContext

PATH = "/v1/traces"
QUEUE = 16_384  # spans that wait for the collector; above it they are dropped
EXPORT_SECONDS = 5.0
BATCH_SECONDS = 2.0
STOP_SECONDS = 3.0
LINKS = 32

_active: "Tracer | None" = None
_next_span: ContextVar[int] = ContextVar("foliot_next_span", default=0)


class MissingExtra(Exception):
    """Traces are asked for, and what makes them is not installed."""


def active() -> "Tracer | None":
    """None while there is no tracing."""
    return _active


def current() -> str | None:
    """The context of the span that is current here, whoever made it; None where OpenTelemetry is not in use in this
    process."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    found = api.get_current_span().get_span_context()
    return traceparent.show(found.trace_id, found.span_id, int(found.trace_flags)) if found.is_valid else None


def start(endpoint: str, *, service: str, version: str, batch_seconds: float = BATCH_SECONDS) -> "Tracer":
    """Trace from now on. `endpoint` is a collector's address, with or without its path for traces. Spans that handlers
    make by themselves go there too, unless their program has chosen a provider of its own. Raises `MissingExtra`."""
    global _active
    if _active is None:
        try:
            provider = _provider(endpoint, service, version, batch_seconds)
        except ImportError:
            raise MissingExtra(
                "otlp_endpoint is set, but OpenTelemetry is not installed here: pip install 'foliot[otel]', "
                "or take the setting away"
            ) from None
        _active = Tracer(endpoint, provider, version)
    return _active


def stop(seconds: float = STOP_SECONDS) -> None:
    """Send what is left, as far as the collector takes it within that time."""
    global _active
    if _active is not None:
        ending = threading.Thread(target=_active.provider.shutdown, name="foliot-traces", daemon=True)
        _active = None
        ending.start()
        ending.join(seconds)


class RunSpan:
    """An attempt under way; `traceparent` is what its handler's own calls carry on."""

    __slots__ = ("_span", "traceparent")

    def __init__(self, span: "Span") -> None:
        self._span = span
        self.traceparent = _shown(span)

    def end(self, outcome: str, error_code: str | None = None) -> None:
        """Only the first call counts. An error is told by its code: its message may hold what the payload held."""
        if self._span.is_recording():
            self._span.set_attribute("foliot.outcome", outcome)
            if outcome not in ("success", "released", "cancelled"):
                self._span.set_status(_error(error_code or outcome))
            self._span.end()


class Tracer:
    """Makes our spans: `foliot.submit`, `foliot.fire`, `foliot.queue` and `foliot.run <job type>`."""

    def __init__(self, endpoint: str, provider: "TracerProvider", version: str) -> None:
        self.endpoint = endpoint
        self.provider = provider
        self._tracer = provider.get_tracer("foliot", version)

    @contextmanager
    def submit(self, trace: str | None, *, route: str, jobs: int) -> Iterator[str]:
        """A request that hands in jobs, within the caller's trace or a new one. Gives the context that its jobs are
        to be kept with."""
        from opentelemetry.trace import SpanKind

        span = self._tracer.start_span(
            "foliot.submit",
            context=_parent(trace),
            kind=SpanKind.SERVER,
            attributes={"http.request.method": "POST", "http.route": route, "foliot.jobs": jobs},
        )
        try:
            yield _shown(span)
        except BaseException as error:
            span.set_status(_error(getattr(error, "code", type(error).__name__)))
            raise
        finally:
            span.end()

    def fire(self, *, schedule: str, job_type: str) -> str:
        """A run that a schedule has started: the first span of its trace. Gives its context."""
        span = self._tracer.start_span(
            "foliot.fire",
            context=_parent(None),
            attributes={"foliot.schedule_id": schedule, "foliot.job_type": job_type},
        )
        span.end()
        return _shown(span)

    def run(
        self,
        *,
        job_id: str,
        job_type: str,
        queue: str,
        attempt: int,
        key: str,
        trace: str | None,
        parents: Sequence[str],
        due: int,
        now: int,
    ) -> RunSpan:
        """An attempt begins (`due` and `now` in microseconds). Its span becomes current where this is called. It links
        to the attempt before it, and to `parents`: the runs of the jobs that it depends on."""
        from opentelemetry import context
        from opentelemetry.trace import SpanKind, set_span_in_context

        parent = _parent(trace)
        about: dict[str, Any] = {
            "foliot.job_id": job_id,
            "foliot.job_type": job_type,
            "foliot.queue": queue,
            "foliot.attempt": attempt,
        }
        links = [_link(each, "depends_on") for each in parents[:LINKS]]
        if trace is not None and attempt > 1:
            links.append(_link(traceparent.of_run(trace, key, attempt - 1), "retry_of"))
        chosen = _next_span.set(0 if trace is None else traceparent.run_span(key, attempt))
        try:
            span = self._tracer.start_span(
                f"foliot.run {job_type}", context=parent, kind=SpanKind.CONSUMER, attributes=about, links=links
            )
        finally:
            _next_span.reset(chosen)
        if trace is not None and attempt == 1 and span.is_recording():
            waited = self._tracer.start_span(
                "foliot.queue", context=parent, attributes=about, start_time=min(due, now) * 1000
            )
            waited.end(now * 1000)
        context.attach(set_span_in_context(span))
        return RunSpan(span)


def resume(trace: str) -> None:
    """What runs here from now on belongs to a span of another process."""
    from opentelemetry import context

    context.attach(_parent(trace))


def _provider(endpoint: str, service: str, version: str, batch_seconds: float) -> "TracerProvider":
    from os import environ

    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        """Random, but for the span whose id follows from its attempt."""

        def generate_span_id(self) -> int:
            return _next_span.get() or super().generate_span_id()

    about: dict[str, Any] = {"service.version": version}
    if not environ.get("OTEL_SERVICE_NAME") and "service.name=" not in environ.get("OTEL_RESOURCE_ATTRIBUTES", ""):
        about["service.name"] = service
    provider = TracerProvider(resource=Resource.create(about), id_generator=Ids(), shutdown_on_exit=False)
    address = endpoint.rstrip("/")
    exporter = OTLPSpanExporter(endpoint=address if address.endswith(PATH) else address + PATH, timeout=EXPORT_SECONDS)
    provider.add_span_processor(
        BatchSpanProcessor(exporter, max_queue_size=QUEUE, schedule_delay_millis=batch_seconds * 1000)
    )
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    return provider


def _parent(trace: str | None) -> "Context":
    """A context in which only that span is current; none is where there is no trace: who calls is no part of it."""
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, set_span_in_context

    return Context() if trace is None else set_span_in_context(NonRecordingSpan(_context(trace)), Context())


def _context(trace: str) -> "SpanContext":
    from opentelemetry.trace import SpanContext, TraceFlags

    trace_id, span_id, flags = traceparent.split(trace)
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags))


def _link(trace: str, kind: str) -> "Link":
    from opentelemetry.trace import Link

    return Link(_context(trace), {"foliot.link": kind})


def _shown(span: "Span") -> str:
    found = span.get_span_context()
    return traceparent.show(found.trace_id, found.span_id, int(found.trace_flags))


def _error(description: str) -> Any:
    from opentelemetry.trace import Status, StatusCode

    return Status(StatusCode.ERROR, description)
