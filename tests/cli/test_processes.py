"""The program as a process: starting, signals, exit codes, one line instead of a traceback."""

import json
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import FOLIOT, ServedNode, clean_environment, serve, stop


def refused(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A start that must fail: with one line on stderr, and no traceback."""
    ended = subprocess.run(
        [*FOLIOT, *words], cwd=directory, env=clean_environment(), capture_output=True, text=True, timeout=15
    )
    assert ended.returncode in (1, 2)
    assert ended.stderr.startswith("Error: ")
    assert len(ended.stderr.splitlines()) == 1, ended.stderr
    return ended


def test_a_job_is_submitted_and_waited_for_with_the_key_found_by_itself(node: ServedNode) -> None:
    ended = node.run("submit", "echo", '{"message": "hello"}', "--wait")
    assert ended.returncode == 0, ended.stderr
    assert "hello" in ended.stdout


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in refused(tmp_path, "serve", "--port", str(port)).stderr


def test_a_database_that_is_not_there_is_told(tmp_path: Path, free_port: int) -> None:
    words = ["serve", "--port", "0", "--database", f"postgresql://nobody@127.0.0.1:{free_port}/nothing"]
    assert refused(tmp_path, *words).returncode == 1


def test_a_database_of_a_newer_version_is_told(tmp_path: Path) -> None:
    file = tmp_path / "newer.db"
    assert subprocess.run([*FOLIOT, "migrate", "--database", f"sqlite:///{file}"], cwd=tmp_path).returncode == 0
    with sqlite3.connect(file) as connection:
        connection.execute("insert into schema_version values (9999, 'from_the_future', 0)")
    connection.close()
    ended = refused(tmp_path, "serve", "--port", "0", "--database", f"sqlite:///{file}")
    assert ended.returncode == 1
    assert "newer" in ended.stderr


def test_a_second_node_on_the_same_sqlite_file_is_told(node: ServedNode) -> None:
    assert "another Foliot process" in refused(node.directory, "serve", "--port", "0").stderr


def test_a_data_directory_that_can_not_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in refused(tmp_path, "serve", "--port", "0", "--data-dir", "file/below").stderr


def test_a_node_stops_at_a_signal_with_0(tmp_path: Path) -> None:
    served = serve(tmp_path, "--no-worker")
    try:
        served.process.send_signal(signal.SIGINT)
        said, _ = served.process.communicate(timeout=15)
        assert served.process.returncode == 0
        assert "Traceback" not in said + (tmp_path / "stderr.txt").read_text()
    finally:
        stop(served)


def test_a_worker_runs_an_apps_jobs_until_a_signal_ends_it(node: ServedNode, foliot: Callable[..., Result]) -> None:
    (node.directory / "shop.py").write_text(
        "from foliot import Foliot\napp = Foliot()\n@app.job\ndef double(n: int) -> int:\n    return 2 * n\n"
    )
    worker = node.start("worker", "shop:app", "--concurrency", "3", "--name", "shop-worker", "--queues", "default,shop")
    try:
        ended = foliot("submit", "double", '{"n": 21}', "--queue", "shop", "--wait", "--json")
        assert ended.exit_code == 0, ended.stderr
        job_id = json.loads(ended.stdout)["job_id"]
        assert foliot("jobs", "result", job_id).stdout == "42\n"
        (mine,) = [each for each in json.loads(foliot("workers", "--json").stdout) if each["name"] == "shop-worker"]
        assert (mine["queues"], mine["job_types"], mine["resources"]["slot"]) == (["default", "shop"], ["double"], 3)
        worker.terminate()
        said, _ = worker.communicate(timeout=10)
        assert worker.returncode == 0
        assert "Traceback" not in said
    finally:
        worker.kill()
        worker.communicate()


def test_ctrl_c_ends_a_follow_with_130(node: ServedNode, foliot: Callable[..., Result]) -> None:
    job_id = foliot("submit", "echo", '{"message": "first", "seconds": 60}').stdout.strip()
    follow = node.start("jobs", "logs", job_id, "-f")
    try:
        assert follow.stdout is not None
        assert "first" in follow.stdout.readline()
        follow.send_signal(signal.SIGINT)
        said, _ = follow.communicate(timeout=10)
        assert (follow.returncode, said.strip()) == (130, "")
    finally:
        follow.kill()
        follow.communicate()
        foliot("jobs", "cancel", job_id)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_migrate_brings_an_empty_database_up_to_date_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}" if kind == "sqlite" else request.getfixturevalue("database_url")

    def migrate(*words: str) -> tuple[int, str]:
        command = [*FOLIOT, "migrate", "--database", url, *words]
        ended = subprocess.run(command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True)
        assert "Traceback" not in ended.stderr
        return ended.returncode, ended.stdout

    assert migrate("--status")[0] == 1
    code, said = migrate()
    assert code == 0
    assert said.startswith("applied ")
    assert migrate() == (0, "the schema is up to date\n")
    assert migrate("--status")[0] == 0
