"""A place that notices are sent to: a real HTTP server, for Apprise's `json://`."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class Receiver:
    """`notices` are the bodies that came; `statuses` are what is answered, 200 after the last of them."""

    def __init__(self) -> None:
        self.notices: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self._came = threading.Condition()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, goes_to = receiver._take(msgspec.json.decode(body))
                self.send_response(status)
                if goes_to:
                    self.send_header("Location", goes_to)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.goes_to = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def allow(self) -> str:
        """What the operator has to list."""
        return f"localhost:{self.port}"

    @property
    def url(self) -> str:
        return f"json://localhost:{self.port}/notices"

    @property
    def titles(self) -> list[str]:
        return [notice["title"] for notice in self.notices]

    async def received(self, count: int) -> list[dict[str, Any]]:
        """Once that many have come."""
        await asyncio.to_thread(self._wait, count)
        return self.notices

    def wait(self, count: int) -> list[dict[str, Any]]:
        self._wait(count)
        return self.notices

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _wait(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.notices) >= count, timeout=15), self.titles

    def _take(self, notice: dict[str, Any]) -> tuple[int, str]:
        with self._came:
            self.notices.append(notice)
            self._came.notify_all()
            return (self.statuses.pop(0) if self.statuses else 200), self.goes_to
