"""One HTTP connection: uvicorn's, with bounds on what a client may send and on how long it may take.

- The head of a request must be complete within `seconds`, and so must each 16 KiB of its body; a client that does not
  read its answer is cut off after the same time.
- A head is bounded in bytes and in headers. What could be read in two ways is refused before any handler runs: see
  `http_head`. Trailers are counted and thrown away.
- A few requests may be sent ahead. An error is never written in front of the answer to an earlier one.
- What is refused is answered once, as a problem, and the connection is closed.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from foliot.main.http_head import HEAD_LIMIT, HEADER_COUNT, TARGET_LIMIT, TOO_LONG_HEAD, Refusal, check_head, size_of
from foliot.main.tls import SUBJECT, asks_for_certificates, subject_of
from foliot.wire import BODY_LIMIT

AHEAD_LIMIT = 8
PROGRESS = 16 * 1024
LINGER_SECONDS = 1.0
IGNORED_LIMIT = 2 * BODY_LIMIT  # a body that was refused is read to its end, so that the connection lives, up to here


class Stage(Enum):
    """What of a request is being waited for."""

    BEGIN = auto()
    HEAD = auto()
    BODY = auto()
    OVER = auto()  # nothing is read any more


BEGIN, HEAD, BODY, OVER = Stage


class HttpConnection(HttpToolsProtocol):
    """`gone` is called once it is over. With `full` every request is told to come again."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        seconds: float,
        full: bool,
        gone: Callable[["HttpConnection"], None],
    ) -> None:
        super().__init__(config, server_state, app_state)
        if full:
            self.app = _too_many
        self._seconds = seconds
        self._gone = gone
        self._stage = BEGIN
        self._begun = 0
        self._refusal: Refusal | None = None
        self._running: RequestResponseCycle | None = None
        self._unparsed = 0  # bytes of which the parser has not told, since it tells of a header when it is whole
        self._reading = 0
        self._got_body = False
        self._body_bytes = 0
        self._arrived = 0
        self._patience: asyncio.TimerHandle | None = None
        self._write_patience: asyncio.TimerHandle | None = None
        self._asked = False
        self._subject: str | None = None

    # the connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        tls = transport.get_extra_info("ssl_object")
        self._asked = asks_for_certificates(tls)
        if self._asked:
            self._subject = subject_of(tls)
        self._be_patient()

    def connection_lost(self, exc: Exception | None) -> None:
        for cycle in (self._running, *(ahead for ahead, _ in self.pipeline)):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        self._stage = OVER
        self._stop_patience()
        self.resume_writing()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)
        self._gone(self)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        before = self._stage
        if before is OVER:
            return
        self._begun = 0
        self._reading = len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # a request like any other; what follows it is in another language
            self.cycle.keep_alive = False
            self._stop_listening()
        except httptools.HttpParserError:
            self._refuse(self._refusal or Refusal(400, "bad-input", "This is not valid HTTP/1.1"))
        else:
            if self._stage is BEGIN:
                self._rest(before)
            elif self._stage is HEAD:
                self._await_head(before, len(data))
            elif self._stage is BODY:
                self._await_body(before, len(data))

    def _rest(self, before: Stage) -> None:
        """All that was begun has come."""
        idle = self._running is None or (self._running.response_complete and not self.pipeline)
        if self._patience is not None and (not idle or before is not BEGIN):
            self._stop_patience()
        if idle and self._patience is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _await_head(self, before: Stage, arrived: int) -> None:
        if self._begun:
            self._be_patient()
        if not self._begun or (self._begun == 1 and before is BEGIN):
            self._unparsed += arrived
        if self._unparsed > TARGET_LIMIT + HEAD_LIMIT:
            self._refuse(TOO_LONG_HEAD)

    def _await_body(self, before: Stage, arrived: int) -> None:
        begun = self._begun or before is not BODY
        self._body_bytes += arrived
        self._arrived += arrived
        self._unparsed = 0 if self._got_body or begun else self._unparsed + arrived
        self._got_body = False
        if self._unparsed > HEAD_LIMIT or len(self.headers) > HEADER_COUNT:  # trailers, or words about a chunk
            self._refuse(TOO_LONG_HEAD)
        elif self._body_bytes > IGNORED_LIMIT:
            self._refuse(Refusal(413, "too-large", f"The body is above {BODY_LIMIT >> 20} MiB"))
        elif begun or self._arrived >= PROGRESS:
            self._be_patient()

    # the request, as the parser tells it

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._stage = HEAD
        self._begun += 1
        self._unparsed = self._body_bytes = 0
        if self._asked:
            self.scope[SUBJECT] = self._subject  # type: ignore[literal-required]

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > TARGET_LIMIT:
            self._stumble(Refusal(414, "too-large", f"The path and query are above {TARGET_LIMIT} bytes"))

    def on_headers_complete(self) -> None:
        if self._unparsed + self._reading > HEAD_LIMIT and size_of(self.headers) > HEAD_LIMIT:
            self._stumble(TOO_LONG_HEAD)
        if refusal := check_head(
            self.parser.get_method(), self.parser.get_http_version(), self.headers, self.parser.should_upgrade()
        ):
            self._stumble(refusal)
        if len(self.pipeline) >= AHEAD_LIMIT:
            self._stumble(Refusal(400, "bad-input", f"At most {AHEAD_LIMIT} requests may be sent ahead"))
        super().on_headers_complete()
        self._stage = BODY
        self.headers = []  # for trailers: nobody is shown them
        if self.expect_100_continue:  # a client that was answered without being asked for its body may not send it
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._got_body = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._stage = BEGIN

    def _stumble(self, refusal: Refusal) -> None:
        """The parser is stopped by an error in a callback, and only by that."""
        self._refusal = refusal
        raise ValueError(refusal.detail)

    # the answer

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._hang_up()
        elif self._stage is BODY or self._stage is HEAD:
            self._unset_keepalive_if_required()  # more of a request is due: the shorter patience holds

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._write_patience is None:
            self._write_patience = self.loop.call_later(self._seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._write_patience is not None:
            self._write_patience.cancel()
            self._write_patience = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        self._hang_up()

    # the end

    def _refuse(self, refusal: Refusal) -> None:
        """Answer and close; where an earlier request is being answered, that is the last answer."""
        has_cycle = self._stage is BODY
        self._stop_listening()
        self.pipeline.clear()
        running = self._running if self._running is not None and not self._running.response_complete else None
        if running is not None and (running is not self.cycle or not has_cycle):
            running.keep_alive = False
        elif has_cycle and (running is None or running.response_started):  # it has its answer
            self._hang_up()
        else:
            if running is not None:
                running.disconnected = True
                running.message_event.set()
            self._say(refusal)

    def _say(self, refusal: Refusal) -> None:
        """The last words. What the client is still sending is read a while longer: closing on it would take back what
        was said."""
        body = refusal.body()
        self.transport.write(
            STATUS_LINE[refusal.status] + b"content-type: application/problem+json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._patience = self.loop.call_later(min(self._seconds, LINGER_SECONDS), self._hang_up)

    def _stop_listening(self) -> None:
        self._stage = OVER
        self._stop_patience()

    def _hang_up(self) -> None:
        """Whoever does not read what is still to be sent is not waited for."""
        self._stop_listening()
        self.pipeline.clear()
        self.transport.close()
        if self._write_patience is None:
            self._write_patience = self.loop.call_later(self._seconds, self.transport.abort)

    def _be_patient(self) -> None:
        self._stop_patience()
        self._patience = self.loop.call_later(self._seconds, self._lose_patience)

    def _stop_patience(self) -> None:
        self._arrived = 0
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _lose_patience(self) -> None:
        self._patience = None
        if self.flow.read_paused:  # it is this end that does not read
            self._be_patient()
        elif self._stage is BEGIN:
            self._hang_up()
        else:
            self._refuse(Refusal(408, "timed-out", f"The request did not come within {self._seconds:g} s"))


async def _too_many(_scope: Any, _receive: Any, send: Any) -> None:
    refusal = Refusal(503, "unavailable", "This node has as many connections as it takes; come again shortly")
    body = refusal.body()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", b"%d" % len(body)),
        (b"retry-after", b"1"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})
