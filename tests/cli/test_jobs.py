"""The commands on jobs, against a real node."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import Result

from foliot.cli.connection import find_connection
from foliot.cli.filters import NAMES, filter_words
from tests.cli.conftest import ServedNode

Run = Callable[..., Result]


def submitted(foliot: Run, *words: str) -> str:
    shown = foliot("submit", *words)
    assert shown.exit_code == 0, shown.stderr
    return shown.stdout.strip()


def api(node: ServedNode, path: str) -> object:
    """What the API itself answers."""
    connection = find_connection(node.url, data_dir=str(node.directory / "foliot-data"), environ={})
    with connection.open() as client:
        return json.loads(client.request("GET", path)[2])


def test_submit_and_wait_shows_the_log_and_ends_with_success(foliot: Run) -> None:
    shown = foliot("submit", "echo", '{"message": "hello from here"}', "--wait")
    assert shown.exit_code == 0, shown.stderr
    assert "hello from here" in shown.stdout
    assert "completed" in shown.stderr


def test_a_failed_job_ends_the_wait_with_1(foliot: Run) -> None:
    shown = foliot("submit", "echo", '{"fail": 5}', "--max-attempts", "1", "--wait")
    assert shown.exit_code == 1
    assert "failed" in shown.stderr


def test_a_cancelled_job_ends_the_watch_with_3(foliot: Run) -> None:
    job_id = submitted(foliot, "echo", "--delay", "1h")
    assert foliot("jobs", "cancel", job_id).stdout == f"{job_id} cancelled\n"
    shown = foliot("jobs", "watch", job_id, "--json")
    assert shown.exit_code == 3
    assert json.loads(shown.stdout)["status"] == "cancelled"


def test_json_is_exactly_the_apis(foliot: Run, node: ServedNode) -> None:
    job_id = submitted(foliot, "echo", '{"message": "é", "seconds": 0.0}', "--tag", "exact", "--priority", "high")
    assert foliot("jobs", "watch", job_id).exit_code == 0
    for words, path in (
        (["jobs", "get", job_id], f"/jobs/{job_id}"),
        (["jobs", "ls", "--tag", "exact"], "/jobs?tag=exact"),
        (["jobs", "executions", job_id], f"/jobs/{job_id}/executions"),
        (["jobs", "logs", job_id], f"/jobs/{job_id}/logs"),
        (["jobs", "result", job_id], f"/jobs/{job_id}/result"),
    ):
        shown = foliot(*words, "--json")
        assert shown.exit_code == 0
        assert json.loads(shown.stdout) == api(node, path), path


def test_tables_show_what_there_is(foliot: Run) -> None:
    job_id = submitted(foliot, "echo", '{"message": "tabled"}', "--queue", "tables", "--tag", "a", "--tag", "b")
    assert foliot("jobs", "watch", job_id).exit_code == 0
    listed = foliot("jobs", "ls", "--queue", "tables").stdout
    assert [line.split()[:4] for line in listed.splitlines() if job_id in line] == [
        [job_id, "echo", "completed", "tables"]
    ]
    got = foliot("jobs", "get", job_id).stdout
    assert '"tabled"' in got
    assert "a, b" in got
    assert "success" in foliot("jobs", "executions", job_id).stdout
    assert "\x1b[" not in listed + got


def test_an_empty_list_says_so_beside_the_output(foliot: Run) -> None:
    shown = foliot("jobs", "ls", "--queue", "nobody-uses-this")
    assert (shown.exit_code, shown.stdout, shown.stderr) == (0, "", "no such jobs\n")
    assert foliot("jobs", "ls", "--queue", "nobody-uses-this", "--json").stdout == "[]\n"


def test_a_list_stops_at_the_limit_and_all_goes_on(foliot: Run, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_text("".join(f'{{"job_type": "none", "queue": "long", "job_id": "long-{n}"}}\n' for n in range(1203)))
    assert foliot("submit", "--batch", str(file)).stdout == "1,203 jobs submitted\n"
    shown = foliot("jobs", "ls", "--queue", "long", "--limit", "3")
    assert "long-1202" in shown.stdout
    assert "--all" in shown.stderr
    found = json.loads(foliot("jobs", "ls", "--queue", "long", "--all", "--json").stdout)
    assert [job["job_id"] for job in found] == [f"long-{n}" for n in reversed(range(1203))]


def test_a_batch_comes_from_stdin_and_answers_as_the_api(foliot: Run) -> None:
    lines = '{"job_type": "none", "job_id": "b-1"}\n{"job_type": "none", "job_id": "b-2"}\n'
    for _ in range(2):
        shown = foliot("submit", "--batch", "-", "--json", stdin=lines)
        assert json.loads(shown.stdout) == {"status": "submitted", "job_ids": ["b-1", "b-2"]}


def test_a_payload_comes_from_stdin(foliot: Run) -> None:
    shown = foliot("submit", "echo", "-", "--id", "from-stdin", "--delay", "1h", stdin='{"message": "piped"}')
    assert shown.stdout == "from-stdin\n"
    assert json.loads(foliot("jobs", "get", "from-stdin", "--json").stdout)["payload"] == {"message": "piped"}


def test_the_same_id_with_another_body_is_refused_with_1(foliot: Run) -> None:
    assert submitted(foliot, "none", "--id", "taken") == "taken"
    assert submitted(foliot, "none", "--id", "taken") == "taken"
    shown = foliot("submit", "none", '{"other": true}', "--id", "taken")
    assert shown.exit_code == 1
    assert len(shown.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [["get"], ["cancel"], ["logs"], ["result"], ["executions"], ["watch"], ["run"], ["why"], ["graph"]]
)
def test_a_job_that_is_not_there_is_4(foliot: Run, words: list[str]) -> None:
    shown = foliot("jobs", *words, "no-such-job")
    assert shown.exit_code == 4
    assert shown.stdout == ""


def test_a_result_that_is_not_there_yet_is_4(foliot: Run) -> None:
    assert foliot("jobs", "result", submitted(foliot, "none")).exit_code == 4


def test_a_wrong_key_is_5_and_says_where_it_came_from_and_how_to_give_another(
    foliot: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = foliot("jobs", "ls", "--key", "wrong")
    assert shown.exit_code == 5
    assert "The key came from --key; give a good one with --key or FOLIOT_KEY" in shown.stderr
    monkeypatch.setenv("FOLIOT_KEY", "wrong-too")
    assert "came from FOLIOT_KEY" in foliot("jobs", "ls").stderr
    monkeypatch.delenv("FOLIOT_KEY")
    assert "No key was found" in foliot("jobs", "ls", "--data-dir", "nowhere").stderr


def test_input_that_the_node_refuses_is_2(foliot: Run) -> None:
    shown = foliot("submit", "no spaces allowed")
    assert shown.exit_code == 2
    assert "job_type" in shown.stderr


def test_a_job_is_paused_resumed_and_run_before_its_time(foliot: Run) -> None:
    job_id = submitted(foliot, "echo", "--delay", "1h")
    assert foliot("jobs", "pause", job_id).stdout == f"{job_id} paused\n"
    assert json.loads(foliot("jobs", "get", job_id, "--json").stdout)["status"] == "paused"
    assert foliot("jobs", "resume", job_id).exit_code == 0
    assert foliot("jobs", "run", job_id).exit_code == 0
    assert foliot("jobs", "watch", job_id).exit_code == 0
    refused = foliot("jobs", "cancel", job_id)
    assert refused.exit_code == 1
    assert refused.stderr.startswith(f"{job_id}: ")


def test_a_failed_job_is_run_again(foliot: Run) -> None:
    job_id = submitted(foliot, "echo", '{"fail": 1}', "--max-attempts", "1")
    assert foliot("jobs", "watch", job_id).exit_code == 1
    assert foliot("jobs", "retry", job_id).exit_code == 0
    assert foliot("jobs", "watch", job_id).exit_code == 0
    assert [line.split()[:2] for line in foliot("jobs", "executions", job_id).stdout.splitlines()[1:]] == [
        ["1", "retriable_failure"],
        ["2", "success"],
    ]


def test_a_failed_job_is_run_again_with_another_payload_and_those_that_waited_for_it(foliot: Run) -> None:
    job_id = submitted(foliot, "echo", '{"fail": 5}', "--max-attempts", "1", "--id", "first-of-two")
    child = submitted(foliot, "echo", "--depends-on", job_id)
    assert foliot("jobs", "watch", job_id).exit_code == 1
    assert foliot("jobs", "watch", child).exit_code == 3
    again = foliot("jobs", "retry", job_id, "--dependents", "--payload", '{"message": "mended"}')
    assert again.exit_code == 0, again.stderr
    assert foliot("jobs", "watch", child).exit_code == 0
    assert json.loads(foliot("jobs", "get", job_id, "--json").stdout)["payload"] == {"message": "mended"}


def test_all_that_a_filter_finds_run_again_with_another_payload(foliot: Run) -> None:
    ids = [submitted(foliot, "echo", '{"fail": 5}', "--max-attempts", "1", "--queue", "mended") for _ in range(2)]
    for job_id in ids:
        assert foliot("jobs", "watch", job_id).exit_code == 1
    words = ("jobs", "retry", "--queue", "mended", "--status", "failed", "--payload", "{}")
    assert foliot(*words, "--dry-run").stdout == "the filter finds 2 jobs\n"
    assert foliot(*words, "--yes").stdout == "2 of 2 jobs changed\n"
    for job_id in ids:
        assert foliot("jobs", "watch", job_id).exit_code == 0


def test_failed_jobs_are_listed_with_their_last_error_and_how_to_run_them_again(foliot: Run) -> None:
    queue = ("--queue", "dead-letters")
    older, newer = (submitted(foliot, "echo", '{"fail": 5}', "--max-attempts", "1", *queue) for _ in range(2))
    for job_id in (older, newer):
        assert foliot("jobs", "watch", job_id).exit_code == 1
    shown = foliot("jobs", "failed", *queue)
    _, *lines = shown.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [newer, older]
    assert all("1 of 1" in line and "asked_to_fail" in line and "attempt 1 of 5" in line for line in lines)
    assert shown.stderr == (
        f"run one again with: foliot jobs retry {newer}\n"
        "or all with: foliot jobs retry --status failed --queue dead-letters\n"
    )
    found = json.loads(foliot("jobs", "failed", *queue, "--json").stdout)
    assert [(job["job_id"], job["payload"]) for job in found] == [(newer, {"fail": 5}), (older, {"fail": 5})]
    assert foliot("jobs", "failed", "--queue", "nobody-uses-this").stderr == "none\n"


def test_the_filter_is_told_as_it_would_be_typed() -> None:
    given = dict.fromkeys(NAMES) | {
        "status": ("failed",),
        "job_type": "report",
        "schedule_id": "nightly",
        "tag": ("a", "b"),
        "due_after": datetime(2027, 3, 1, tzinfo=UTC),
    }
    words = filter_words(given)
    assert words == [
        *("--status", "failed", "--type", "report", "--tag", "a", "--tag", "b"),
        *("--schedule", "nightly", "--due-after", "2027-03-01T00:00:00+00:00"),
    ]


def test_a_job_shows_what_it_waits_for_and_asks_of_its_worker(foliot: Run) -> None:
    parent = submitted(foliot, "none", "--id", "asked-parent")
    job_id = submitted(
        *(foliot, "none", "--depends-on", f"{parent}:any", "--concurrency", "asked=2", "--unique-key", "asked"),
        *("--resource", "cpu=0.5", "--resource", "memory=1Ki", "--require", "zone=eu"),
    )
    shown = dict(
        re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in foliot("jobs", "show", job_id).stdout.splitlines()
    )
    assert shown["after"] == "asked-parent (on any)"
    assert shown["concurrency"] == "asked, 2 at once"
    assert shown["resources"] == "cpu=0.5, memory=1,024, slot=1"
    assert (shown["requires"], shown["unique key"]) == ("zone=eu", "asked")
    assert not {"after", "concurrency", "resources", "requires", "unique key"} & {
        line.split("  ")[0] for line in foliot("jobs", "show", parent).stdout.splitlines()
    }


def test_a_second_job_with_a_unique_key_is_told_to_be_the_first(foliot: Run) -> None:
    job_id = submitted(foliot, "none", "--unique-key", "once")
    again = foliot("submit", "none", '{"other": true}', "--unique-key", "once")
    assert (again.exit_code, again.stdout) == (0, f"{job_id}\n")
    assert again.stderr == f"not taken in: {job_id} has the same --unique-key and still waits\n"
    assert json.loads(foliot("submit", "none", "--unique-key", "once", "--json").stdout) == {
        "status": "submitted",
        "job_id": job_id,
        "duplicate": True,
    }
    batch = foliot("submit", "--batch", "-", stdin='{"job_type": "none", "unique_key": "once"}\n{"job_type": "none"}\n')
    assert batch.stdout == "1 job submitted\n"
    assert batch.stderr == "1 job not taken in: others with the same unique_key still wait\n"


def test_a_file_is_a_graph_in_any_order_where_it_is_handed_in_whole(foliot: Run) -> None:
    lines = '{"job_type": "none", "depends_on": ["w-0"]}\n' + "".join(
        f'{{"job_type": "none", "job_id": "w-{number}"}}\n' for number in reversed(range(1000))
    )
    refused = foliot("submit", "--batch", "-", stdin=lines)
    assert refused.exit_code == 2
    assert "jobs[0].depends_on[0]: there is no job 'w-0'" in refused.stderr
    assert foliot("submit", "--batch", "-", "--whole", stdin=lines).stdout == "1,001 jobs submitted\n"
    long = foliot("submit", "--batch", "-", "--whole", stdin='{"job_type": "none"}\n' * 10_001)
    assert long.exit_code == 2
    assert "10,001 jobs are more than one request can hold" in long.stderr


def test_each_job_is_tried_and_the_one_missing_is_told(foliot: Run) -> None:
    first, second = (submitted(foliot, "echo", "--delay", "1h") for _ in range(2))
    shown = foliot("jobs", "cancel", first, "no-such-job", second)
    assert shown.exit_code == 4
    assert shown.stdout == f"{first} cancelled\n{second} cancelled\n"
    assert shown.stderr.startswith("no-such-job: ")


def test_many_are_counted_before_they_are_changed(foliot: Run) -> None:
    for _ in range(3):
        submitted(foliot, "none", "--queue", "many")
    assert foliot("jobs", "cancel", "--queue", "many", "--dry-run").stdout == "the filter finds 3 jobs\n"
    unsure = foliot("jobs", "cancel", "--queue", "many")
    assert unsure.exit_code == 2
    assert "cancel 3 jobs" in unsure.stderr
    assert foliot("jobs", "ls", "--queue", "many", "--status", "cancelled", "--json").stdout == "[]\n"
    assert foliot("jobs", "cancel", "--queue", "many", "--yes").stdout == "3 of 3 jobs changed\n"


def test_a_log_is_followed_line_by_line_as_json(foliot: Run) -> None:
    job_id = submitted(foliot, "echo", '{"message": "line"}', "--delay", "100ms")
    shown = foliot("jobs", "logs", job_id, "-f", "--json")
    assert shown.exit_code == 0
    assert any("line" in json.loads(line)["log_message"] for line in shown.stdout.splitlines())
    assert foliot("jobs", "logs", job_id, "--level", "error").stdout == ""


def test_top_workers_and_nodes_show_the_system(foliot: Run, node: ServedNode) -> None:
    top = foliot("top", "--once")
    assert top.exit_code == 0
    assert node.url in top.stdout
    assert "built-in@" in top.stdout
    (worker,) = json.loads(foliot("workers", "--json").stdout)
    assert worker["worker_id"] in foliot("workers", "ls").stdout
    (mine,) = json.loads(foliot("nodes", "--json").stdout)
    assert mine["node_id"] in foliot("nodes").stdout
    assert foliot("workers", "drain", "no-such-worker").exit_code == 4
