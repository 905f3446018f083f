"""The same texts as people and programs see them: tables, JSON and exports of the command line, and the node's log."""

import csv
import io
import re
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from foliot.cli import main
from foliot.wire import BASE_PATH
from tests.processes import KEY
from tests.security.corpus import BREAKS_A_LINE, TEXTS
from tests.security.served import ServedNode, served

__all__ = ["served"]

# Names of jobs, schedules, queues, types and keys are held to a few letters; these fields take any text, most without
# control characters.
NAMED = [text for text in TEXTS if BREAKS_A_LINE.search(text) is None and not set(text) & set("\t\n\r")]
NAMED += [text for text in TEXTS if text.startswith(("\x7f", "\x85", "\x9b", "\u202e", "\u2066", "a\u2028"))]

COMMANDS = [
    ("jobs", "ls", "--all"),
    ("jobs", "get", "waits"),
    ("jobs", "get", "failed"),
    ("jobs", "get", "retried"),
    ("jobs", "executions", "failed"),
    ("jobs", "logs", "failed"),
    ("jobs", "failed"),
    ("jobs", "why", "failed"),
    ("jobs", "why", "waits"),
    ("jobs", "why", "behind"),
    ("jobs", "graph", "behind"),
    ("schedules", "list"),
    ("schedules", "show", "plan"),
    ("schedules", "runs", "plan"),
    ("queues", "list"),
    ("queues", "show", "fair"),
    ("types", "list"),
    ("limits", "list", "--all"),
    ("workers", "ls"),
    ("nodes",),
    ("forecast",),
    ("keys", "list"),
    ("namespaces", "list"),
    ("audit", "list", "--all"),
    ("whoami",),
]


@pytest.fixture(scope="module")
def furnished(served: ServedNode) -> ServedNode:
    """Every text stands somewhere in each kind of object."""
    call = served.call
    everything: dict[str, Any] = {"text": list(TEXTS), **dict.fromkeys(TEXTS, 1)}
    for number, text in enumerate(NAMED):
        job = {"job_id": f"n{number}", "job_type": "never", "owner": text[:128], "tags": [text[:128]]}
        keys = {"unique_key": text, "fair_key": text, "concurrency": {"key": text, "limit": 1}}
        call("POST", f"{BASE_PATH}/jobs", job | keys | {"requires": {"zone": text}, "payload": everything})
        call("POST", f"{BASE_PATH}/workers", {"name": text[:128], "labels": {text: text}, "queues": ["none"]})
    text = " ".join(NAMED)[:200]
    some = {"tags": [each[:128] for each in NAMED[:60]], "owner": NAMED[0], "payload": everything}
    holding = {"concurrency": {"key": NAMED[4], "limit": 1}}
    call("POST", f"{BASE_PATH}/jobs", some | holding | {"job_id": "waits", "job_type": "never", "unique_key": text})
    call("POST", f"{BASE_PATH}/jobs", some | {"job_id": "behind", "job_type": "never", "depends_on": ["waits"]})
    for job_id in ("failed", "retried"):
        call("POST", f"{BASE_PATH}/jobs", some | {"job_id": job_id, "job_type": job_id, "queue": "run"})
    worker = call("POST", f"{BASE_PATH}/workers", {"name": NAMED[0], "queues": ["run"]})["worker_id"]
    exchange = f"{BASE_PATH}/workers/{worker}/exchange"
    for job in call("POST", exchange, {"free": {"slot": 2}, "wait": 10})["jobs"]:
        token = {"job_id": job["job_id"], "attempt": job["attempt"], "token": job["token"]}
        line = token | {"log_time": "2027-01-31T09:00:00Z"}
        call("POST", exchange, {"logs": [line | {"log_message": text} for text in TEXTS]})
        error = {"type": TEXTS[0], "message": "\n".join(TEXTS), "code": TEXTS[16], "stack": "\n".join(TEXTS)}
        note = {"progress": {"value": 0.5, "note": " ".join(TEXTS)}}
        call("POST", exchange, {"reports": [token | {"status": "processing"} | note]})
        status = "fatal_failure" if job["job_id"] == "failed" else "retriable_failure"
        call("POST", exchange, {"reports": [token | {"status": status, "error": error}]})
    plan = {"schedule_id": "plan", "cron": "0 9 * * *", "job": some | {"job_type": "never", "fair_key": text}}
    call("POST", f"{BASE_PATH}/schedules", plan)
    call("PUT", f"{BASE_PATH}/queues/fair", {"policy": "fair", "weights": dict.fromkeys(NAMED, 1)})
    for each in NAMED:
        call("POST", f"{BASE_PATH}/jobs/pause", {"filter": {"owner": each[:128], "tag": each[:128]}, "dry_run": True})
    return served


def run(node: ServedNode, *words: str) -> Result:
    return CliRunner().invoke(
        main, list(words), env={"FOLIOT_URL": node.url, "FOLIOT_KEY": KEY, "FOLIOT_ADMIN_KEY": KEY}
    )


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_table_shows_nothing_that_drives_a_terminal(furnished: ServedNode, words: tuple[str, ...]) -> None:
    result = run(furnished, *words)
    assert result.exit_code == 0, result.output
    broken = [line for line in result.output.split("\n") if BREAKS_A_LINE.search(line)]
    assert broken == []


@pytest.mark.parametrize("words", [words for words in COMMANDS if words[1:2] != ("logs",)], ids=" ".join)
def test_json_of_the_command_line_is_one_line_that_can_be_read(furnished: ServedNode, words: tuple[str, ...]) -> None:
    result = run(furnished, *words, "--json")
    assert result.exit_code == 0, result.output
    assert result.stdout.count("\n") == 1
    msgspec.json.decode(result.stdout)
    assert not set(result.stdout.encode()) & (set(range(0x20)) - {10})


def test_a_list_has_a_line_for_each_thing(furnished: ServedNode) -> None:
    for words in (("jobs", "ls", "--all"), ("limits", "list", "--all"), ("workers", "ls")):
        count = len(msgspec.json.decode(run(furnished, *words, "--json").stdout))
        assert count >= len(NAMED)
        assert len(run(furnished, *words).stdout.splitlines()) == count + 1, words


def test_a_line_of_a_jobs_log_can_not_pass_for_another(furnished: ServedNode) -> None:
    shown = run(furnished, "jobs", "logs", "failed").stdout.split("\n")
    assert [line for line in shown if line[:2] != "  " and not re.match(r"\d\d:\d\d:\d\d\.\d{3} [A-Z]", line)] == [""]


def test_an_export_of_the_audit_log_is_a_sheet_in_which_nothing_is_a_formula(furnished: ServedNode) -> None:
    result = run(furnished, "audit", "export", "--format", "csv")
    assert result.exit_code == 0, result.output
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert len(rows) > len(NAMED)
    assert {len(row) for row in rows} == {len(rows[0])}
    assert [cell for row in rows for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    lines = run(furnished, "audit", "export", "--format", "ndjson").stdout.split("\n")[:-1]
    assert [msgspec.json.decode(line)["seq"] for line in lines] == [int(row[0]) for row in rows[1:]]


def test_the_nodes_own_log_has_no_broken_line(furnished: ServedNode) -> None:
    for text in TEXTS:
        furnished.raw(b"GET /api/v1/limits/" + text.encode("utf-8", "replace") + b" HTTP/1.1", {"x-request-id": text})
    for line in furnished.process.said.split("\n"):
        assert BREAKS_A_LINE.search(line) is None, line
        assert "forged" not in line
