"""Foliot's own programs as real processes, for tests that kill them."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

KEY = "an-admin-key-for-tests"
READY = re.compile(r"Foliot is ready on (\S+)")


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

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """The first match in the output; an error where the process ends before."""
        found: list[re.Match[str]] = []

        def look() -> bool:
            text = self.output.read_text(errors="replace")
            found.extend(pattern.finditer(text))
            assert found or self.process.poll() is None, f"ended early:\n{text}"
            return bool(found)

        eventually(look, f"{pattern.pattern!r} in {self.output.name}")
        return found[0]

    def kill(self) -> None:
        """As a power cut would."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """As an operator would; the exit code."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(timeout=15)


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
