"""A program's clocks, moved while it runs. Needs a C compiler; tests that use it are skipped where there is none."""

import mmap
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("clock_shim.c")


class ClockShim:
    """`environ` puts a program under it; `set` moves its clocks from then on, in seconds."""

    def __init__(self, library: Path, folder: Path) -> None:
        path = folder / "clock"
        path.write_bytes(struct.pack("qq", 0, 0))
        self._file = path.open("r+b")
        self._moved = mmap.mmap(self._file.fileno(), 16)
        self.environ = {"LD_PRELOAD": str(library), "CLOCK_SHIM": str(path)}

    def set(self, *, wall: float, asleep: float = 0) -> None:
        self._moved[:16] = struct.pack("qq", round(wall * 1e9), round(asleep * 1e9))

    def close(self) -> None:
        self._moved.close()
        self._file.close()


@pytest.fixture(scope="session")
def shim_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("needs a C compiler (cc, gcc or clang) to build the clock shim")
    library = tmp_path_factory.mktemp("shim") / "clock_shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


@pytest.fixture
def clock_shim(shim_library: Path, tmp_path: Path) -> Iterator[ClockShim]:
    shim = ClockShim(shim_library, tmp_path)
    yield shim
    shim.close()
