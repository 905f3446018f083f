"""The page on security shows the tables that the code goes by."""

import subprocess
import sys
from pathlib import Path

import pytest

from foliot.api.routes import ROUTES
from tests.security.requests import title

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"


def access_matrix(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "tools" / "access-matrix", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_page_is_up_to_date() -> None:
    done = access_matrix("--check")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_names_every_call() -> None:
    text = PAGE.read_text()
    assert [title(route) for route in ROUTES if f"\n| `{title(route)}` | " not in text] == []


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("| `manage` |  |  |  | yes |  |", "| `manage` | yes |  |  | yes |  |"),
        ("| `GET /api/v1/audit` | `manage` |", "| `GET /api/v1/audit` | `read` |"),
    ],
    ids=["roles", "calls"],
)
def test_a_stale_page_is_found_and_renewed(tmp_path: Path, was: str, becomes: str) -> None:
    page, text = tmp_path / "security.md", PAGE.read_text()
    assert was in text
    page.write_text(text.replace(was, becomes))
    assert access_matrix("--check", page).returncode == 1
    assert access_matrix(page).returncode == 0
    assert page.read_text() == text


def test_the_page_leads_to_how_a_hole_is_reported() -> None:
    assert "(../SECURITY.md)" in PAGE.read_text()
    assert "security advisories" in (ROOT / "SECURITY.md").read_text()
