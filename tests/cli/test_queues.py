"""Queues and job types on the command line, against a real node."""

import json
from collections.abc import Callable

from click.testing import Result

from foliot.cli.queues import held_text
from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api, submitted
from tests.cli.test_queue_options import info

Run = Callable[..., Result]


def line_of(foliot: Run, name: str) -> list[str]:
    (line,) = [line for line in foliot("queues", "--all").stdout.splitlines() if line.split()[0] == name]
    return line.split()


def read(foliot: Run, name: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(foliot("queues", "get", name, "--json").stdout)
    return found


def test_a_queue_is_shown_with_its_rules_and_how_full_it_is(foliot: Run, node: ServedNode) -> None:
    for _ in range(3):
        submitted(foliot, "none", "--queue", "q-shown")
    name, policy, weight, waiting, running, *_ = line_of(foliot, "q-shown")
    assert (name, policy, weight, waiting, running) == ("q-shown", "priority", "1", "3", "0")
    words = ["--policy", "fair", "--weight", "2", "--share", "tenant-a=3", "--max-concurrency", "10"]
    shown = foliot("queues", "set", "q-shown", *words, "--rate", "100/1s", "--burst", "20")
    assert shown.stdout == "q-shown fair; weight 2; 10 at once; 100 per 1s, burst 20; tenant-a=3\n"
    assert shown.stderr == ""
    fields = " ".join(foliot("queues", "show", "q-shown").stdout.split())
    assert "policy fair weight 2 shares tenant-a=3 limits 10 at once; 100 per 1s, burst 20 waiting 3" in fields
    assert "10 at once; 100 per 1s, burst 20" in " ".join(line_of(foliot, "q-shown"))
    there = api(node, "/queues/q-shown")
    assert isinstance(there, dict)
    assert read(foliot, "q-shown").keys() == there.keys()
    assert json.loads(foliot("queues", "--all", "--json").stdout)


def test_json_of_a_set_is_the_queue_as_it_is_then(foliot: Run, node: ServedNode) -> None:
    shown = foliot("queues", "set", "q-json", "--policy", "fifo", "--json")
    assert json.loads(shown.stdout) == api(node, "/queues/q-json")


def test_a_part_of_a_rule_is_changed_and_the_rest_stays(foliot: Run) -> None:
    first = ["--policy", "fair", "--share", "a=3", "--share", "b=2", "--rate", "5/1m", "--burst", "2"]
    assert foliot("queues", "set", "q-part", *first).exit_code == 0
    assert foliot("queues", "set", "q-part", "--share", "b=1", "--share", "c=4", "--burst", "7").exit_code == 0
    assert foliot("queues", "set", "q-part", "--rate", "6/1m").exit_code == 0
    found = read(foliot, "q-part")
    assert (found["weights"], found["rate_limit"]) == ({"a": 3.0, "c": 4.0}, {"limit": 6, "per": 60.0, "burst": 7})
    assert foliot("queues", "set", "q-part", "--reset", "weights", "--reset", "rate_limit").exit_code == 0
    found = read(foliot, "q-part")
    assert (found["policy"], found["weights"], found["rate_limit"]) == ("fair", {}, None)


def test_a_rule_that_does_nothing_is_told(foliot: Run) -> None:
    shown = foliot("queues", "set", "q-idle", "--policy", "fifo", "--aging", "10m")
    assert shown.exit_code == 0
    assert shown.stderr == "aging counts under the policy priority; this queue's is fifo\n"


def test_a_burst_without_a_rate_is_wrong_use(foliot: Run) -> None:
    shown = foliot("queues", "set", "q-burst", "--burst", "5")
    assert shown.exit_code == 2
    assert "give --rate too" in shown.stderr


def test_a_held_queue_starts_nothing_until_it_is_resumed(foliot: Run) -> None:
    shown = foliot("queues", "pause", "q-held", "q-other")
    assert shown.stdout.splitlines() == [
        "q-held paused, 0 jobs waiting, 0 running; it is a new queue",
        "q-other paused, 0 jobs waiting, 0 running; it is a new queue",
    ]
    job_id = submitted(foliot, "echo", "--queue", "q-held")
    assert submitted(foliot, "echo", "--wait", "--json")
    assert json.loads(foliot("jobs", "get", job_id, "--json").stdout)["status"] == "queued"
    assert "the queue q-held is paused" in foliot("why", job_id).stdout
    assert line_of(foliot, "q-held")[-1] == "paused"
    assert "paused" in foliot("queues", "show", "q-held").stdout
    assert foliot("queues", "resume", "q-held").stdout.startswith("q-held active, ")
    assert foliot("jobs", "watch", job_id).exit_code == 0
    (resumed,) = json.loads(foliot("queues", "resume", "q-other", "--json").stdout)
    assert resumed["paused"] is False


def test_a_queue_that_has_jobs_is_not_called_new() -> None:
    assert held_text(info(paused=True, waiting=1, version=1)) == "paused, 1 job waiting, 0 running"
    assert held_text(info(paused=True, version=2)) == "paused, 0 jobs waiting, 0 running"


def test_a_held_type_starts_nothing_until_it_is_resumed(foliot: Run) -> None:
    assert foliot("types").stderr == "no job type is paused\n"
    assert foliot("types", "pause", "http").stdout == "http paused\n"
    job_id = submitted(foliot, "http", '{"url": "http://127.0.0.1:1/"}', "--max-attempts", "1")
    assert [line.split() for line in foliot("types").stdout.splitlines()] == [["TYPE", "STATUS"], ["http", "paused"]]
    assert json.loads(foliot("types", "--json").stdout) == [{"job_type": "http", "paused": True}]
    assert "the job type http is paused" in foliot("why", job_id).stdout
    assert foliot("types", "resume", "http").stdout == "http active\n"
    assert foliot("jobs", "watch", job_id).exit_code == 1  # it ran, and failed: nobody answers there


def test_jobs_are_held_let_go_and_cancelled_by_queue_and_type(foliot: Run) -> None:
    ids = [submitted(foliot, "none", "--queue", "q-filter") for _ in range(2)]
    elsewhere = submitted(foliot, "none-filtered", "--queue", "q-elsewhere")
    assert foliot("jobs", "pause", "--queue", "q-filter", "--yes").stdout == "2 of 2 jobs changed\n"
    assert foliot("jobs", "resume", "--queue", "q-filter", "--yes").stdout == "2 of 2 jobs changed\n"
    assert foliot("jobs", "pause", "--type", "none-filtered", "--yes").stdout == "1 of 1 job changed\n"
    assert foliot("jobs", "cancel", "--type", "none-filtered", "--yes").stdout == "1 of 1 job changed\n"
    assert foliot("jobs", "cancel", "--queue", "q-filter", "--yes").stdout == "2 of 2 jobs changed\n"
    for job_id in (*ids, elsewhere):
        assert json.loads(foliot("jobs", "get", job_id, "--json").stdout)["status"] == "cancelled"


def test_a_job_shows_its_fair_key(foliot: Run) -> None:
    job_id = submitted(foliot, "none", "--fair-key", "tenant-a")
    assert "fair key tenant-a" in " ".join(foliot("jobs", "show", job_id).stdout.split())


def test_a_queue_that_nobody_has_named_is_4(foliot: Run) -> None:
    shown = foliot("queues", "show", "no-such-queue")
    assert shown.exit_code == 4
    assert "no-such-queue" in shown.stderr


def test_a_list_stops_at_the_limit_and_all_goes_on(foliot: Run) -> None:
    for name in ("q-many-1", "q-many-2"):
        assert foliot("queues", "set", name, "--weight", "1").exit_code == 0
    shown = foliot("queues", "ls", "--limit", "1")
    assert len(shown.stdout.splitlines()) == 2
    assert shown.stderr == "these are the first 1; a higher --limit or --all shows more\n"
    assert {"q-many-1", "q-many-2"} <= {
        each["queue"] for each in json.loads(foliot("queues", "list", "--all", "--json").stdout)
    }
