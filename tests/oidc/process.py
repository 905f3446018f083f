"""The identity provider of the tests as a process, with the hand of a test on it."""

import contextlib
import http.client
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

ROOT = Path(__file__).resolve().parents[2]


class ProviderProcess:
    """Ends with its test, also where that is killed: it reads until its input ends."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.oidc.provider", *words],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.issuer = self.process.stdout.readline().strip()
        assert self.issuer, "the provider did not start"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()

    def reset(self) -> None:
        """As if it had just started; that takes a second otherwise."""
        self._call("POST", "/control/reset")

    def jwks(self) -> list[dict[str, Any]]:
        keys: list[dict[str, Any]] = json.loads(self._call("GET", "/jwks"))["keys"]
        return keys

    def rotate(self, algorithm: str) -> dict[str, Any]:
        """The key that signs from now on; those before stay published."""
        key: dict[str, Any] = json.loads(self._call("POST", "/control/rotate", {"algorithm": algorithm}))
        return key

    def withdraw(self, key_id: str) -> None:
        self._call("POST", "/control/withdraw", {"key_id": key_id})

    def sign(self, signed: bytes, *, key_id: str, algorithm: str) -> bytes:
        return self._call("POST", "/control/sign", {"key_id": key_id, "algorithm": algorithm}, signed)

    def answer_wrong(self, path: str, *, status: int = 200, body: object = "", **headers: str) -> None:
        text = body if isinstance(body, str) else json.dumps(body)
        wrong = {"status": status, "body": text, "headers": headers}
        self._call("POST", "/control/wrong", {"path": path}, json.dumps(wrong).encode())

    def change_id_tokens(self, **claims: Any) -> None:
        self._call("POST", "/control/id-token", {}, json.dumps(claims).encode())

    def hits(self, path: str) -> int:
        return int(json.loads(self._call("GET", "/control/hits")).get(path, 0))

    def browse(self, url: str, user: str | None) -> str:
        """Where a browser with this person before it is sent from there."""
        parts = urlsplit(url)
        headers = {"X-User": user} if user else {}
        status, location, body = self._request("GET", f"{parts.path}?{parts.query}", None, headers)
        assert location, f"{status}, no redirect: {body!r}"
        return location

    def _call(self, method: str, path: str, query: dict[str, str] | None = None, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/json"}
        status, _, answer = self._request(method, f"{path}?{urlencode(query or {})}", body, headers)
        assert status == 200, answer
        return answer

    def _request(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str | None, bytes]:
        address = urlsplit(self.issuer)
        with contextlib.closing(http.client.HTTPConnection(str(address.hostname), address.port, timeout=10)) as line:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            return answer.status, answer.getheader("Location"), answer.read()
