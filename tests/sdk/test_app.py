"""The app object: where it looks for its node, how it begins and ends."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from foliot import Foliot
from foliot.sdk.location import find_key, find_url
from tests.sdk.served_node import KEY, ServedNode

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )


def test_the_address_is_given_or_in_the_environment_or_this_machine() -> None:
    assert find_url("http://a/", {"FOLIOT_URL": "http://b"}) == "http://a"
    assert find_url(None, {"FOLIOT_URL": "http://b"}) == "http://b"
    assert find_url(None, {}) == "http://127.0.0.1:7070"


def test_the_key_is_given_or_in_the_environment_or_in_this_machines_data(tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_text("from-the-file\n")
    (tmp_path / "admin.key").chmod(0o600)
    data = {"FOLIOT_DATA_DIR": str(tmp_path)}
    assert find_key("http://127.0.0.1:1", "given", {"FOLIOT_KEY": "k"}) == "given"
    assert find_key("http://127.0.0.1:1", None, {"FOLIOT_KEY": "k", "FOLIOT_ADMIN_KEY": "a"}) == "k"
    assert find_key("http://127.0.0.1:1", None, {"FOLIOT_ADMIN_KEY": "a"} | data) == "a"
    for local in ("http://127.0.0.1:1", "http://localhost:7070", "http://[::1]:7070", "http://127.9.9.9"):
        assert find_key(local, None, data) == "from-the-file"


@pytest.mark.parametrize(
    "url", ["http://example.org", "http://10.0.0.1", "http://localhost.example.org", "sqlite:///x"]
)
def test_this_machines_key_is_not_shown_to_another(url: str, tmp_path: Path) -> None:
    (tmp_path / "admin.key").write_text("from-the-file\n")
    (tmp_path / "admin.key").chmod(0o600)
    assert find_key(url, None, {"FOLIOT_DATA_DIR": str(tmp_path)}) is None


def test_a_key_that_is_written_later_is_found(
    node: ServedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FOLIOT_KEY", "FOLIOT_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FOLIOT_DATA_DIR", str(tmp_path))
    with Foliot(node.url) as app:
        (tmp_path / "admin.key").write_text(KEY)
        (tmp_path / "admin.key").chmod(0o600)
        assert app.submit("note").status() == "queued"


def test_importing_the_package_loads_nothing_of_it() -> None:
    done = run("import sys, foliot; print([n for n in sys.modules if n.startswith(('foliot.', 'aiohttp', 'msgspec'))])")
    assert done.stdout.strip() == "[]"


def test_a_public_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(ImportError):
        from foliot import Nothing  # noqa: F401


@pytest.mark.parametrize("close", ["app.close()", "pass"])
def test_a_program_ends_without_a_word_whether_it_closes_or_not(node: ServedNode, close: str) -> None:
    code = f"from foliot import Foliot\napp = Foliot()\nprint(app.submit('note').status())\n{close}"
    done = run(code, FOLIOT_URL=node.url, FOLIOT_KEY=KEY)
    assert (done.stdout, done.stderr, done.returncode) == ("queued\n", "", 0)


def test_an_embedded_program_ends_without_a_word_though_it_does_not_close() -> None:
    code = (
        "from foliot import Foliot\napp = Foliot()\n"
        "@app.job\ndef same(n: int) -> int: return n\nprint(same.submit(3).result(9))"
    )
    done = run(code, FOLIOT_URL="sqlite:///:memory:")
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


def test_an_app_works_again_after_close(app: Foliot) -> None:
    first = app.submit("note")
    app.close()
    app.close()
    assert first.status() == "queued"


def test_an_app_outlives_the_event_loops_it_is_used_on(app: Foliot) -> None:
    async def submit() -> str:
        return (await app.aio.submit("note")).job_id

    ids = {asyncio.run(submit()) for _ in range(2)} | {app.submit("note").job_id}
    assert len(ids) == 3


def test_a_fork_makes_its_own_connections(app: Foliot, node: ServedNode) -> None:
    code = (
        "import os, sys\nfrom foliot import Foliot\napp = Foliot()\napp.submit('note')\n"
        "child = os.fork()\nif child == 0:\n    app.submit('note')\n    os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\nprint(app.submit('note').status())"
    )
    done = run(code, FOLIOT_URL=node.url, FOLIOT_KEY=KEY)
    assert (done.stdout, done.stderr) == ("7\nqueued\n", "")
    assert len(list(app.client.list())) == 3


def test_a_fork_of_an_embedded_app_is_refused() -> None:
    code = (
        "import os\nfrom foliot import Foliot\napp = Foliot()\napp.start()\n"
        "child = os.fork()\nif child == 0:\n    try:\n        app.submit('note')\n"
        "    except RuntimeError as error:\n        print(error, flush=True)\n    os._exit(0)\n"
        "os.waitpid(child, 0)"
    )
    assert "is already in use by the process" in run(code, FOLIOT_URL="sqlite:///:memory:").stdout


def test_an_app_is_its_own_worker_until_a_signal(app: Foliot, node: ServedNode) -> None:
    code = "from tests.sdk.sample_app import app; raise SystemExit(app.run_worker(concurrency=2))"
    environ = {**os.environ, "FOLIOT_URL": node.url, "FOLIOT_KEY": KEY}
    worker = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, env=environ, stderr=subprocess.PIPE)
    with worker:
        assert app.submit("greet", {"name": "you"}).result(15) == "you"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0
