"""Groups of processes that the kernel keeps within limits: cgroup v2, as files.

A group lies beside the worker's own, inside the group that the worker was started in. The kernel lets a group hand its
controllers on only while no process is in it, so the worker first moves itself into a group of its own there. It does
so only where it was started alone (a service of systemd with `Delegate=yes`, a container that may write its groups):
other people's processes are not moved.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
OWN_GROUP = Path("/proc/self/cgroup")
CONTROLLERS = ("memory", "cpu")
PERIOD = 100_000  # microseconds, over which a share of the processors is counted
SMALLEST_QUOTA = 1_000
REMOVE_TRIES = 40
REMOVE_PAUSE = 0.025


class NoGroups(Exception):
    """Why the worker can make no groups."""


class Groups:
    """Where groups can be made, ready for it."""

    def __init__(self, home: Path) -> None:
        """Raises `NoGroups`. Done again for the same `home` it changes nothing."""
        self._home = home
        try:
            self._prepare()
        except OSError as error:
            raise NoGroups(f"{error.filename or home}: {error.strerror}") from None

    def _prepare(self) -> None:
        missing = {*CONTROLLERS} - {*_words(self._home / "cgroup.controllers")}
        if missing:
            raise NoGroups(f"the worker's group has no controller for {', '.join(sorted(missing))}")
        if {*CONTROLLERS} <= {*_words(self._home / "cgroup.subtree_control")}:
            return
        inside = [int(word) for word in _words(self._home / "cgroup.procs")]
        if not all(_is_ours(process) for process in inside):
            raise NoGroups("other processes are in the worker's group; a service with Delegate=yes has its own")
        own = self._home / "foliot-worker"
        own.mkdir(exist_ok=True)
        for process in inside:
            with suppress(ProcessLookupError):
                (own / "cgroup.procs").write_text(str(process))
        (self._home / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))

    def make(self, name: str, *, memory: int | None, cpu: float | None) -> "Group":
        """Raises `OSError` where the kernel refuses."""
        group = Group(self._home / f"foliot-{name}")
        group.path.mkdir(exist_ok=True)
        if memory is not None:
            (group.path / "memory.max").write_text(str(memory))
            for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                with suppress(OSError):  # not in every kernel
                    (group.path / file).write_text(value)
        if cpu is not None:
            (group.path / "cpu.max").write_text(f"{max(SMALLEST_QUOTA, round(cpu * PERIOD))} {PERIOD}")
        return group


class Group:
    """The processes of one program, and what becomes of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def ran_out_of_memory(self) -> bool:
        try:
            events = _words(self.path / "memory.events")
        except OSError:
            return False
        counts = dict(zip(events[::2], events[1::2], strict=False))
        return int(counts.get("oom_kill", 0)) > 0

    async def remove(self) -> None:
        """With whatever is left in it. Processes that were killed take a moment to be gone."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")
        for _ in range(REMOVE_TRIES):
            try:
                self.path.rmdir()
            except FileNotFoundError:
                return
            except OSError:
                await asyncio.sleep(REMOVE_PAUSE)
            else:
                return


def own_group(mounts: Path = MOUNTS, own: Path = OWN_GROUP) -> Path:
    """The folder of the group that this process is in. Raises `NoGroups`."""
    try:
        where = _mount_point(mounts.read_text())
        paths = [line[3:] for line in own.read_text().splitlines() if line.startswith("0::")]
    except OSError:
        raise NoGroups("this system has no cgroups") from None
    if where is None or not paths:
        raise NoGroups("this system has no cgroup v2")
    point, root = where
    found = point / os.path.relpath(paths[0], root)
    if ".." in found.parts or not found.is_dir():
        raise NoGroups(f"the worker's group {paths[0]} can not be seen from here")
    return found


def _mount_point(mounts: str) -> tuple[Path, str] | None:
    """Where cgroup v2 is to be seen, and which of its groups is the top there."""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[:1] == ["cgroup2"]:
            root, point = before.split()[3:5]
            return Path(point), root
    return None


def _is_ours(process: int) -> bool:
    """Whether it is this process or one that it has started."""
    own = os.getpid()
    while process > 1 and process != own:
        try:
            status = Path(f"/proc/{process}/stat").read_text()
        except OSError:
            return True  # it has ended meanwhile
        process = int(status.rpartition(")")[2].split()[1])  # its parent; a program's name may have spaces in it
    return process == own


def _words(file: Path) -> list[str]:
    return file.read_text().split()
