"""Which programs `command` runs, as whom, and what they see of the worker."""

import os
import pwd
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from foliot.handlers import load_handlers
from foliot.handlers.command_rules import BadUser, CommandRules, find_user
from foliot.handlers.permissions import Permissions, permissions_of
from foliot.settings import Settings, SettingsError
from foliot.wire import Report
from tests.worker.lone_runner import LoneRunner, assigned, error_of, result_of

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="only root can run programs as somebody else")
not_as_root = pytest.mark.skipif(ROOT, reason="root may become anybody")
NOBODY = pwd.getpwnam("nobody")


@asynccontextmanager
async def worker(programs: Sequence[str] | None = None, user: str | None = None) -> AsyncIterator[LoneRunner]:
    rules = CommandRules(
        programs=None if programs is None else tuple(programs), user=None if user is None else find_user(user)
    )
    lone = LoneRunner(load_handlers(Permissions(commands=rules)))
    yield lone
    await lone.close()


async def run(lone: LoneRunner, *argv: str, **more: object) -> Report:
    report, _ = await lone.run(assigned("command", {"argv": argv, **more}))
    return report


def output_of(report: Report) -> str:
    output: str = result_of(report)["output"]
    return output


def make_program(file: Path, text: str = "echo made") -> str:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


# which programs


async def test_named_programs_run_and_no_other(tmp_path: Path) -> None:
    mine = make_program(tmp_path / "backup.sh")
    async with worker(["echo", mine]) as lone:
        assert output_of(await run(lone, "echo", "said")) == "said\n"
    async with worker([mine]) as lone:
        assert output_of(await run(lone, mine)) == "made\n"
    async with worker([mine]) as lone:
        report = await run(lone, "echo", "said")
    assert (report.status, error_of(report).code) == ("fatal_failure", "command_not_allowed")
    assert "--allow-command" in error_of(report).message


@pytest.mark.parametrize("spelling", ["{folder}/./backup.sh", "{folder}/in/../backup.sh", "{folder}/link/backup.sh"])
async def test_a_program_is_known_by_its_real_path(tmp_path: Path, spelling: str) -> None:
    mine = make_program(tmp_path / "backup.sh")
    (tmp_path / "in").mkdir()
    (tmp_path / "link").symlink_to(tmp_path)
    async with worker([mine]) as lone:
        assert output_of(await run(lone, spelling.format(folder=tmp_path))) == "made\n"


async def test_a_program_may_be_named_relative_to_the_jobs_folder(tmp_path: Path) -> None:
    mine = make_program(tmp_path / "backup.sh")
    async with worker([mine]) as lone:
        assert output_of(await run(lone, "./backup.sh", cwd=str(tmp_path))) == "made\n"


async def test_another_program_of_the_same_name_is_not_allowed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    mine = make_program(tmp_path / "a" / "backup.sh")
    other = make_program(tmp_path / "b" / "backup.sh", "echo other")
    async with worker([mine]) as lone:
        for number, (name, folder) in enumerate([(other, None), ("./backup.sh", str(tmp_path / "b"))]):
            job = assigned("command", {"argv": [name], "cwd": folder}, number=number + 1)
            report, _ = await lone.run(job)
            assert error_of(report).code == "command_not_allowed"


async def test_the_jobs_path_does_not_choose_the_program(tmp_path: Path) -> None:
    make_program(tmp_path / "echo", "echo stolen")
    async with worker(["echo"]) as lone:
        report = await run(lone, "echo", "said", env={"PATH": str(tmp_path)})
    assert error_of(report).code == "command_not_allowed"


async def test_one_file_that_is_many_programs_is_allowed_by_name(tmp_path: Path) -> None:
    """As busybox is: the link that was named does not open the others."""
    many = make_program(tmp_path / "many", 'echo "as ${0##*/}"')
    for name in ("list", "shell"):
        (tmp_path / name).symlink_to(many)
    async with worker([str(tmp_path / "list")]) as lone:
        assert output_of(await run(lone, str(tmp_path / "list"))) == "as list\n"
        for number, name in enumerate(["shell", "many"], 2):
            report, _ = await lone.run(assigned("command", {"argv": [str(tmp_path / name)]}, number=number))
            assert error_of(report).code == "command_not_allowed"


async def test_a_named_program_that_is_not_there_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    missing = str(tmp_path / "missing")
    async with worker([missing]) as lone:
        report = await run(lone, missing)
    assert error_of(report).code == "bad_payload"
    assert f"{missing} is allowed but not there now" in caplog.text


def test_that_any_program_may_run_is_said_loudly(caplog: pytest.LogCaptureFixture) -> None:
    load_handlers()
    assert caplog.records == []
    load_handlers(Permissions(commands=CommandRules()))
    assert [(record.levelname, "ANY program" in record.message) for record in caplog.records] == [("WARNING", True)]


# with what around them


