"""What a job asked for holds for the program of a `command`: by cgroup v2 where there is one, else by rlimits."""

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from foliot.handlers import load_handlers
from foliot.handlers.cgroup import Group, Groups, NoGroups, own_group
from foliot.handlers.limits import GroupLimits, Limits, Rlimits, groups, show_bytes
from foliot.handlers.permissions import Permissions
from foliot.wire import Report
from tests.handlers.conftest import ANY_PROGRAM
from tests.handlers.test_command import python
from tests.worker.lone_runner import LoneRunner, assigned, error_of, result_of

MEMORY = 256 * 2**20
SHOW_LIMITS = "import resource as r; print(r.getrlimit(r.RLIMIT_AS), r.getrlimit(r.RLIMIT_CPU))"

CAN_LIMIT = sys.platform.startswith("linux")
needs_limits = pytest.mark.skipif(not CAN_LIMIT, reason="this system has neither cgroup v2 nor rlimits that hold")


def why_no_groups() -> str | None:
    try:
        groups()
    except NoGroups as error:
        return str(error)
    return None


async def run(lone: LoneRunner, code: str, **resources: float) -> tuple[Report, list[str]]:
    return await lone.run(assigned("command", python(code), resources=resources))


@pytest.fixture
async def roomy_lone() -> AsyncIterator[LoneRunner]:
    lone = LoneRunner(load_handlers(Permissions(commands=ANY_PROGRAM)), resources={"memory": "8Gi", "cpu": 4})
    yield lone
    await lone.close()


@needs_limits
async def test_a_program_that_takes_more_memory_than_it_asked_for_fails(roomy_lone: LoneRunner) -> None:
    take = f"print(len(b'x' * {2 * MEMORY}))"
    report, lines = await run(roomy_lone, take, memory=MEMORY)
    assert report.status == "retriable_failure"
    assert error_of(report).code == "exit_code"
    assert lines[0].startswith(("limited by cgroup v2 to 256 MiB of memory", "limited by rlimits to 256 MiB"))
    report, _ = await roomy_lone.run(assigned("command", python(take), number=2, resources={"memory": 4 * MEMORY}))
    assert report.status == "success", "with enough it runs"


@needs_limits
async def test_the_log_says_which_limits_hold_and_why_no_better_ones(roomy_lone: LoneRunner) -> None:
    report, lines = await run(roomy_lone, "print('ran')", memory=MEMORY, cpu=0.5)
    assert report.status == "success"
    told, ran = lines
    assert ran == "ran"
    why = why_no_groups()
    if why is None:
        assert told == "limited by cgroup v2 to 256 MiB of memory and 0.5 processors"
    else:
        assert told == (
            "limited by rlimits to 256 MiB of address space and 1800 s of processor time for each process: "
            f"no cgroup v2, {why}"
        )


async def test_a_job_that_asks_for_neither_is_not_limited(roomy_lone: LoneRunner) -> None:
    report, lines = await run(roomy_lone, SHOW_LIMITS, tape=0)
    unlimited = f"{resource.getrlimit(resource.RLIMIT_AS)} {resource.getrlimit(resource.RLIMIT_CPU)}"
    assert (report.status, lines) == ("success", [unlimited])


@needs_limits
@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"argv": ["no-such-program-here"]}, "payload.argv[0]"),
        ({"argv": ["./no-such-program-here"]}, "payload.argv[0]"),
        ({"argv": ["/etc/passwd"]}, "payload.argv"),
        ({"argv": ["/etc"]}, "payload.argv"),
        ({"argv": ["ls"], "cwd": "/no/such/folder"}, "payload.cwd"),
    ],
)
async def test_a_limited_program_that_can_not_be_started_is_told_as_any_other(
    roomy_lone: LoneRunner, payload: dict[str, object], field: str
) -> None:
    report, _ = await roomy_lone.run(assigned("command", payload, resources={"memory": MEMORY}))
    assert (report.status, error_of(report).code) == ("fatal_failure", "bad_payload")
    assert field in error_of(report).message


