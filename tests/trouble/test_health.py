"""What a node in trouble says of itself, and what `foliot doctor` makes of it: its store gone, its schema another's,
its clock wrong, its certificate near its end."""

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.main.certificates import Authority
from tests.postgres_server import PostgresServer
from tests.processes import KEY, Programs, eventually
from tests.trouble.clock_shim import ClockShim


def ready(url: str) -> tuple[int, dict[str, str], str]:
    """The status, each check's, and all of the text."""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            status, text = refused.code, refused.read().decode()
    return status, {check["name"]: check["status"] for check in json.loads(text)["checks"]}, text


def doctor(folder: Path, url: str, **environ: str) -> tuple[int, dict[str, dict[str, Any]]]:
    shown = subprocess.run(
        [sys.executable, "-m", "foliot", "doctor", "--json", "--url", url],
        cwd=folder,
        env={"FOLIOT_KEY": KEY, "PATH": ""} | environ,
        capture_output=True,
        text=True,
        timeout=15,
    )
    assert shown.stderr == ""
    return shown.returncode, {check["name"]: check for check in json.loads(shown.stdout)["checks"]}


@pytest.mark.timeout(60)
def test_a_node_whose_database_has_gone_is_alive_and_not_ready_until_it_is_back(
    programs: Programs, tmp_path: Path
) -> None:
    server = PostgresServer.start()
    try:
        database = server.create_database()
        _, url = programs.serve("node", "--no-worker", "--database", database)
        assert ready(url)[0] == 200
        server.kill()
        eventually(lambda: ready(url)[0] == 503, "it is not ready", 20)
        _, checks, text = ready(url)
        assert checks == {"store": "failed"}
        assert "127.0.0.1" not in text, "everybody may read it"
        with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:
            assert answer.status == 200
        code, found = doctor(tmp_path, url)
        assert (code, found["node"]["status"], found["store"]["status"]) == (1, "ok", "fail")
        assert found["key"]["status"] == "ok", "the node's own key is good even where the store is not"
        server.restart()
        eventually(lambda: ready(url)[0] == 200, "it is ready again", 20)
    finally:
        server.stop()


async def test_a_node_whose_schema_is_a_newer_ones_is_not_ready(programs: Programs, database_url: str) -> None:
    _, url = programs.serve("node", "--no-worker", "--database", database_url)
    database = await asyncpg.connect(database_url)
    try:
        await database.execute("insert into schema_version (number, name, applied) values (9999, 'later', 0)")
    finally:
        await database.close()
    eventually(lambda: ready(url)[0] == 503, "it is not ready", 10)
    _, checks, text = ready(url)
    assert checks == {"store": "ok", "schema": "failed", "clock": "ok"}
    assert "9999" not in text


def test_a_node_whose_clock_is_wrong_is_ready_with_a_warning(
    programs: Programs, database_url: str, tmp_path: Path, clock_shim: ClockShim
) -> None:
    clock_shim.set(wall=-300)
    _, url = programs.serve("node", "--no-worker", "--database", database_url, **clock_shim.environ)
    status, checks, text = ready(url)
    assert (status, checks) == (200, {"store": "ok", "schema": "ok", "clock": "warning"})
    assert "is 300.0 s behind the store's" in text
    code, found = doctor(tmp_path, url)
    assert (code, found["clock"]["status"], found["clock here"]["status"]) == (0, "warn", "warn")
    assert "s ahead of the node's" in found["clock here"]["detail"]
    assert doctor(tmp_path, url, **clock_shim.environ)[1]["clock here"]["status"] == "ok"


def test_a_nodes_certificate_is_looked_at(programs: Programs, tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ours")
    certificate, key = authority.node()
    _, url = programs.serve("node", "--tls-cert", str(certificate), "--tls-key", str(key))
    code, found = doctor(tmp_path, url, FOLIOT_CA_FILE=str(authority.file))
    assert (code, found["certificate"]["status"]) == (0, "ok")
    assert url in found["certificate"]["detail"]
    code, found = doctor(tmp_path, url)
    assert (code, found["node"]["status"]) == (5, "fail")
    assert "is not trusted" in found["node"]["detail"]
