"""What a run was made on: without it a figure says nothing."""

import os
import platform
import sqlite3
import statistics
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import msgspec
import psutil

LIBRARIES = ("foliot", "asyncpg", "uvicorn", "uvloop", "httptools", "msgspec", "aiohttp")
SYNCS = 100


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    processor: str
    cores: int
    memory: int  # bytes
    system: str
    load: float  # runnable processes before the run began, average of a minute
    sync_p50: float  # milliseconds that writing 4 KiB through to the disk takes
    sync_p99: float
    versions: dict[str, str]

    def lines(self) -> list[str]:
        return [
            f"{self.cores} cores ({self.processor}), {self.memory / 2**30:.0f} GiB, {self.system}",
            f"write of 4 KiB through to the disk: p50 {self.sync_p50:.2f} ms, p99 {self.sync_p99:.2f} ms",
            f"load average before the run: {self.load:.1f}",
            ", ".join(f"{name} {number}" for name, number in self.versions.items()),
        ]


def look() -> Machine:
    syncs = _syncs()
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        memory=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        load=os.getloadavg()[0],
        sync_p50=statistics.median(syncs),
        sync_p99=sorted(syncs)[SYNCS * 99 // 100],
        versions={
            "Python": platform.python_version(),
            "SQLite": sqlite3.sqlite_version,
            **{library: version(library) for library in LIBRARIES},
        },
    )


class Withheld:
    """What a virtual machine wanted to use and was not given by its host, from now on."""

    def __init__(self) -> None:
        self._before = psutil.cpu_times()

    @property
    def share(self) -> float:
        """Of the processor time that was wanted; 0 where the system does not tell."""
        now, before = psutil.cpu_times(), self._before
        withheld = getattr(now, "steal", 0.0) - getattr(before, "steal", 0.0)
        used = now.user + now.system - before.user - before.system
        return withheld / (withheld + used) if withheld else 0.0


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _syncs() -> list[float]:
    """Milliseconds each, in the folder where the databases of a run lie."""
    found = []
    with tempfile.TemporaryFile() as file:
        for _ in range(SYNCS):
            file.write(b"x" * 4096)
            file.flush()
            begin = time.perf_counter()
            os.fsync(file.fileno())
            found.append((time.perf_counter() - begin) * 1000)
    return found