@needs_limits
async def test_arguments_of_a_limited_program_are_not_read_by_a_shell(roomy_lone: LoneRunner) -> None:
    argv = ["echo", "$HOME; exit 1", "", "two words", "'"]
    report, _ = await roomy_lone.run(assigned("command", {"argv": argv}, resources={"cpu": 1}))
    assert result_of(report)["output"] == "$HOME; exit 1  two words '\n"


# rlimits


def show(limits: Limits) -> str:
    words = limits.words([sys.executable, "-c", SHOW_LIMITS])
    return subprocess.run(words, capture_output=True, check=True, text=True).stdout.strip()


@needs_limits
@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        (Rlimits(space=MEMORY, seconds=1800), f"({MEMORY}, {MEMORY}) (1800, 1805)"),
        (Rlimits(space=None, seconds=2), f"{resource.getrlimit(resource.RLIMIT_AS)} (2, 7)"),
        (Rlimits(space=MEMORY, seconds=None), f"({MEMORY}, {MEMORY}) {resource.getrlimit(resource.RLIMIT_CPU)}"),
    ],
)
def test_rlimits_are_those_of_the_program(limits: Limits, shown: str) -> None:
    assert show(limits) == shown
    assert limits.broken is None


@needs_limits
def test_a_program_that_used_up_its_processor_time_is_ended() -> None:
    words = Rlimits(space=None, seconds=1).words([sys.executable, "-c", "while True: pass"])
    assert subprocess.run(words, check=False).returncode == -24  # SIGXCPU


# cgroup v2: what is written where, in a folder that has the kernel's files


def folder(tmp_path: Path, **files: str) -> Path:
    texts = {"cgroup.controllers": "cpu io memory pids", "cgroup.subtree_control": "", "cgroup.procs": ""} | files
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_group_is_made_with_its_limits_and_the_program_begins_in_it(tmp_path: Path) -> None:
    home = folder(tmp_path, **{"cgroup.procs": f"{os.getpid()}\n"})
    made = Groups(home).make("j_1-2", memory=MEMORY, cpu=0.25)
    assert (home / "foliot-worker" / "cgroup.procs").read_text() == str(os.getpid())
    assert (home / "cgroup.subtree_control").read_text() == "+memory +cpu"
    assert (made.path / "memory.max").read_text() == str(MEMORY)
    assert (made.path / "memory.swap.max").read_text() == "0"
    assert (made.path / "cpu.max").read_text() == "25000 100000"
    words = GroupLimits(made, "memory").words([sys.executable, "-c", "import os; print(os.getpid())"])
    process = subprocess.run(words, capture_output=True, check=True, text=True)
    assert (made.path / "cgroup.procs").read_text() == process.stdout


@needs_limits
def test_another_users_program_begins_in_its_group_too(tmp_path: Path) -> None:
    """Moved by the worker, before its first step: it writes only after its number was written."""
    made = Groups(folder(tmp_path)).make("j_1-2", memory=MEMORY, cpu=None)
    procs = made.path / "cgroup.procs"
    limits = GroupLimits(made, "memory", own_user=False)
    words = limits.words([sys.executable, "-c", f"print(open({str(procs)!r}).read())"])
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        limits.begin(process.pid)
        printed, _ = process.communicate()
    assert printed.strip() == str(process.pid)


def test_a_share_of_the_processors_may_be_small_but_not_too_small_for_the_kernel(tmp_path: Path) -> None:
    made = Groups(folder(tmp_path)).make("small", memory=None, cpu=0.001)
    assert (made.path / "cpu.max").read_text() == "1000 100000"
    assert not (made.path / "memory.max").exists()


def test_a_group_whose_controllers_are_handed_on_already_is_used_as_it_is(tmp_path: Path) -> None:
    home = folder(tmp_path, **{"cgroup.subtree_control": "cpu memory", "cgroup.procs": "1\n"})
    Groups(home)
    assert not (home / "foliot-worker").exists()


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"cgroup.controllers": "io pids"}, "no controller for cpu, memory"),
        ({"cgroup.controllers": "cpu"}, "no controller for memory"),
        ({"cgroup.procs": f"{os.getpid()}\n1\n"}, "other processes are in the worker's group"),
    ],
)
def test_where_no_groups_can_be_made_the_reason_is_told_and_nobody_is_moved(
    tmp_path: Path, files: dict[str, str], told: str
) -> None:
    with pytest.raises(NoGroups, match=told):
        Groups(folder(tmp_path, **files))
    assert not (tmp_path / "foliot-worker").exists()


