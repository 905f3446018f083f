"""A whole system on this machine: a database, one node process, one worker process, and loads that are put on it."""

import http.client
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import msgspec
import psutil

from bench.databases import Databases
from bench.load import PLAIN_KIND, Outcome, Plan
from bench.sheet import Sheet
from tests.postgres_server import free_port

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30
STOP_SECONDS = 15
CONCURRENCY = 500
MEBIBYTE = 1024 * 1024


class Broken(Exception):
    """A part did not do its work; the message has the end of its log."""


class Part:
    """A process of the system."""

    def __init__(self, name: str, arguments: list[str], folder: Path, environ: Mapping[str, str]) -> None:
        self.name = name
        self._log = folder / f"{name}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **environ}, stdout=log, stderr=log
            )
        self._seen = psutil.Process(self._process.pid)

    @property
    def rss(self) -> float:
        """Resident MiB."""
        return float(self._seen.memory_info().rss) / MEBIBYTE

    @property
    def cpu_seconds(self) -> float:
        times = self._seen.cpu_times()
        return float(times.user + times.system)

    def check(self) -> None:
        if self._process.poll() is not None:
            raise Broken(f"the {self.name} ended with {self._process.returncode}:\n{self.log_end()}")

    def log_end(self) -> str:
        return self._log.read_text(errors="replace")[-3000:]

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Site:
    """Starts with a node; the worker comes when it is asked for. `capacity` is how many jobs the sheet has room for."""

    def __init__(
        self, databases: Databases, folder: Path, capacity: int, environ: Mapping[str, str] | None = None
    ) -> None:
        self._folder = folder
        self._environ = environ or {}
        self._databases = databases
        self._sheet_path = str(folder / "sheet")
        self.sheet = Sheet.create(self._sheet_path, capacity)
        self.url = databases.fresh()
        self.port = free_port()
        self.key = secrets.token_hex(16)
        self.node, self.seconds_to_first_start = self._start_node(self.port)
        self.worker: Part | None = None
        self._others: list[Part] = []

    @classmethod
    @contextmanager
    def open(cls, databases: Databases, capacity: int = 1, environ: Mapping[str, str] | None = None) -> Iterator[Self]:
        """`environ` is what the node is started with besides."""
        with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
            site = cls(databases, Path(folder), capacity, environ)
            try:
                yield site
            finally:
                site.stop()

    def restart_node(self) -> float:
        """Seconds from starting the program to its first answer, on the database as it is."""
        self.node.stop()
        self.node, seconds = self._start_node(self.port)
        return seconds

    def add_node(self) -> int:
        """Another node on the same database; its port."""
        port = free_port()
        self._others.append(self._start_node(port, f"node-{port}")[0])
        return port

    def start_worker(self, app: str = "bench.noop_app:app", **more: str) -> Part:
        """A worker, once the node knows it."""
        environ = {"FOLIOT_KEY": self.key, "BENCH_SHEET": self._sheet_path} | more
        options = ["--concurrency", str(CONCURRENCY), "--url", f"http://127.0.0.1:{self.port}"]
        self.worker = Part("worker", ["-m", "foliot", "worker", app, *options], self._folder, environ)
        self.wait(lambda: bool(self.get("/workers")), START_SECONDS, "the worker to register")
        return self.worker

    def load(
        self,
        mode: Any,
        count: int,
        *,
        first: int = 0,
        width: int = 1,
        rate: float = 0.0,
        lead: float = 1.5,
        runs: int = 0,
        kinds: Sequence[str] = (PLAIN_KIND,),
        meanwhile: Callable[[], None] = lambda: None,
    ) -> Outcome:
        """Put a load on the system, from a process of its own; `meanwhile` is called now and then."""
        plan = Plan(
            mode=mode,
            port=self.port,
            key=self.key,
            sheet=self._sheet_path,
            count=count,
            first=first,
            width=width,
            rate=rate,
            lead=lead,
            runs=runs,
            kinds=tuple(kinds),
        )
        with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as words:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.load"], cwd=ROOT, stdin=subprocess.PIPE, stdout=answer, stderr=words
            )
            try:
                assert process.stdin is not None
                process.stdin.write(msgspec.json.encode(plan))
                process.stdin.close()
                while True:
                    try:
                        process.wait(0.25)
                        break
                    except subprocess.TimeoutExpired:
                        self._check()
                        meanwhile()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            if process.returncode != 0:
                raise Broken(
                    f"the load failed:\n{_text(words)[-3000:]}\nThe node's log ends with:\n{self.node.log_end()}"
                )
            answer.seek(0)
            return msgspec.json.decode(answer.read(), type=Outcome)

    def wait(self, done: Callable[[], bool], seconds: float, what: str, pause: float = 0.01) -> None:
        end = time.monotonic() + seconds
        while not done():
            self._check()
            if time.monotonic() > end:
                logs = "\n".join(part.log_end() for part in self._parts())
                raise Broken(f"waited {seconds:g} s for {what}, in vain. The logs end with:\n{logs}")
            time.sleep(pause)

    def nothing_runs(self) -> bool:
        """No job is queued or running. Read from the store, so that what has ended is committed."""
        return bool(self.get("/jobs?status=queued&status=running&limit=1") == [])

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def call(self, method: str, path: str, sent: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            text = None if sent is None else msgspec.json.encode(sent)
            connection.request(method, f"/api/v1{path}", text, headers)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status not in (200, 201):
                words = body.decode(errors="replace")[:500]
                raise Broken(
                    f"{method} {path} was answered {answer.status}: {words}\nThe node's log:\n{self.node.log_end()}"
                )
            if 'rel="next"' in (answer.getheader("Link") or "") and body == b"[]":
                return None  # a page may be empty and not be the last
            return msgspec.json.decode(body)
        finally:
            connection.close()

    def size(self) -> int:
        return self._databases.size(self.url)

    def stop(self) -> None:
        for part in reversed(self._parts()):
            part.stop()

    def _parts(self) -> list[Part]:
        return [self.node, *self._others] if self.worker is None else [self.node, *self._others, self.worker]

    def _check(self) -> None:
        for part in self._parts():
            part.check()

    def _start_node(self, port: int, name: str = "node") -> tuple[Part, float]:
        options = ["--port", str(port), "--database", self.url, "--data-dir", str(self._folder), "--no-worker"]
        environ = {"FOLIOT_ADMIN_KEY": self.key, "FOLIOT_LOG_LEVEL": "warning", **self._environ}
        begin = time.perf_counter()
        node = Part(name, ["-m", "foliot", "serve", *options], self._folder, environ)
        try:
            while not _answers(port):
                node.check()
                if time.perf_counter() - begin > START_SECONDS:
                    raise Broken(f"the node did not answer within {START_SECONDS} s:\n{node.log_end()}")
                time.sleep(0.005)
        except BaseException:
            node.stop()
            raise
        return node, time.perf_counter() - begin


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
    try:
        connection.request("GET", "/readyz")
        return int(connection.getresponse().status) == 200
    except OSError:
        return False
    finally:
        connection.close()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
