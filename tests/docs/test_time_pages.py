"""The pages on the virtual clock and on deferred calls: their code is run, and does what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.docs.pages import blocks

TESTING = "docs/how-to/test-with-a-virtual-clock.md"
DEFERRED = "docs/how-to/deferred-calls.md"


def run(folder: Path, *words: str, **environ: str) -> str:
    """What a program prints, for somebody who set nothing."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=folder,
        env=own | environ,
        capture_output=True,
        text=True,
        timeout=18,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_the_tests_of_the_page_on_the_virtual_clock_pass(tmp_path: Path) -> None:
    app, *tests = blocks(TESTING, "python")
    (tmp_path / "payments.py").write_text(app)
    (tmp_path / "test_payments.py").write_text("\n".join(tests))
    plugins = ["-p", "foliot.testing.plugin", "-p", "pytest_asyncio.plugin", "-o", "asyncio_mode=auto"]
    options = ["-o", "asyncio_default_fixture_loop_scope=function"]
    said = run(tmp_path, "-m", "pytest", "-q", *plugins, *options, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    written = len(re.findall(r"^(?:async )?def test_", "\n".join(tests), re.MULTILINE))
    assert written == 6
    assert f"{written} passed" in said


def test_the_code_of_the_page_on_deferred_calls_prints_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("\n".join(blocks(DEFERRED, "python")))
    assert run(tmp_path, "later.py") == "".join(blocks(DEFERRED, "text"))
