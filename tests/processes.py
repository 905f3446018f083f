"""Foliot's own programs as real processes, for tests that stop, freeze and kill them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import psutil
import pytest

KEY = "an-admin-key-for-tests"
READY = re.compile(r"Foliot is ready on (\S+)")
REGISTERED = re.compile(r"registered as (\S+)")


class Process:
    """A `foliot …` command with its output in a file; `ready` is what it says when it can be used."""

    def __init__(self, folder: Path, name: str, *words: str, **environ: str) -> None:
        self.output = folder / f"{name}.log"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("FOLIOT_")}
        with self.output.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "foliot", *words],
                cwd=folder,
                env=kept | {"FOLIOT_ADMIN_KEY": KEY, "PYTHONPATH": str(Path(__file__).parent.parent)} | environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_for(self, pattern: re.Pattern[str], count: int = 1) -> re.Match[str]:
        """The match number `count` in the output; an error where the process ends before."""
        found: list[re.Match[str]] = []

        def look() -> bool:
            text = self.said
            found[:] = pattern.finditer(text)
            assert len(found) >= count or self.process.poll() is None, f"ended early:\n{text}"
            return len(found) >= count

        eventually(look, f"{pattern.pattern!r} in {self.output.name}")
        return found[count - 1]

    def freeze(self) -> None:
        """As a laptop's lid or an overloaded machine would: it lives and does nothing, and does not know it."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As an operator would; the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=15)

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self) -> None:
        """With everything it has started, whatever state it is in."""
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in self.children() if self.process.poll() is None else []:
                child.kill()
        self.kill()


class Programs:
    """Starts programs in one folder, and leaves none behind."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[Process] = []

    def start(self, name: str, *words: str, **environ: str) -> Process:
        process = Process(self.folder, name, *words, **environ)
        self._started.append(process)
        return process

    def serve(self, name: str, *words: str, **environ: str) -> tuple[Process, str]:
        """A node that is ready, and its address."""
        node = self.start(name, "serve", *([] if "--port" in words else ["--port", "0"]), *words, **environ)
        return node, node.wait_for(READY)[1]

    def work(self, name: str, url: str, *words: str, **environ: str) -> Process:
        """A worker for the jobs of `tests.promises.gated_app`, registered."""
        app = "tests.promises.gated_app:app"
        environ = {"FOLIOT_URL": url, "GATES": str(self.folder), "WORKER_NAME": name} | environ
        worker = self.start(name, "worker", app, "--name", name, *words, **environ)
        worker.wait_for(REGISTERED)
        return worker

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._started):
            process.end()


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with Programs(tmp_path) as started:
        yield started


def serve(folder: Path, name: str, *words: str, **environ: str) -> tuple[Process, str]:
    """A node that is ready, and its address."""
    node = Process(folder, name, "serve", "--port", "0", *words, **environ)
    return node, node.wait_for(READY)[1]


def eventually(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Waits for something that another process does and can not signal here."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)