async def test_a_program_sees_none_of_the_workers_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FOLIOT_ADMIN_KEY", "FOLIOT_KEY", "FOLIOT_DATABASE", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"):
        monkeypatch.setenv(name, "hidden")
    monkeypatch.setenv("LC_TIME", "C")
    async with worker() as lone:
        report = await run(lone, "env", env={"MINE": "yes"})
    seen = dict(line.split("=", 1) for line in output_of(report).splitlines())
    assert "hidden" not in seen.values()
    assert seen.keys() - {"PATH", "HOME", "LANG", "TZ", "TMPDIR"} == {
        "LC_TIME",
        "MINE",
        "FOLIOT_JOB_ID",
        "FOLIOT_ATTEMPT",
    }
    assert seen["MINE"] == "yes"


async def test_without_a_path_the_usual_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATH")
    async with worker() as lone:
        assert "/usr/bin" in output_of(await run(lone, "/bin/sh", "-c", "echo $PATH"))


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP",
        "PERL5OPT", "RUBYOPT", "NODE_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "BASH_ENV", "ENV",
        "BASH_FUNC_echo%%", "IFS", "PATH", "HOME", "GIT_SSH_COMMAND", "RSYNC_RSH", "PAGER", "ld_preload",
    ],
)  # fmt: skip
async def test_where_programs_are_named_a_job_sets_nothing_that_steers_them(name: str) -> None:
    async with worker(["echo"]) as lone:
        report = await run(lone, "echo", env={"MINE": "yes", name: "x"})
    assert (report.status, error_of(report).code) == ("fatal_failure", "command_not_allowed")
    assert name in error_of(report).message
    assert CommandRules().steering({name: "x"}) is None, "where any may run there is nothing to steer"


# as whom


@needs_root
async def test_programs_of_a_roots_worker_run_as_the_user_that_was_named() -> None:
    async with worker(user="nobody") as lone:
        report = await run(lone, "sh", "-c", "id -u; id -g; id -G; pwd; echo $HOME", stdin="x")
    number, group, groups, folder, home = output_of(report).splitlines()
    assert (int(number), int(group), folder, home) == (NOBODY.pw_uid, NOBODY.pw_gid, "/", NOBODY.pw_dir)
    assert "0" not in groups.split()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that every user may enter; pytest's own are closed to others."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@needs_root
async def test_another_user_starts_in_no_folder_that_it_may_not_enter(open_folder: Path) -> None:
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    (closed / "secret").write_text("hidden")
    (closed / "secret").chmod(0o644)
    async with worker(user="nobody") as lone:
        report = await run(lone, "cat", "secret", cwd=str(closed))
    assert report.status == "retriable_failure"
    assert "hidden" not in error_of(report).message
    async with worker(user="nobody") as lone:
        assert output_of(await run(lone, "pwd", cwd=str(open_folder))) == f"{open_folder}\n"


@needs_root
async def test_another_users_program_that_can_not_be_started_is_told_as_any_other() -> None:
    async with worker(user="nobody") as lone:
        assert error_of(await run(lone, "no-such-program-here")).code == "bad_payload"
    async with worker(user="nobody") as lone:
        assert "payload.cwd" in error_of(await run(lone, "ls", cwd="/no/such/folder")).message


@needs_root
async def test_another_users_program_is_ended_with_its_job() -> None:
    async with worker(user="nobody") as lone:
        lone.begin(assigned("command", {"argv": ["sh", "-c", "echo begun; sleep 3600"]}))
        await lone.said("begun")
        lone.runner.cancel("t1")
        report, _ = await lone.ended()
    assert report.status == "cancelled"


@needs_root
def test_a_roots_worker_has_to_be_told_whom_programs_run_as() -> None:
    with pytest.raises(SettingsError, match=r"runs as root.*--command-user nobody"):
        permissions_of(Settings(allow_commands=True))
    for name, user in (("root", None), ("nobody", find_user("nobody"))):
        permissions = permissions_of(Settings(allow_commands=True, command_user=name))
        assert permissions.commands == CommandRules(user=user)
    assert permissions_of(Settings()) == Permissions()


@not_as_root
def test_a_plain_users_worker_runs_programs_as_itself_only() -> None:
    assert find_user("") is None
    with pytest.raises(BadUser, match="only a worker that runs as root"):
        find_user("root")


# settings


def test_programs_are_named_or_any_may_run_but_not_both() -> None:
    own = pwd.getpwuid(os.geteuid()).pw_name
    permissions = permissions_of(Settings(allow_command="rsync, /usr/bin/env,", command_user=own))
    assert permissions.commands == CommandRules(programs=("rsync", "/usr/bin/env"))
    with pytest.raises(SettingsError, match="set one of them"):
        permissions_of(Settings(allow_command="rsync", allow_commands=True, command_user=own))


def test_a_setting_that_can_not_work_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^http_allow: '10\.0\.0\.1/8' .*; write 10\.0\.0\.0/8$"):
        permissions_of(Settings(http_allow="10.0.0.1/8"))
    with pytest.raises(SettingsError, match=r"^command_user: there is no user 'no-such-user'"):
        permissions_of(Settings(allow_commands=True, command_user="no-such-user"))
