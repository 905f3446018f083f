"""The page on states shows the table that the code goes by."""

import subprocess
import sys
from pathlib import Path

import pytest

from foliot.domain.job import State
from foliot.domain.states import RULES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "states.md"


def state_diagram(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "state-diagram", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_page_is_up_to_date() -> None:
    done = state_diagram("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_names_every_state_and_event() -> None:
    text = PAGE.read_text()
    assert [state for state in State if f"\n| {state.name.lower()} | " not in text] == []
    assert [kind for kind in RULES if f"\n| `{kind.__name__}` | " not in text] == []


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("running --> completed: Succeed", "running --> failed: Succeed"),
        ("| queued → running |", "| queued → failed |"),
    ],
    ids=["diagram", "table"],
)
def test_a_stale_page_is_found_and_renewed(tmp_path: Path, was: str, becomes: str) -> None:
    text = PAGE.read_text()
    stale = tmp_path / "states.md"
    stale.write_text(text.replace(was, becomes))
    assert stale.read_text() != text
    assert state_diagram("--check", stale).returncode == 1
    assert stale.read_text() != text
    assert state_diagram(stale).returncode == 0
    assert stale.read_text() == text
