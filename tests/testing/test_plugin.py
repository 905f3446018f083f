"""The fixture as a user's pytest finds it, and what it costs who does not use it."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run_pytest(folder: Path, test: str, *options: str) -> str:
    """What pytest says in a folder of a user's, with the plugin as the entry point names it and no other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    plugin = project["project"]["entry-points"]["pytest11"]["foliot"]
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", plugin, *options, "test_it.py"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=18, check=False)
    return done.stdout + done.stderr


def test_the_fixture_is_there_without_an_import(tmp_path: Path) -> None:
    said = run_pytest(
        tmp_path,
        "from datetime import UTC, datetime\n"
        "from foliot import Foliot\n"
        "app = Foliot()\n"
        "@app.schedule(every='1h')\n"
        "@app.job\n"
        "def tick(): pass\n"
        "def test_a_day(foliot_time):\n"
        "    time = foliot_time(app, start=datetime(2027, 1, 1, tzinfo=UTC))\n"
        "    time.advance(days=1)\n"
        "    assert len(time.runs('tick')) == 24\n"
        "def test_the_app_was_given_back():\n"
        "    assert app.aio.home.stand_in is None\n",
    )
    assert "2 passed" in said


def test_who_does_not_use_it_loads_nothing_of_it(tmp_path: Path) -> None:
    said = run_pytest(
        tmp_path,
        "import sys\n"
        "def test_nothing():\n"
        "    loaded = {name for name in sys.modules if name.startswith(('foliot', 'msgspec', 'aiohttp', 'asyncio'))}\n"
        "    assert loaded == {'foliot', 'foliot.testing', 'foliot.testing.plugin'}\n",
    )
    assert "1 passed" in said


def test_it_is_told_by_pytest_what_it_is_for(tmp_path: Path) -> None:
    said = run_pytest(tmp_path, "", "--fixtures")
    assert "foliot_time" in said
    assert "virtual clock" in said
