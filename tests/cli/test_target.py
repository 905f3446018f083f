"""`foliot worker module:app`: what is wrong with the target is told in one line."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from foliot.cli import main
from foliot.cli.target import load_app


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory to start in, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith("program"):
            del sys.modules[name]


def test_an_app_is_found_in_the_current_directory(program: Path) -> None:
    (program / "program_one.py").write_text("from foliot.sdk.app import Foliot\napp = Foliot()\nother = Foliot()\n")
    first = load_app("program_one:app")
    assert load_app("program_one") is first
    assert load_app("program_one:other") is not first


@pytest.mark.parametrize(
    ("source", "target", "told"),
    [
        (None, "program_two:app", "there is no module 'program_two'"),
        (None, "program_two.py", "there is no module"),
        (None, "program two:app", "write module:attribute, as in myapp:app"),
        ("import program_that_is_missing", "program_two:app", "needs the module 'program_that_is_missing'"),
        ("x = 1\n1 / 0", "program_two:app", "ZeroDivisionError: division by zero"),
        ("def (", "program_two:app", "SyntaxError"),
        ("x = 1", "program_two:app", "make one with: app = Foliot()"),
        ("app = 3", "program_two:app", "is of type int, not a Foliot app"),
        (
            "from foliot.sdk.app import Foliot\njobs = Foliot()",
            "program_two:app",
            "has no 'app'; did you mean program_two:jobs?",
        ),
    ],
)
def test_a_wrong_target_is_explained(program: Path, source: str | None, target: str, told: str) -> None:
    if source is not None:
        (program / "program_two.py").write_text(source)
    shown = CliRunner().invoke(main, ["worker", target])
    assert shown.exit_code == 2
    assert told in shown.stderr
    assert len(shown.stderr.splitlines()) == 1


def test_an_app_and_builtin_exclude_each_other() -> None:
    for words in (["worker"], ["worker", "program:app", "--builtin"], ["worker", "program:app", "--allow-commands"]):
        assert CliRunner().invoke(main, words).exit_code == 2