def test_a_folder_that_is_no_group_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoGroups, match=r"cgroup\.controllers: No such file"):
        Groups(tmp_path)


def test_children_of_the_worker_are_moved_with_it(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        home = folder(tmp_path, **{"cgroup.procs": f"{child.pid}\n"})
        Groups(home)
        assert (home / "foliot-worker" / "cgroup.procs").read_text() == str(child.pid)
        child.communicate(b"\n")


def test_running_out_of_memory_is_told(tmp_path: Path) -> None:
    group = Group(tmp_path)
    limits = GroupLimits(group, "256 MiB of memory")
    assert limits.broken is None
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 3\noom 0\noom_kill 0\n")
    assert limits.broken is None
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n")
    assert limits.broken == "it used more than its 256 MiB of memory"


async def test_a_group_is_removed_when_it_is_empty(tmp_path: Path) -> None:
    group = Group(tmp_path / "foliot-j")
    group.path.mkdir()
    busy = group.path / "child"
    busy.mkdir()
    asyncio.get_running_loop().call_later(0.05, busy.rmdir)
    (tmp_path / "foliot-j" / "cgroup.kill").mkdir()  # can not be written, as in an older kernel
    asyncio.get_running_loop().call_later(0.05, (group.path / "cgroup.kill").rmdir)
    await group.remove()
    assert not group.path.exists()
    await group.remove()


MOUNTS = """24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw
35 24 0:30 {root} {point} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
"""


@pytest.mark.parametrize(
    ("root", "own", "found"),
    [
        ("/", "0::/\n", "."),
        ("/", "0::/system.slice/foliot.service\n", "system.slice/foliot.service"),
        ("/", "4:memory:/elsewhere\n0::/system.slice/foliot.service\n", "system.slice/foliot.service"),
        ("/system.slice", "0::/system.slice/foliot.service\n", "foliot.service"),
        ("/", "0::/../other\n", None),
        ("/", "0::/not.there\n", None),
        ("/", "4:memory:/\n", None),
    ],
)
def test_the_workers_own_group_is_found(tmp_path: Path, root: str, own: str, found: str | None) -> None:
    point = tmp_path / "cgroup"
    for name in ("system.slice/foliot.service", "foliot.service"):
        (point / name).mkdir(parents=True)
    (tmp_path / "mounts").write_text(MOUNTS.format(root=root, point=point))
    (tmp_path / "own").write_text(own)
    if found is None:
        with pytest.raises(NoGroups):
            own_group(tmp_path / "mounts", tmp_path / "own")
    else:
        assert own_group(tmp_path / "mounts", tmp_path / "own").resolve() == (point / found).resolve()


def test_a_system_without_cgroups_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoGroups, match="this system has no cgroups"):
        own_group(tmp_path / "mounts", tmp_path / "own")
    (tmp_path / "mounts").write_text("24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw\n")
    (tmp_path / "own").write_text("0::/\n")
    with pytest.raises(NoGroups, match="no cgroup v2"):
        own_group(tmp_path / "mounts", tmp_path / "own")


@pytest.mark.skipif(why_no_groups() is not None, reason=f"no cgroup v2 here: {why_no_groups()}")
async def test_a_group_of_the_kernel_ends_a_program_that_takes_too_much(roomy_lone: LoneRunner) -> None:
    report, _ = await run(roomy_lone, f"print(len(b'x' * {2 * MEMORY}))", memory=MEMORY)
    assert (report.status, report.exit_code) == ("retriable_failure", -9)
    assert "it used more than its 256 MiB of memory" in error_of(report).message
    assert not list(groups()._home.glob("foliot-j1-*"))


@pytest.mark.parametrize(
    ("count", "shown"),
    [(512, "512 bytes"), (2048, "2 KiB"), (MEMORY, "256 MiB"), (1.5 * 2**30, "1.5 GiB"), (10**9, "953.7 MiB")],
)
def test_amounts_of_memory_are_shown_with_their_unit(count: float, shown: str) -> None:
    assert show_bytes(count) == shown
