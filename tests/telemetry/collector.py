"""A collector: takes OTLP over HTTP as the real ones do, and shows what it got."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.processes import eventually


class Link(msgspec.Struct, frozen=True):
    trace: str
    span: str
    about: dict[str, Any]


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One that arrived, ids as `traceparent` has them."""

    name: str
    trace: str
    span: str
    parent: str
    service: str
    about: dict[str, Any]
    links: list[Link]
    start: int
    end: int
    failed: str | None


class Collector:
    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.requests: list[tuple[str, dict[str, str]]] = []  # what else was called: path and headers
        collector = self

        class Door(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.path == "/v1/traces":
                    if self.headers.get("content-encoding") == "gzip":
                        body = gzip.decompress(body)
                    collector.spans.extend(_read(body))
                else:
                    collector.requests.append((self.path, {k.lower(): v for k, v in self.headers.items()}))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})

    @contextmanager
    def open(self) -> Iterator["Collector"]:
        self._thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def named(self, name: str, *, trace: str | None = None, job_id: str | None = None) -> list[Span]:
        """In the order in which they began."""
        found = [
            span
            for span in self.spans
            if span.name == name and trace in (None, span.trace) and job_id in (None, span.about.get("foliot.job_id"))
        ]
        return sorted(found, key=lambda span: span.start)

    def wait(self, name: str, count: int = 1, *, trace: str | None = None, job_id: str | None = None) -> list[Span]:
        """The same, as soon as there are so many."""

        def enough() -> bool:
            return len(self.named(name, trace=trace, job_id=job_id)) >= count

        eventually(enough, f"{count} × {name} among {sorted(span.name for span in self.spans)}", 15)
        return self.named(name, trace=trace, job_id=job_id)


def _read(body: bytes) -> Iterator[Span]:
    for group in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _about(group.resource.attributes)["service.name"]
        for scope in group.scope_spans:
            for span in scope.spans:
                yield Span(
                    name=span.name,
                    trace=span.trace_id.hex(),
                    span=span.span_id.hex(),
                    parent=span.parent_span_id.hex(),
                    service=service,
                    about=_about(span.attributes),
                    links=[
                        Link(link.trace_id.hex(), link.span_id.hex(), _about(link.attributes)) for link in span.links
                    ],
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    failed=span.status.message if span.status.code == 2 else None,
                )


def _about(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
