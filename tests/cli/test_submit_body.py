"""What `foliot submit` makes of its words, and what it refuses before asking a node."""

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from click.testing import CliRunner

from foliot import wire
from foliot.cli import job_options, main
from foliot.cli.submit import submit, submit_body
from foliot.wire import encode

ELSEWHERE = ("wait", "batch", "whole", "as_json", "url", "key", "data_dir")


def body_of(*words: str) -> Any:
    given = submit.make_context("submit", list(words)).params
    for name in ELSEWHERE:
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


def test_what_a_job_waits_for_and_asks_of_its_worker_becomes_its_fields() -> None:
    words = ["report", "--depends-on", "a", "--depends-on", "b:failure", "--depends-on", "nightly@2027-03-01T02:00:00Z"]
    words += ["--concurrency", "account=42=3", "--resource", "cpu=0.5", "--resource", "memory=256Mi"]
    assert body_of(*words, "--require", "zone=eu=west", "--unique-key", "daily", "--fair-key", "tenant-a") == {
        "job_type": "report",
        "depends_on": ["a", {"job_id": "b", "on": "failure"}, "nightly@2027-03-01T02:00:00Z"],
        "concurrency": {"key": "account=42", "limit": 3},
        "resources": {"cpu": 0.5, "memory": "256Mi"},
        "requires": {"zone": "eu=west"},
        "unique_key": "daily",
        "fair_key": "tenant-a",
    }


def test_an_id_that_ends_with_a_word_of_an_end_is_told_apart_by_one_more() -> None:
    assert body_of("echo", "--depends-on", "deploy:any:success")["depends_on"] == ["deploy:any"]
    assert body_of("echo", "--depends-on", "deploy:failures:success")["depends_on"] == ["deploy:failures"]


def test_the_words_and_bounds_are_the_apis() -> None:
    assert get_args(get_type_hints(wire.DependsOn)["on"]) == job_options.ENDS
    _, bound = get_args(get_type_hints(wire.ConcurrencyBody, include_extras=True)["limit"])
    assert (bound.ge, bound.le) == (1, job_options.HIGHEST_LIMIT)


def test_a_payload_comes_from_a_file_byte_for_byte(tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"big": 123456789012345678901234567890}')
    given = submit.make_context("submit", ["echo", f"@{file}"]).params
    for name in ELSEWHERE:
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
        (["submit", "echo", "--whole"], "--whole goes with --batch"),
        (["submit", "echo", "--depends-on", "a:failures"], "did you mean a:failure?"),
        (["submit", "echo", "--concurrency", "account-42"], "use account-42=1"),
        (["submit", "echo", "--concurrency", "account-42=0"], "1 to 1,000,000"),
        (["submit", "echo", "--resource", "cpu"], "use cpu=0.5"),
        (["submit", "echo", "--resource", "cpu=much"], "is a number, or one with a unit"),
        (["submit", "echo", "--resource", "cpu=-1"], "is from 0 to"),
        (["submit", "echo", "--resource", "c pu=1"], "a resource's name is"),
        (["submit", "echo", "--resource", "cpu=1", "--resource", "cpu=2"], "cpu is given twice"),
        (["submit", "echo", "--require", "zone"], "use zone=eu"),
        (["limits", "set", "account-42", "0"], "0 is not in the range"),
        (["limits", "set", "account-42", "many"], "'many' is not a valid integer"),
        (["jobs", "graph", "j_1", "--dot", "--json"], "give one of them"),
        (["jobs", "retry", "--status", "failed", "--dependents"], "--dependents goes with job ids"),
        (["jobs", "retry", "j_1", "--payload", "{"], "is not JSON"),
        (["jobs", "retry"], "which jobs?"),
        (["jobs", "failed", "--status", "failed"], "No such option"),
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
