"""Handlers of installed packages, found by entry point."""

import sys
from pathlib import Path

import pytest

from foliot.handlers import load_handlers

PLUGIN = """
from foliot.sdk.handler import Handler

def plain(payload, context): ...
async def coroutine(payload, context): ...
made = Handler(name="own.name", function=plain, isolation="process")
nothing = 3
"""
ENTRY_POINTS = """[foliot.handlers]
plain = plugin_of_a_test:plain
coroutine = plugin_of_a_test:coroutine
made = plugin_of_a_test:made
nothing = plugin_of_a_test:nothing
missing = plugin_of_a_test:missing
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plugin_of_a_test.py").write_text(PLUGIN)
    info = tmp_path / "plugin_of_a_test-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-of-a-test\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "plugin_of_a_test", raising=False)


def test_built_in_handlers_are_there() -> None:
    assert {"echo", "http", "command"} <= set(load_handlers())


@pytest.mark.usefixtures("plugin")
def test_entry_points_become_handlers_and_a_broken_one_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    handlers = load_handlers()
    found = {name: handlers[name].isolation for name in ("plain", "coroutine", "own.name")}
    assert found == {"plain": "thread", "coroutine": "async", "own.name": "process"}
    assert not {"nothing", "missing"} & set(handlers)
    assert "missing" in caplog.text
    assert "echo" in handlers
