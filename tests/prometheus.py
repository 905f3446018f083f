"""Debian's Prometheus and its `promtool`: those that are installed, else unpacked from the package, once."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

CACHE = Path(sys.prefix) / "cache" / "prometheus"


def program(name: str) -> str:
    """Where `prometheus` or `promtool` is; the test is skipped where there is none and none can be had."""
    if installed := shutil.which(name):
        return installed
    found = CACHE / "usr" / "bin" / name
    if not found.exists():
        _unpack()
    return str(found)


def _unpack() -> None:
    CACHE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        try:
            _run("apt-get", "download", "prometheus", folder=folder)
            (package,) = Path(folder).glob("prometheus_*.deb")
            _run("dpkg-deb", "-x", str(package), "unpacked", folder=folder)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            pytest.skip(f"Prometheus is not installed and its package can not be fetched: {error}")
        if not CACHE.exists():  # another test run may have been faster
            (Path(folder) / "unpacked").rename(CACHE)


def _run(*words: str, folder: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=90)
