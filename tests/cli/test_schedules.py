"""The commands on schedules, against a real node."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import Result

from foliot.cli.schedules import run_row
from foliot.wire import RunInfo
from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api
from tests.cli.test_terminal import terminal
from tests.processes import eventually

Run = Callable[..., Result]

ZONE = ("--tz", "Europe/Madrid")


def made(foliot: Run, schedule_id: str, *words: str) -> str:
    shown = foliot("schedules", "create", "echo", "--id", schedule_id, *(words or ("--cron", "@yearly")))
    assert shown.exit_code == 0, shown.stderr
    return shown.stdout


def read(foliot: Run, *words: str) -> Any:
    shown = foliot("schedules", *words, "--json")
    assert shown.exit_code == 0, shown.stderr
    return json.loads(shown.stdout)


def test_a_new_schedule_is_told_by_id_in_words_and_by_its_next_runs(foliot: Run) -> None:
    said, words, empty, head, *times = made(foliot, "weekdays", "--cron", "0 9 * * mon-fri", *ZONE).splitlines()
    assert said == "weekdays created"
    assert words == "At 09:00, Monday to Friday, Europe/Madrid time"
    assert (empty, head.split()) == ("", ["LOCAL", "UTC", "IN"])
    assert len(times) == 3
    assert all(re.match(r"(Mon|Tue|Wed|Thu|Fri) \S+ 09:00:00\+0[12]:00 ", time) for time in times)


def test_creating_the_same_again_changes_nothing_and_another_is_refused_with_1(foliot: Run) -> None:
    assert made(foliot, "twice", "--cron", "@yearly") == made(foliot, "twice", "--cron", "@yearly")
    other = foliot("schedules", "create", "echo", "--id", "twice", "--cron", "@daily")
    assert other.exit_code == 1
    assert "is taken" in other.stderr


def test_the_next_runs_of_an_even_beat_count_from_its_creation(foliot: Run) -> None:
    made(foliot, "beat", "--every", "1000s", "--max-runs", "2", "--active")
    info = read(foliot, "show", "beat")
    first, second = foliot("schedules", "show", "beat").stdout.partition("LOCAL")[2].splitlines()[1:]
    due = datetime.fromisoformat(info["next_run"]).replace(tzinfo=None)
    assert due.isoformat(sep=" ") in first
    assert (datetime.fromisoformat(re.findall(r"\S+ \S+(?= +in )", second)[0]) - due).total_seconds() == 1000


def test_json_is_exactly_the_apis(foliot: Run, node: ServedNode) -> None:
    made(foliot, "exact", "--cron", "0 9 L * *", *ZONE, "--country", "ES", "--on-holiday", "previous", "--jitter", "5s")
    assert foliot("schedules", "trigger", "exact", "--wait").exit_code == 0
    assert read(foliot, "show", "exact") == api(node, "/schedules/exact")
    assert read(foliot, "list") == api(node, "/schedules")
    assert read(foliot, "runs", "exact") == api(node, "/schedules/exact/runs")


def test_a_list_tells_when_in_words_and_the_next_run(foliot: Run) -> None:
    made(foliot, "listed", "--cron", "0 9 1 1 *", *ZONE)
    head, *lines = foliot("schedules", "list").stdout.splitlines()
    assert re.split(r"\s{2,}", head.strip()) == ["SCHEDULE", "STATUS", "WHEN", "NEXT RUN", "IN", "RUNS"]
    (line,) = [re.split(r"\s{2,}", line.strip()) for line in lines if line.startswith("listed ")]
    assert line[:3] == ["listed", "active", "at 09:00 on January 1, Europe/Madrid time"]
    assert line[4].startswith("in ")
    assert line[5] == "0"
    assert foliot("schedules", "ls").stdout.splitlines()[0] == head


def test_a_list_stops_at_the_limit_and_all_goes_on(foliot: Run) -> None:
    for name in ("page-1", "page-2", "page-3"):
        made(foliot, name)
    shown = foliot("schedules", "list", "--limit", "2")
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == ["page-3", "page-2"]
    assert "--all" in shown.stderr
    assert {"page-1", "page-2", "page-3"} <= {each["schedule_id"] for each in read(foliot, "list", "--all")}


def test_a_trigger_is_waited_for_and_found_in_the_ledger(foliot: Run) -> None:
    made(foliot, "triggered", "--cron", "@yearly", "--payload", '{"message": "said by a run"}')
    shown = foliot("schedules", "trigger", "triggered", "--wait")
    assert shown.exit_code == 0
    assert "said by a run" in shown.stdout
    (run,) = read(foliot, "runs", "triggered")
    assert (run["verdict"], run["reason"]) == ("ran", "triggered")
    head, line = foliot("schedules", "runs", "triggered").stdout.splitlines()
    assert head.split() == ["DUE", "VERDICT", "REASON", "JOB"]
    assert line.split()[2:] == ["ran", "triggered", run["job_id"]]
    assert run["job_id"] in foliot("jobs", "ls", "--schedule", "triggered").stdout


def test_a_run_that_fails_ends_the_wait_with_1(foliot: Run) -> None:
    made(foliot, "failing", "--cron", "@yearly", "--payload", '{"fail": 5}', "--max-attempts", "1")
    assert foliot("schedules", "trigger", "failing", "--wait").exit_code == 1


def test_what_is_due_runs_by_itself(foliot: Run) -> None:
    made(foliot, "ticking", "--every", "100ms", "--max-runs", "3", "--overlap", "allow")
    eventually(lambda: len(read(foliot, "runs", "ticking")) == 3, "three runs", 10)
    assert {run["verdict"] for run in read(foliot, "runs", "ticking")} == {"ran"}
    shown = foliot("schedules", "show", "ticking").stdout
    assert "3 of 3" in shown
    assert shown.endswith("ended: nothing is due any more\n")
    assert len(read(foliot, "runs", "ticking", "--limit", "2")) == 2
    assert "--all" in foliot("schedules", "runs", "ticking", "--limit", "2").stderr
    assert len(read(foliot, "runs", "ticking", "--limit", "2", "--all")) == 3


def test_past_due_times_are_run_once(foliot: Run) -> None:
    made(foliot, "past", "--cron", "0 9 * * *", *ZONE)
    october = ("--from", "2024-10-01T00:00:00Z", "--to", "2024-10-05T23:59:59Z", "--max-concurrency", "2")
    shown = foliot("schedules", "backfill", "past", *october)
    assert shown.stdout == "5 runs will be made; follow them: foliot schedules runs past\n"
    eventually(lambda: all(run["verdict"] == "backfilled" for run in read(foliot, "runs", "past")), "five runs", 10)
    assert len(read(foliot, "runs", "past")) == 5
    assert foliot("schedules", "backfill", "past", *october).stdout.startswith("nothing to do: each due time from ")
    assert read(foliot, "backfill", "past", *october) == {"runs": 0}
    future = foliot("schedules", "backfill", "past", "--from", "-1d", "--to", "+1d")
    assert future.exit_code == 2
    assert "to: lies in the future" in future.stderr


def test_a_ledger_without_due_times_says_so_beside_the_output(foliot: Run) -> None:
    made(foliot, "quiet")
    shown = foliot("schedules", "runs", "quiet")
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert "nothing was due yet" in shown.stderr
    assert read(foliot, "runs", "quiet") == []


def test_due_times_that_share_a_verdict_are_one_line_with_a_count() -> None:
    first, last = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    missed = RunInfo(due_time=first, until=last, count=86401, verdict="missed", reason="latest", job_id=None)
    assert [str(cell) for cell in run_row(missed)[2:]] == ["86,401", "missed", "latest", ""]
    uncounted = RunInfo(
        due_time=first, until=last, count=10000, exact=False, verdict="expired", reason=None, job_id=None
    )
    assert run_row(uncounted)[2] == "at least 10,000"
    waiting = RunInfo(due_time=first, verdict=None, reason="waiting", job_id=None)
    assert [str(cell) for cell in run_row(waiting)[1:]] == ["", "", "waiting", "", ""]


def test_a_change_keeps_what_is_not_given(foliot: Run) -> None:
    made(
        foliot, "changing", "--cron", "0 9 L * *", *ZONE, "--country", "ES", "--payload", '{"n": 1}', "--queue", "slow"
    )
    shown = foliot("schedules", "change", "changing", "--every", "2h", "--subdivision", "MD", "--priority", "high")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.startswith("changing updated\nEvery 2 hours, Europe/Madrid time, not on weekends")
    info = read(foliot, "get", "changing")
    assert (info["cron"], info["every"], info["version"]) == (None, 7200, 2)
    assert info["calendar"] == {"country": "ES", "subdivision": "MD"}
    assert info["job"] == {"job_type": "echo", "payload": {"n": 1}, "queue": "slow", "priority": "high"}
    assert read(foliot, "change", "changing", "--reset", "calendar")["status"] == "updated"
    assert read(foliot, "show", "changing")["calendar"] is None


def test_schedules_are_paused_and_resumed(foliot: Run) -> None:
    made(foliot, "held-1")
    made(foliot, "held-2")
    assert foliot("schedules", "pause", "held-1", "held-2").stdout == "held-1 paused\nheld-2 paused\n"
    assert read(foliot, "show", "held-1")["status"] == "paused"
    assert "foliot schedules resume held-1" in foliot("schedules", "show", "held-1").stdout
    assert foliot("schedules", "resume", "held-1").stdout == "held-1 active\n"
    assert read(foliot, "show", "held-1")["status"] == "active"


def test_a_delete_needs_a_yes(foliot: Run, node: ServedNode) -> None:
    made(foliot, "doomed")
    unsure = foliot("schedules", "delete", "doomed")
    assert unsure.exit_code == 2
    assert "this would delete doomed" in unsure.stderr
    with terminal(node, "schedules", "delete", "doomed") as screen:
        screen.read_until("delete doomed? [y/N]")
        screen.write("y\n")
        assert "doomed deleted" in screen.read_until(None)
    again = foliot("schedules", "delete", "doomed", "--yes")
    assert again.exit_code == 4
    assert again.stderr == "doomed: there is no schedule 'doomed'\n"


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["runs"],
        ["trigger"],
        ["pause"],
        ["resume"],
        ["change", "--queue", "x"],
        ["change", "--cron", "@daily"],
    ],
    ids=" ".join,
)
def test_a_schedule_that_is_not_there_is_4(foliot: Run, words: list[str]) -> None:
    shown = foliot("schedules", *words, "no-such-schedule")
    assert shown.exit_code == 4
    assert shown.stdout == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cron", "0 0 31 2 *"], "cron: can never fire"),
        (["--every", "50ms"], "every: "),
        (["--cron", "@daily", "--tz", "Europe/Madrd"], "did you mean 'Europe/Madrid'?"),
        (["--cron", "@daily", "--start", "2027-01-02T00:00:00Z", "--end", "2027-01-01T00:00:00Z"], "end_time: "),
    ],
    ids=["never", "too often", "zone", "end before start"],
)
def test_what_could_never_run_is_2_and_not_saved(foliot: Run, words: list[str], told: str) -> None:
    shown = foliot("schedules", "create", "echo", "--id", "refused", *words)
    assert shown.exit_code == 2
    assert told in shown.stderr
    assert foliot("schedules", "show", "refused").exit_code == 4


def test_a_narrow_terminal_shows_an_id_of_a_run_whole(foliot: Run, node: ServedNode) -> None:
    made(foliot, "narrow-schedule")
    foliot("schedules", "trigger", "narrow-schedule", "--wait")
    (run,) = read(foliot, "runs", "narrow-schedule")
    with terminal(node, "schedules", "runs", "narrow-schedule", columns=70) as screen:
        seen = re.sub(r"\x1b\[[0-9;]*m", "", screen.read_until(None))
    assert "…" not in seen
    ending = "".join(line[-30:].split()[-1] for line in seen.splitlines()[1:])
    assert run["job_id"] in ending
