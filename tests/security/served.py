"""A real node on a real socket, and a client that says exactly what it is told."""

import http.client
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from tests.processes import KEY, Process, serve

STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3}) ")


class ServedNode:
    def __init__(self, process: Process, url: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.folder = folder
        self.port = urlsplit(url).port or 0

    def call(self, method: str, path: str, body: object = None, key: str = KEY) -> Any:
        """An ordinary call; what it answered."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=15)
        try:
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            connection.request(method, path, None if body is None else msgspec.json.encode(body), headers)
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status < 300, (answer.status, text)
            return msgspec.json.decode(text) if text else None
        finally:
            connection.close()

    def raw(self, line: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
        """The status and all that came back to a request with this line; 0 where there was no answer at all."""
        head = b"".join(f"{name}: {value}\r\n".encode("latin-1", "replace") for name, value in (headers or {}).items())
        host = b"" if any(name.lower() == "host" for name in headers or {}) else b"Host: node\r\n"
        with socket.create_connection(("127.0.0.1", self.port), 15) as connection:
            connection.sendall(line + b"\r\n" + host + b"Content-Length: 0\r\n" + head + b"Connection: close\r\n\r\n")
            parts: list[bytes] = []
            try:
                while data := connection.recv(65536):
                    parts.append(data)
            except ConnectionResetError:
                pass
        text = b"".join(parts)
        found = STATUS_LINE.match(text)
        return int(found[1]) if found else 0, text


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """One node for all tests of a file."""
    folder = tmp_path_factory.mktemp("node")
    process, url = serve(folder, "node", "--no-worker")
    try:
        yield ServedNode(process, url, folder)
    finally:
        process.end()
