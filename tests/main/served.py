"""The node's own web server on a real socket, on a thread with the loop that a node runs on, before a small
application; and a client that says exactly what it is told."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Self

import msgspec
import uvloop

from foliot.main.web_server import WebServer
from foliot.sdk.tls import Reloaded

PATIENCE = 15.0  # of the test itself: longer than any limit that is tried


class Application:
    """`/echo` reads the body, `/now` does not; `/hold` waits until it is let go; `/stream` goes on until the client
    has gone; `/flood` sends more than any buffer holds."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.held = threading.Semaphore(0)
        self.gone = threading.Event()
        self.let_go: Callable[[], object]

    async def start(self) -> None:
        loop, go = asyncio.get_running_loop(), asyncio.Event()
        self._go = go
        self.let_go = lambda: loop.call_soon_threadsafe(go.set)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.append(dict(scope) | {"headers": list(scope["headers"])})
        body = b""
        match scope["path"]:
            case "/echo":
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        self.gone.set()
                        return
                    body += message["body"]
                    if not message["more_body"]:
                        break
            case "/hold":
                self.held.release()
                await self._go.wait()
            case "/stream":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"first", "more_body": True})
                while (await receive())["type"] != "http.disconnect":
                    pass
                self.gone.set()
                return
            case "/flood":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                for _ in range(1024):
                    await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
                self.gone.set()
        text = msgspec.json.encode({"path": scope["path"], "bytes": len(body)})
        headers = [(b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": text})


class Served:
    def __init__(
        self,
        *,
        tls: Callable[[], Reloaded[ssl.SSLContext] | None] = lambda: None,
        connections: int = 1000,
        seconds: float = 30,
    ) -> None:
        self.app = Application()
        self._tls = tls
        self._connections = connections
        self._seconds = seconds
        self._listens = threading.Event()
        self._thread = threading.Thread(target=lambda: uvloop.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._listens.wait(PATIENCE)
        return self

    def __exit__(self, *raised: object) -> None:
        self.app.let_go()
        self._loop.call_soon_threadsafe(setattr, self._server, "should_exit", True)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def dial(self, tls: ssl.SSLContext | None = None) -> "Client":
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        if tls is None:
            return Client(connection)
        try:
            return Client(tls.wrap_socket(connection, server_hostname="localhost"))
        except BaseException:
            connection.close()
            raise

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self.app.start()
        bound = socket.socket()
        bound.bind(("127.0.0.1", 0))
        bound.listen(100)
        self.port = bound.getsockname()[1]
        self._server = WebServer(self.app, bound, tls=self._tls(), connections=self._connections, seconds=self._seconds)
        serving = asyncio.create_task(self._server.serve())
        await self._server.listening.wait()
        self._listens.set()
        await serving


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def detail(self) -> str:
        return str(msgspec.json.decode(self.body)["detail"])


class Client:
    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._file = connection.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()
        self.socket.close()

    def send(self, text: str | bytes) -> None:
        self.socket.sendall(text.encode("latin-1") if isinstance(text, str) else text)

    def ask(self, path: str, *, head: str = "", method: str = "GET") -> Answer:
        self.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n")
        return self.answer()

    def answer(self) -> Answer:
        first = self._file.readline()
        if not first:
            raise ConnectionResetError("no answer")
        status = int(first.split()[1])
        headers: dict[str, str] = {}
        while line := self._file.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return Answer(status, headers, self._file.read(int(headers.get("content-length", 0))))

    def rest(self) -> bytes:
        """Whatever else comes until the other end closes."""
        try:
            return self._file.read()
        except ConnectionResetError:
            return b""
