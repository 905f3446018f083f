"""What `foliot submit` makes of its words, and what it refuses before asking a node."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from foliot.cli import main
from foliot.cli.submit import submit, submit_body
from foliot.wire import encode


def body_of(*words: str) -> Any:
    given = submit.make_context("submit", list(words)).params
    for name in ("wait", "batch", "as_json", "url", "key", "data_dir"):
        del given[name]
    return json.loads(encode(submit_body(**given)))


def test_only_what_is_given_is_sent() -> None:
    assert body_of("echo") == {"job_type": "echo"}


def test_every_option_becomes_its_field() -> None:
    words = ["report", '{"n": 1}', "--id", "r-1", "--at", "2027-03-01T02:00:00Z", "--priority", "7", "--queue", "slow"]
    words += ["--timeout", "5m", "--deadline", "2027-03-02T00:00:00+01:00", "--tag", "a", "--tag", "b"]
    body = body_of(*words, "--max-attempts", "5")
    assert body.pop("retry")["max_attempts"] == 5
    assert body == {
        "job_type": "report",
        "payload": {"n": 1},
        "job_id": "r-1",
        "schedule_time": "2027-03-01T02:00:00Z",
        "priority": 7,
        "queue": "slow",
        "timeout": "5m",
        "deadline": "2027-03-01T23:00:00Z",
        "tags": ["a", "b"],
    }
    assert body_of("echo", "--priority", "high", "--delay", "2.5") == {
        "job_type": "echo",
        "priority": "high",
        "delay": 2.5,
    }


def test_a_payload_comes_from_a_file_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"big": 123456789012345678901234567890}')
    given = submit.make_context("submit", ["echo", f"@{file}"]).params
    for name in ("wait", "batch", "as_json", "url", "key", "data_dir"):
        del given[name]
    assert b'"payload":{"big": 123456789012345678901234567890}' in encode(submit_body(**given))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["submit"], "which job type?"),
        (["submit", "echo", "{message: hello}"], "is not JSON"),
        (["submit", "echo", "@no-such-file"], "no-such-file can not be read: No such file"),
        (["submit", "echo", "--at", "+1m", "--delay", "1m"], "give one of them"),
        (["submit", "echo", "--delay", "soon"], "is no duration"),
        (["submit", "echo", "--priority", "10"], "Invalid value for '--priority'"),
        (["submit", "echo", "--batch", "jobs.jsonl"], "--batch takes everything from the file"),
        (["submit", "--batch", "no-such-file"], "no-such-file"),
        (["jobs", "ls", "--status", "done"], "Invalid value for '--status'"),
        (["jobs", "ls", "--limit", "0"], "Invalid value for '--limit'"),
        (["jobs", "cancel"], "which jobs?"),
        (["jobs", "cancel", "j_1", "--queue", "mail"], "not both"),
        (["jobs", "run"], "Missing argument"),
    ],
)
def test_wrong_use_is_told_before_a_node_is_asked(words: list[str], told: str) -> None:
    shown = CliRunner().invoke(main, words)
    assert shown.exit_code == 2
    assert told in shown.stderr


def test_a_bad_line_of_a_batch_is_named(tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text('{"job_type": "echo"}\n\n{"job_type": "echo", "prioritty": 3}\n')
    shown = CliRunner().invoke(main, ["submit", "--batch", str(file)])
    assert shown.exit_code == 2
    assert "line 3: Object contains unknown field `prioritty`" in shown.stderr
    assert "0 jobs before it were submitted" in shown.stderr
