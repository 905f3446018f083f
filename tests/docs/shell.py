"""What a page tells people to type, typed into a real shell beside a real node."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from foliot.sdk.client import Client
from tests.docs.pages import ADDRESS
from tests.processes import Process

CURL = str(Path(__file__).with_name("curl.py"))
SECONDS = 14  # below the limit of a test


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Somebody who follows a page: a folder with `foliot-data` in it, a node, a shell."""

    folder: Path
    node: Process
    url: str

    @property
    def key(self) -> str:
        return (self.folder / "foliot-data" / "admin.key").read_text().strip()

    @property
    def environ(self) -> dict[str, str]:
        """As of a person who set nothing, but for `foliot`, which is this checkout's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
        return kept | {"PATH": f"{self.folder / 'bin'}{os.pathsep}{kept['PATH']}"}

    def at_home(self, text: str) -> str:
        """A page's text with this node's address, and with `foliot` as it is called here."""
        return text.replace(ADDRESS, self.url).replace(".venv/bin/foliot", "foliot")

    def type(self, text: str, *, exit_code: int = 0) -> str:
        """What a script prints, which ends at the first command that fails. What it starts ends with it."""
        pipe = subprocess.PIPE
        running = subprocess.Popen(
            ["sh", "-eu", "-c", self.at_home(text)],
            cwd=self.folder,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        )
        with running:
            try:
                out, err = running.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired as late:
                pytest.fail(f"it did not end within {SECONDS} s:\n{late.stdout!r}\n{late.stderr!r}")
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(running.pid, signal.SIGKILL)
        assert running.returncode == exit_code, f"{out}\n{err}"
        return out

    def client(self) -> Client:
        return Client(self.url, self.key)


def make_programs(folder: Path) -> None:
    """For the shell: a `foliot` that is this interpreter's, and a `curl` where the machine has none."""
    put_program(folder, "foliot", "-m foliot")
    if shutil.which("curl") is None:
        put_program(folder, "curl", CURL)


def put_program(folder: Path, name: str, what: str) -> None:
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
    program.chmod(0o755)
