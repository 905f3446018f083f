"""What a worker may do is said where it is started, and one that was told nothing is guarded."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from foliot.cli import main
from foliot.handlers import load_handlers
from tests.handlers.places import canary_on
from tests.worker.lone_runner import LoneRunner, assigned, error_of


async def test_a_worker_that_was_told_nothing_calls_no_loopback_address_and_runs_nothing() -> None:
    lone = LoneRunner(load_handlers())
    async with canary_on(["127.0.0.1"]) as canary:
        called, _ = await lone.run(assigned("http", {"url": f"http://127.0.0.1:{canary.port}/"}))
        ran, _ = await lone.run(assigned("command", {"argv": ["true"]}, number=2))
    await lone.close()
    assert (called.status, error_of(called).code) == ("fatal_failure", "address_not_allowed")
    assert (ran.status, error_of(ran).code) == ("fatal_failure", "commands_not_allowed")
    assert canary.visits == 0


@pytest.mark.parametrize("words", [["serve"], ["worker", "--builtin"]], ids=" ".join)
@pytest.mark.parametrize(
    ("options", "environment", "told"),
    [
        (["--http-allow", "10.0.0.1/8"], {}, "http_allow: '10.0.0.1/8' is an address inside a network"),
        (["--http-allow", "a.test", "--http-allow", "http://b"], {}, "http_allow: 'http://b' is no network"),
        ([], {"FOLIOT_HTTP_ALLOW": "a.test,b:0"}, "http_allow: 'b:0' has no port"),
        (["--allow-command", "true", "--command-user", "no-such-user"], {}, "there is no user 'no-such-user'"),
        (["--allow-commands"], {"FOLIOT_ALLOW_COMMAND": "true"}, "set one of them"),
    ],
)
def test_what_can_not_work_is_refused_before_anything_starts(
    words: list[str],
    options: list[str],
    environment: dict[str, str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, [*words, *options], env=environment)
    assert shown.exit_code == 2
    assert told in shown.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="for a worker of root")
@pytest.mark.parametrize("words", [["serve"], ["worker", "--builtin"]], ids=" ".join)
@pytest.mark.parametrize("options", [["--allow-commands"], ["--allow-command", "true"]], ids=" ".join)
def test_a_roots_worker_does_not_start_until_it_knows_whom_programs_run_as(
    words: list[str], options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, [*words, *options])
    assert shown.exit_code == 2
    assert "--command-user nobody" in shown.stderr


@pytest.mark.parametrize(
    "options", [["--http-allow", "a.test"], ["--allow-command", "true"], ["--command-user", "nobody"]], ids=" ".join
)
def test_an_apps_worker_has_no_built_in_job_types_to_permit_anything_to(options: list[str]) -> None:
    shown = CliRunner().invoke(main, ["worker", "program:app", *options])
    assert shown.exit_code == 2
    assert f"{options[0]} goes with --builtin" in shown.stderr
