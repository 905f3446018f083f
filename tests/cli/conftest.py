"""A real node, started the way a person starts it, and the command line beside it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from foliot.cli import main

FOLIOT = [sys.executable, "-m", "foliot"]


def clean_environment(**more: str) -> dict[str, str]:
    """This process's environment without what would lead a command elsewhere."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")} | more


def heed_ctrl_c() -> None:
    """For a child: a suite that was started in the background ignores Ctrl-C, and what it starts would too."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True, kw_only=True)
class ServedNode:
    """A `foliot serve` in its own directory. Commands run there find its key by themselves."""

    process: subprocess.Popen[str]
    url: str
    directory: Path

    @property
    def environment(self) -> Mapping[str, str]:
        return clean_environment(FOLIOT_URL=self.url)

    def run(self, *words: str, stdin: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        """A command as a process of its own."""
        return subprocess.run(
            [*FOLIOT, *words],
            cwd=self.directory,
            env={**self.environment, **more},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=15,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """A command that goes on until it is ended."""
        return subprocess.Popen(
            [*FOLIOT, *words],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=heed_ctrl_c,
        )


def serve(directory: Path, *words: str) -> ServedNode:
    """Returns once the node says that it is ready."""
    with (directory / "stderr.txt").open("w") as stderr:
        process = subprocess.Popen(
            [*FOLIOT, "serve", "--port", "0", *words],
            cwd=directory,
            env=clean_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    assert process.stdout is not None
    said = process.stdout.readline()
    ready = re.search(r"ready on (http://\S+)", said)
    if ready is None:
        process.kill()
        process.communicate()
        pytest.fail(f"no node: {said!r}, {(directory / 'stderr.txt').read_text()}")
    return ServedNode(process=process, url=ready[1], directory=directory)


def stop(node: ServedNode) -> None:
    node.process.terminate()
    try:
        node.process.communicate(timeout=15)
    finally:
        node.process.kill()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    """One node with its built-in worker, for all tests of a run: each uses ids and queues of its own."""
    served = serve(tmp_path_factory.mktemp("node"))
    yield served
    stop(served)


@pytest.fixture
def foliot(node: ServedNode, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """The command line inside this process, in the node's directory."""
    monkeypatch.chdir(node.directory)

    def invoke(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, list(words), input=stdin, env={"FOLIOT_URL": node.url})

    return invoke
