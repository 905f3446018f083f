"""The audit log on the command line, against a real node."""

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from foliot.cli import main
from foliot.cli.audit_export import harmless
from foliot.cli.connection import find_connection
from foliot.wire import AuditInfo
from tests.cli.conftest import ServedNode, serve, stop
from tests.cli.test_jobs import api
from tests.cli.test_keys import made

Run = Callable[..., Result]
EVIL = '=HYPERLINK("http://evil.example","x"),"y;=1+1'


def act(node: ServedNode, queue: str, request_id: str) -> None:
    """A change under a request id of the caller's choice."""
    connection = find_connection(node.url, data_dir=str(node.directory / "foliot-data"), environ={})
    with connection.open() as client:
        client.request("POST", f"/queues/{queue}/pause", headers={"X-Request-Id": request_id})


def test_entries_are_listed_newest_first_with_who_and_what(foliot: Run, node: ServedNode) -> None:
    key = made(foliot, "@sly", "--role", "viewer")
    assert foliot("queues", "pause", "audited", "--key", key).exit_code == 5
    foliot("queues", "pause", "audited")
    shown = foliot("audit", "--limit", "2")
    _, allowed, denied = shown.stdout.splitlines()
    action = ["POST", "/api/v1/queues/{queue}/pause", "queue=audited"]
    assert allowed.split()[3:] == ["default", "admin", *action, "asked", "127.0.0.1"]
    assert denied.split()[3:-1] == ["default", "@sly", *action, "denied", "127.0.0.1"]
    assert shown.stderr == "these are the newest 2; a higher --limit or --all shows more\n"
    assert json.loads(foliot("audit", "list", "--limit", "2", "--json").stdout) == api(node, "/audit?limit=2")


def test_an_export_has_every_entry_as_a_line_of_json(foliot: Run, node: ServedNode, tmp_path: Path) -> None:
    for number in range(3):
        act(node, f"exported-{number}", "r")
    shown = foliot("audit", "export")
    entries = [json.loads(line) for line in shown.stdout.splitlines()]
    assert entries[: len(entries)] == api(node, "/audit?limit=1000")
    assert shown.stderr == f"{len(entries)} entries\n"
    file = tmp_path / "audit.ndjson"
    assert foliot("audit", "export", str(file)).exit_code == 0
    assert file.read_text() == shown.stdout == foliot("audit", "export", "--json").stdout


def test_an_export_goes_through_all_pages(
    foliot: Run, node: ServedNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(5):
        act(node, f"paged-{number}", "r")
    monkeypatch.setattr("foliot.cli.audit.PAGE", 2)
    whole = foliot("audit", "export").stdout.splitlines()
    assert [json.loads(line)["seq"] for line in whole] == list(range(len(whole), 0, -1))


def test_cells_of_an_export_in_csv_are_texts_and_no_formulas(foliot: Run, node: ServedNode, tmp_path: Path) -> None:
    act(node, "spread", EVIL)
    key = made(foliot, "@sum", "--role", "viewer")
    foliot("queues", "pause", "spread", "--key", key)
    file = tmp_path / "audit.CSV"
    assert foliot("audit", "export", str(file)).exit_code == 0
    text = file.read_text()
    assert text == foliot("audit", "export", "--format", "csv").stdout.replace("\r\n", "\n")
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == list(AuditInfo.__struct_fields__)
    by_action = [dict(zip(head, row, strict=True)) for row in rows]
    assert by_action[0]["actor"] == "'@sum"
    assert {row["request_id"] for row in by_action if row["object"] == "queue=spread"} >= {f"'{EVIL}"}
    assert not [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert all(line.startswith('"') for line in text.splitlines())


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\uff1d"])
def test_a_cell_that_begins_a_formula_is_made_harmless(start: str) -> None:
    assert harmless(f"{start}1") == f"'{start}1"
    assert harmless(f"1{start}") == f"1{start}"
    assert harmless("") == ""


def test_a_file_that_can_not_be_written_is_told_and_what_was_there_stays(foliot: Run, tmp_path: Path) -> None:
    shown = foliot("audit", "export", str(tmp_path))
    assert shown.exit_code == 1
    assert "can not be written" in shown.stderr
    before = tmp_path / "audit.csv"
    before.write_text("as it was")
    assert foliot("audit", "export", str(before), "--key", "wrong").exit_code == 5
    assert before.read_text() == "as it was"
    assert list(tmp_path.iterdir()) == [before]
    assert foliot("audit", "export", "/dev/null").exit_code == 0
    assert not Path("/dev/null").is_file()


def test_a_whole_chain_is_0_and_a_broken_one_is_1(tmp_path: Path) -> None:
    node = serve(tmp_path, "--no-worker")
    try:
        words = ["--url", node.url, "--data-dir", str(tmp_path / "foliot-data")]

        def foliot(*more: str) -> Result:
            return CliRunner().invoke(main, [*more, *words])

        for name in ("a", "b", "c"):
            assert foliot("queues", "pause", name).exit_code == 0
        whole = foliot("audit", "check")
        assert whole.exit_code == 0
        assert whole.stdout.startswith("3 entries, the chain is whole; last hash ")
        with closing(sqlite3.connect(tmp_path / "foliot-data" / "foliot.db")) as database:
            database.execute("DROP TRIGGER audit_is_not_changed")
            database.execute("UPDATE audit SET actor = 'nobody' WHERE seq = 2")
            database.commit()
        broken = foliot("audit", "check")
        assert broken.exit_code == 1
        assert broken.stdout == ""
        assert "broken at entry 2" in broken.stderr
        as_json = foliot("audit", "check", "--json")
        assert as_json.exit_code == 1
        assert json.loads(as_json.stdout)["broken_at"] == 2
    finally:
        stop(node)


def test_only_the_nodes_own_key_checks_the_chain(foliot: Run) -> None:
    key = made(foliot, "checker", "--role", "admin")
    assert foliot("audit", "check", "--key", key).exit_code == 5
