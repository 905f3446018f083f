"""`foliot watch`, against a real node."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from foliot.cli.watch import event_line
from foliot.sdk.event import Event
from foliot.wire import JobInfo
from tests.cli.conftest import FOLIOT, ServedNode, clean_environment, heed_ctrl_c, serve, stop
from tests.cli.test_jobs import submitted

Run = Callable[..., Result]
DUE = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Watching:
    """A `foliot watch` that goes on."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def end(self) -> tuple[int, str]:
        """By Ctrl-C; the exit code, and what was said on stderr."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=10)
        return self.process.returncode, err


@contextmanager
def watching(node: ServedNode, *words: str) -> Iterator[Watching]:
    process = subprocess.Popen(
        [*FOLIOT, "watch", *words],
        cwd=node.directory,
        env=node.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_ctrl_c,
    )
    try:
        yield Watching(process)
    finally:
        process.kill()
        process.communicate()


def event(status: str, **fields: Any) -> Event:
    usual: dict[str, Any] = {"job_id": "j_1", "job_type": "report", "queue": "mail", "status": status, "attempt": 1}
    usual |= {"schedule_time": DUE, "created_time": DUE, "last_updated": DUE, "priority": "medium", "timeout": 3600}
    usual |= {"reason": None, "retries": 0, "start_time": None, "end_time": None, "worker_id": None}
    usual |= {"cancel_requested": False, "progress": None, "deadline": None, "retry": None, "resources": {}}
    known = {name: value for name, value in (usual | fields).items() if name in JobInfo.__struct_fields__}
    return Event(
        id="1.1.0",
        type=f"foliot.job.{status}",
        subject="j_1",
        time=DUE,
        source="/foliot/default",
        data=JobInfo(**known),
        position="0_0_1.1",
        text=b"{}",
    )


def test_every_change_is_a_line_until_ctrl_c(node: ServedNode, foliot: Run) -> None:
    job_id = submitted(foliot, "echo", "--queue", "w-lines")
    with watching(node, "--queue", "w-lines", "--since", "start") as shown:
        lines = [shown.line().split() for _ in range(3)]
        assert [line[1:5] for line in lines] == [
            [status, job_id, "echo", "w-lines"] for status in ("queued", "running", "completed")
        ]
        assert " ".join(lines[1]).endswith("after it was due")
        assert shown.end() == (130, "\n")


def test_json_is_one_cloud_event_a_line(node: ServedNode, foliot: Run) -> None:
    job_id = submitted(foliot, "echo", "--queue", "w-json", "--delay", "1h")
    assert foliot("jobs", "cancel", job_id).exit_code == 0
    with watching(node, "--job", job_id, "--status", "cancelled", "--since", "start", "--json") as shown:
        told = json.loads(shown.line())
    assert (told["specversion"], told["type"], told["subject"]) == ("1.0", "foliot.job.cancelled", job_id)
    assert (told["data"]["queue"], told["data"]["status"]) == ("w-json", "cancelled")


def test_it_goes_on_when_the_node_is_back_and_says_so(tmp_path: Path, free_port: int) -> None:
    words = ("--port", str(free_port), "--no-worker")
    node = serve(tmp_path, *words)
    with watching(node, "--since", "start") as shown:
        node.run("submit", "echo", "--id", "before")
        assert "before" in shown.line()
        stop(node)
        again = serve(tmp_path, *words)
        again.run("submit", "echo", "--id", "after")
        assert "after" in shown.line()
        code, said = shown.end()
        stop(again)
    assert code == 130
    assert "the connection is lost" in said
    assert "connected again; nothing was missed" in said


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--since", "yesterday"], 2, "no position"),
        (["--since", "0_1_"], 1, "no longer kept"),
        (["--job", "nobody-at-all"], 2, "there is no job"),
        (["--status", "asleep"], 2, "Invalid value for '--status'"),
        ([word for number in range(101) for word in ("--job", f"j{number}")], 2, "100 jobs"),
    ],
    ids=["no position", "too old", "no job", "no status", "too many"],
)
def test_what_can_not_be_followed_is_told(foliot: Run, words: list[str], code: int, told: str) -> None:
    shown = foliot("watch", *words)
    assert shown.exit_code == code
    assert told in shown.stderr


def test_a_wrong_address_is_not_waited_for(node: ServedNode, free_port: int) -> None:
    shown = subprocess.run(
        [*FOLIOT, "watch", "--url", f"http://127.0.0.1:{free_port}", "--key", "x"],
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=15,
    )
    assert shown.returncode == 5
    assert "no node at" in shown.stderr


def test_a_line_tells_how_late_it_started_and_why_it_failed() -> None:
    late = event("running", start_time=DUE + timedelta(seconds=2.5))
    assert event_line(late).split("  ")[-1] == "2.5s after it was due"
    failed = event("failed", reason="timed_out", attempt=3)
    assert event_line(failed).split("  ")[-2:] == ["attempt 3", "timed_out"]
    assert event_line(event("queued")).split("  ")[-1] == "mail"


def test_what_a_job_is_called_can_not_break_the_line() -> None:
    odd = event("failed", reason="a\nb\x1b[31m")
    assert event_line(odd).endswith("  mail  a\\nb")
