"""What the pages tell people to type is typed, and does what they say."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import click
import pytest

import bench.__main__
from foliot.wire import FilterBody
from tests.docs import pages
from tests.docs.pages import blocks
from tests.docs.shell import CURL, Reader, make_programs, put_program
from tests.processes import Process

CALLS = "docs/how-to/call-the-api.md"
WORKER = "docs/how-to/write-a-worker.md"


def objects(text: str) -> list[Any]:
    """Answers in JSON, one to a line, among what else was printed."""
    return [json.loads(line) for line in text.splitlines() if line.startswith(("{", "[", '"'))]


def end_of(reader: Reader, job_id: str) -> tuple[str, list[str]]:
    """How a job ended, and the messages of its log."""
    with reader.client() as client:
        return client.wait(job_id, timeout=15).status, [line.log_message for line in client.logs(job_id)]


# README.md


def test_the_readmes_curl_line_makes_a_job_that_completes(reader: Reader) -> None:
    (call,) = [text for text in blocks("README.md", "sh") if text.startswith("curl ")]
    (answer,) = objects(reader.type(call))
    assert answer.keys() == {"status", "job_id"}
    assert answer["status"] == "submitted"
    assert end_of(reader, answer["job_id"]) == ("completed", ["hello"])


def test_a_machine_without_curl_reads_the_same(reader: Reader) -> None:
    put_program(reader.folder, "curl", CURL)
    (call,) = [text for text in blocks("README.md", "sh") if text.startswith("curl ")]
    assert json.loads(reader.type(call))["status"] == "submitted"
    (reader.folder / "bin" / "curl").unlink()
    make_programs(reader.folder)


def test_the_readmes_command_line_follows_a_job_to_its_end_and_lists_it(reader: Reader) -> None:
    (lines,) = [text for text in blocks("README.md", "sh") if "foliot submit" in text]
    followed, listed = lines.splitlines()
    where = f" --url {reader.url}"  # the one thing that is not as in the page: its node is at the usual address
    assert reader.type(followed + where).split()[-2:] == ["INFO", "hello"]
    head, job = reader.type(listed + where).splitlines()
    assert head.split()[:3] == ["JOB", "TYPE", "STATUS"]
    assert job.split()[1:3] == ["echo", "completed"]


def test_the_readmes_function_runs_on_its_worker(reader: Reader) -> None:
    (program,) = blocks("README.md", "python")
    (reader.folder / "hello.py").write_text(reader.at_home(program))
    (lines,) = [text for text in blocks("README.md", "sh") if "hello:app" in text]
    start_worker, run_program = [line.partition("#") for line in lines.splitlines()]
    _, *words = reader.at_home(start_worker[0]).split()
    worker = Process(reader.folder, "worker", *words, FOLIOT_ADMIN_KEY="")
    try:
        printed = reader.type(run_program[0].replace(".venv/bin/python", sys.executable))
        assert printed.strip() == run_program[2].strip() == "Hello Ada! Hello Ada!"
        with reader.client() as client:
            (job,) = client.list(FilterBody(job_type="greet"))
        assert job.queue == "mail"
        assert end_of(reader, job.job_id) == ("completed", ["greeting Ada"])
    finally:
        worker.stop()


# how to call the API


def test_every_call_of_the_how_to_is_answered_as_it_says(reader: Reader) -> None:
    *good, _wrong = blocks(CALLS, "sh")
    printed = reader.type("".join(good))
    first, named, batch, run, job, executions, logs, result, done, future, *changes, counted = objects(printed)
    assert first["status"] == batch["status"] == "submitted"
    assert len(batch["job_ids"]) == 2
    assert named == {"status": "submitted", "job_id": "report-7"}
    assert run == {"status": "queued", "job_id": "report-7"}
    assert [line for line in printed.splitlines() if line.startswith("data:") and '"seven"' in line]
    assert (job["status"], job["attempt"]) == ("completed", 1)
    assert [each["status"] for each in executions] == ["success"]
    assert [each["log_message"] for each in logs] == ["seven"]
    assert result == "seven"
    assert {"report-7", first["job_id"]} <= {each["job_id"] for each in done}
    assert future == []
    words = ["submitted", "updated", "paused", "scheduled", "cancelled", "scheduled"]
    assert changes == [{"status": word, "job_id": "report-8"} for word in words]
    assert counted == {"matched": 1, "changed": 0}


def test_an_error_is_the_one_that_the_how_to_shows(reader: Reader) -> None:
    start, *_, wrong = blocks(CALLS, "sh")
    (told,) = objects(reader.type(start + wrong, exit_code=22))
    (shown,) = map(json.loads, blocks(CALLS, "json"))
    assert told | {"request_id": shown["request_id"]} == shown


# how to write a worker


def test_the_how_tos_shell_worker_runs_a_job_and_leaves_when_it_is_drained(reader: Reader) -> None:
    script, use = blocks(WORKER, "sh")
    (reader.folder / "worker.sh").write_text(reader.at_home(script))
    # The shell waits for its worker, as a person would not: that shows how it ends.
    reader.type(f"export FOLIOT_URL={reader.url}\n{use}\nwait $!")
    with reader.client() as client:
        (job,) = client.list(FilterBody(job_type="greet"))
        assert client.result(job.job_id) == {"greeting": "Hello Ada"}
        assert [worker.name for worker in client.workers() if worker.name == "shell"] == []
    assert end_of(reader, job.job_id) == ("completed", ["greeted"])


# all pages


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_every_command_of_a_page_is_understood(page: Path) -> None:
    for words in pages.commands(page):
        pages.understand(words)


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_every_make_target_of_a_page_is_there(page: Path) -> None:
    targets = re.findall(r"^([a-z]+):", (pages.ROOT / "Makefile").read_text(), re.MULTILINE)
    assert [name for name in pages.make_targets(page) if name not in targets] == []


def test_the_benchmarks_options_are_those_of_the_how_to() -> None:
    lines = pages.bench_options(pages.ROOT / "docs" / "how-to" / "measure.md")
    assert len(lines) == 4
    for words in lines:
        bench.__main__.parse(words)


def test_a_wrong_command_of_a_page_would_be_found() -> None:
    found = list(pages.commands(pages.ROOT / "docs" / "how-to" / "run-several-nodes.md"))
    assert [words[0] for words in found] == ["serve", "serve", "serve"]
    for wrong in (["serve", "--hots", "::1"], ["jobs", "lisst"], ["submit", "echo", "--delay", "5x"]):
        with pytest.raises(click.UsageError):
            pages.understand(wrong)
