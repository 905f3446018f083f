"""The repository keeps its own rules: locks without addresses, a Makefile and rooms that explain themselves."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ("requirements.txt", "requirements-dev.txt")
ROOMS = sorted((ROOT / "src" / "foliot").rglob("__init__.py"))


def pins(lock: str) -> set[str]:
    return set(re.findall(r"^[a-z0-9][^ ]*==[^ ]+", (ROOT / lock).read_text(), re.MULTILINE))


def package_name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def wanted() -> set[str]:
    """Every package that pyproject.toml asks for by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = [entry for group in project["dependency-groups"].values() for entry in group if isinstance(entry, str)]
    return {package_name(entry) for entry in project["project"]["dependencies"] + groups}


def tracked_files() -> list[Path]:
    """The files of the repository, or of an unpacked source archive."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if (ROOT / ".git").exists():
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
        found = [ROOT / name for name in names if name]
    else:
        found = [path for path in ROOT.rglob("*") if not {".venv", "node_modules"} & set(path.parts)]
    return [path for path in found if path.is_file()]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    lines = (ROOT / lock).read_text().splitlines()
    form = re.compile(
        r"[a-z0-9][a-z0-9._-]*==[^\s/]+( ; [^/]+)? \\"  # a pinned package
        r"|    --hash=sha256:[0-9a-f]{64}( \\)?"
        r"|    # (via( [^/]+)?|  [^/]+)"  # who asked for it
    )
    assert [line for line in lines if not form.fullmatch(line)] == []


def test_the_dev_lock_contains_the_runtime_lock() -> None:
    assert pins("requirements.txt") <= pins("requirements-dev.txt")


def test_the_locks_hold_what_the_project_asks_for() -> None:
    assert wanted() <= {pin.split("==")[0] for pin in pins("requirements-dev.txt")}


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "docs" / "design" / "dependencies.md").read_text()
    assert set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)) == wanted()


def test_make_help_lists_every_target() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", "help"]
    shown = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    declared = re.search(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert declared is not None
    assert re.findall(r"^make (\S+)", shown, re.MULTILINE) == declared[1].split()


def test_no_file_names_a_path_of_one_machine() -> None:
    own_path = re.compile(rb"(?<![\w.}-])/(?:work|root)/|/home/\w+/|file:///")
    mine = Path(__file__).resolve()
    found = [path.relative_to(ROOT) for path in tracked_files() if path != mine and own_path.search(path.read_bytes())]
    assert found == []


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.parent.name)
def test_a_room_says_what_it_is_for(room: Path) -> None:
    assert ast.get_docstring(ast.parse(room.read_text()))


def test_the_version_is_the_packages() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    code = "import foliot; print(foliot.__version__)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == project["project"]["version"]


def test_a_killed_test_run_leaves_no_postgres_behind() -> None:
    code = "from tests.postgres_server import PostgresServer as P; s = P.start(); print(s.pid, flush=True); input()"
    run = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with run:
        assert run.stdout is not None
        postmaster = psutil.Process(int(run.stdout.readline()))
        run.kill()
    _, alive = psutil.wait_procs([postmaster], timeout=10)
    assert alive == []
