"""The `command` handler with real programs."""

import asyncio
import sys

import psutil
import pytest

from foliot.handlers import load_handlers
from foliot.handlers.command import OUTPUT_KEPT
from tests.worker.lone_runner import LoneRunner, assigned, error_of, result_of


def python(code: str, **more: object) -> dict[str, object]:
    return {"argv": [sys.executable, "-c", code], **more}


async def test_output_is_log_and_result(lone: LoneRunner) -> None:
    code = "import os, sys; print(input(), os.environ['MINE'], flush=True); print('warned', file=sys.stderr)"
    report, lines = await lone.run(assigned("command", python(code, stdin="given\n", env={"MINE": "yes"})))
    assert report.status == "success"
    assert sorted(lines) == ["given yes", "warned"]
    assert sorted(result_of(report)["output"].splitlines()) == ["given yes", "warned"]
    assert result_of(report)["exit_code"] == 0


async def test_arguments_are_not_read_by_a_shell(lone: LoneRunner) -> None:
    report, lines = await lone.run(assigned("command", {"argv": ["echo", "$HOME; exit 1"]}))
    assert report.status == "success"
    assert lines == ["$HOME; exit 1"]


async def test_another_exit_code_is_a_retriable_failure(lone: LoneRunner) -> None:
    report, _ = await lone.run(assigned("command", python("print('why'); raise SystemExit(7)")))
    assert (report.status, report.exit_code) == ("retriable_failure", 7)
    assert "exit code 7: why" in error_of(report).message


async def test_a_killed_program_is_a_retriable_failure(lone: LoneRunner) -> None:
    report, _ = await lone.run(assigned("command", python("import os; os.kill(os.getpid(), 9)")))
    assert (report.status, report.exit_code) == ("retriable_failure", -9)
    assert "SIGKILL" in error_of(report).message


async def test_only_the_end_of_the_output_is_kept(lone: LoneRunner) -> None:
    report, _ = await lone.run(assigned("command", python("print('x' * 1000000); print('last')")))
    output = result_of(report)["output"]
    assert len(output) == OUTPUT_KEPT
    assert output.endswith("x\nlast\n")


@pytest.mark.parametrize("why", ["cancel", "time"])
async def test_a_program_is_ended_with_its_children(lone: LoneRunner, why: str) -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    code = (
        f"import os, subprocess, sys, time; child = subprocess.Popen([sys.executable, '-c', {stubborn!r}]);"
        "print('pids', os.getpid(), child.pid, flush=True); time.sleep(3600)"
    )
    lone.begin(assigned("command", python(code), timeout=2.0 if why == "time" else 3600))
    line = await lone.said("pids")
    processes = [psutil.Process(int(word)) for word in line.split()[1:]]
    if why == "cancel":
        lone.runner.cancel("t1")
    report, _ = await lone.ended()
    assert report.status == {"cancel": "cancelled", "time": "timed_out"}[why]
    _, alive = await asyncio.to_thread(psutil.wait_procs, processes, 5)
    assert alive == []


async def test_what_a_program_leaves_behind_is_not_waited_for(lone: LoneRunner) -> None:
    report, _ = await lone.run(assigned("command", {"argv": ["sh", "-c", "sleep 3600 & echo started"]}))
    assert (report.status, result_of(report)["output"]) == ("success", "started\n")


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"argv": []}, "payload.argv"),
        ({"argv": "ls"}, "payload.argv"),
        ({"argv": ["no-such-program-here"]}, "payload.argv[0]"),
        ({"argv": ["ls"], "cwd": "/no/such/folder"}, "payload.cwd"),
        ({"argv": ["ls", "a\0b"]}, "payload.argv"),
        ({"argv": ["ls"], "shell": True}, "`shell`"),
    ],
)
async def test_a_bad_payload_is_fatal_and_names_the_field(lone: LoneRunner, payload: object, field: str) -> None:
    report, _ = await lone.run(assigned("command", payload))
    assert (report.status, error_of(report).code) == ("fatal_failure", "bad_payload")
    assert field in error_of(report).message


async def test_commands_are_refused_unless_allowed() -> None:
    lone = LoneRunner(load_handlers())
    report, _ = await lone.run(assigned("command", {"argv": ["true"]}))
    await lone.close()
    assert (report.status, error_of(report).code) == ("fatal_failure", "commands_not_allowed")
    assert "--allow-command " in error_of(report).message
