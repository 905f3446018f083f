"""The tutorial's code is run, and prints what the tutorial says; the reference names what is there."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import foliot
from foliot.sdk.async_client import AsyncClient
from foliot.sdk.options import OPTION_NAMES
from tests.sdk.served_node import KEY, ServedNode

DOCS = Path(__file__).resolve().parents[2] / "docs"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str) -> list[str]:
    return [text for kind, text in FENCE.findall((DOCS / page).read_text()) if kind == language]


def run_tutorial(folder: Path, **environ: str) -> tuple[str, str]:
    """Writes the reader's two files and runs the second."""
    shop, *day = blocks("tutorial/first-app.md", "python")
    (folder / "shop.py").write_text(shop)
    (folder / "day.py").write_text("\n".join(day))
    own = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    command = [sys.executable, "-W", "error", "day.py"]
    done = subprocess.run(
        command, cwd=folder, env=own | environ, capture_output=True, text=True, timeout=18, check=False
    )
    return done.stdout, done.stderr


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    assert run_tutorial(tmp_path) == ("".join(blocks("tutorial/first-app.md", "text")), "")


def test_the_tutorial_does_the_same_on_a_node(
    node: ServedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(blocks("tutorial/first-app.md", "python")[0])
    monkeypatch.syspath_prepend(tmp_path)
    node.run_worker(importlib.import_module("shop").app.handlers)
    printed = run_tutorial(tmp_path, FOLIOT_URL=node.url, FOLIOT_KEY=KEY)
    assert printed == ("".join(blocks("tutorial/first-app.md", "text")), "")


def test_the_reference_names_every_public_name_option_and_call() -> None:
    page = (DOCS / "reference" / "sdk.md").read_text()
    calls = {name for name in dir(AsyncClient) if not name.startswith("_")} - {"transport", "headers"}
    missing = [name for name in {*foliot.__all__, *OPTION_NAMES, *calls} if not re.search(rf"\b{name}\b", page)]
    assert missing == []


def test_the_references_code_is_python() -> None:
    found = blocks("reference/sdk.md", "python")
    assert found
    for text in found:
        compile(text, "sdk.md", "exec", flags=0x2000)  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
