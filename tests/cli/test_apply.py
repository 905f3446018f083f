"""`foliot apply`: the schedules of a node become those of a file, against a real node."""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from foliot.cli import main
from foliot.cli.apply import apply, carry_out_each
from foliot.cli.connection import find_connection
from foliot.cli.exits import Failed
from foliot.sdk.apply import Difference
from foliot.wire import ScheduleUpdateBody
from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api

Run = Callable[..., Result]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "schedules.toml"


def schedule(schedule_id: str, *lines: str) -> str:
    return "\n".join(["[[schedule]]", f'schedule_id = "{schedule_id}"', *lines, 'job.job_type = "echo"', ""])


def applied(foliot: Run, file: Path, *words: str) -> str:
    shown = foliot("apply", str(file), *words)
    assert shown.exit_code == 0, shown.stderr
    return shown.stdout


def names(node: ServedNode, prefix: str) -> set[str]:
    found: Any = api(node, "/schedules?limit=1000")
    return {each["schedule_id"] for each in found if each["schedule_id"].startswith(prefix)}


def example() -> str:
    """The file in the command's own help."""
    paragraphs = inspect.cleandoc(apply.help or "").split("\n\n")
    return "\n\n".join(text.removeprefix("\b\n") for text in paragraphs if text.startswith("\b\n"))


def test_the_example_of_the_help_is_shown_carried_out_and_then_true(foliot: Run, node: ServedNode, file: Path) -> None:
    file.write_text(example())
    difference = """\
+ morning-report
    calendar: {"country":"ES","subdivision":"MD","except":["2027-12-24"]}
    cron: 0 9 * * mon-fri
    job.job_type: report
    job.payload: {"format":"pdf","pages":3}
    job.timeout: 600s
    on_holiday: skip
    start_time: 2026-12-31T23:00:00Z
    timezone: Europe/Madrid
+ sync
    every: 300s
    job.job_type: sync
    job.queue: slow
    overlap: queue
"""
    assert applied(foliot, file, "--dry-run") == f"{difference}2 to create\n"
    assert names(node, "sync") == set()
    assert applied(foliot, file) == f"{difference}2 created\n"
    assert applied(foliot, file) == "2 unchanged\n"
    made: Any = api(node, "/schedules/morning-report")
    assert made["job"] == {"job_type": "report", "timeout": "10m", "payload": {"format": "pdf", "pages": 3}}
    assert made["calendar"] == {"country": "ES", "subdivision": "MD", "except": ["2027-12-24"]}


def test_a_change_shows_old_and_new(foliot: Run, node: ServedNode, file: Path) -> None:
    file.write_text(schedule("moved", 'cron = "0 9 * * *"', "max_runs = 5"))
    applied(foliot, file)
    file.write_text(schedule("moved", 'every = "90s"', 'job.queue = "slow"'))
    assert applied(foliot, file).splitlines() == [
        "~ moved",
        "    cron: 0 9 * * * → none",
        "    every: none → 90s",
        "    job.queue: default → slow",
        "    max_runs: 5 → none",
        "1 changed",
    ]
    made: Any = api(node, "/schedules/moved")
    assert (made["cron"], made["every"], made["max_runs"], made["job"]["queue"]) == (None, 90, None, "slow")


def test_json_tells_what_differs(foliot: Run, file: Path) -> None:
    file.write_text(schedule("told", 'every = "1h"'))
    (created,) = json.loads(applied(foliot, file, "--dry-run", "--json"))
    assert created == {
        "action": "create",
        "schedule_id": "told",
        "fields": {"every": {"old": None, "new": 3600}, "job.job_type": {"old": None, "new": "echo"}},
    }
    assert json.loads(applied(foliot, file, "--json")) == [created]
    assert json.loads(applied(foliot, file, "--json")) == [{"action": "same", "schedule_id": "told", "fields": {}}]


def test_what_is_not_in_the_file_stays_unless_it_is_pruned(foliot: Run, node: ServedNode, file: Path) -> None:
    file.write_text(schedule("pruned.a", 'every = "1h"') + schedule("pruned.b", 'every = "1h"'))
    applied(foliot, file)
    file.write_text(schedule("pruned.b", 'every = "1h"'))
    assert applied(foliot, file) == "1 unchanged\n"
    assert names(node, "pruned.") == {"pruned.a", "pruned.b"}
    prune = ("--prune", "--prefix", "pruned.")
    assert applied(foliot, file, *prune, "--dry-run") == "- pruned.a\n1 to delete, 1 unchanged\n"
    assert names(node, "pruned.") == {"pruned.a", "pruned.b"}
    others = names(node, "") - {"pruned.a"}
    assert applied(foliot, file, *prune) == "- pruned.a\n1 deleted, 1 unchanged\n"
    assert names(node, "") == others


def test_a_prune_without_a_prefix_means_every_schedule(foliot: Run, node: ServedNode, file: Path) -> None:
    file.write_text(schedule("elsewhere", 'every = "1h"'))
    applied(foliot, file)
    file.write_text(schedule("only", 'every = "1h"'))
    shown = applied(foliot, file, "--prune", "--dry-run", "--json")
    deleted = {each["schedule_id"] for each in json.loads(shown) if each["action"] == "delete"}
    assert "elsewhere" in deleted
    assert deleted == names(node, "") - {"only"}


def test_an_empty_file_prunes_nothing_without_a_prefix(foliot: Run, file: Path) -> None:
    file.write_text("# nothing yet\n")
    assert applied(foliot, file) == "nothing to do\n"
    shown = foliot("apply", str(file), "--prune")
    assert shown.exit_code == 2
    assert "would delete all" in shown.stderr


def test_a_schedule_paused_by_hand_stays_so(foliot: Run, node: ServedNode, file: Path) -> None:
    file.write_text(schedule("by-hand", 'every = "1h"'))
    applied(foliot, file)
    foliot("schedules", "pause", "by-hand")
    assert applied(foliot, file) == "1 unchanged\n"
    file.write_text(schedule("by-hand", 'every = "1h"', "paused = false"))
    assert applied(foliot, file) == "~ by-hand\n    paused: true → false\n1 changed\n"


def test_the_file_may_come_from_stdin(foliot: Run) -> None:
    assert foliot("apply", "-", stdin=schedule("piped", 'every = "1h"')).exit_code == 0
    assert foliot("schedules", "show", "piped").exit_code == 0


def test_a_schedule_that_has_ended_may_stay_but_can_not_be_made(foliot: Run, node: ServedNode, file: Path) -> None:
    file.write_text(schedule("ended", 'cron = "@daily"', "end_time = 2020-01-01T00:00:00Z"))
    shown = foliot("apply", str(file))
    assert shown.exit_code == 2
    assert f"{file}:4: schedule ended: end_time: lies before the first run" in shown.stderr
    words = ("--every", "100ms", "--start", "2020-01-01T00:00:00Z", "--end", "2020-01-01T00:00:00Z")
    assert foliot("schedules", "create", "echo", "--id", "ended", *words).exit_code == 0
    lines = ('every = "100ms"', "start_time = 2020-01-01T00:00:00Z", "end_time = 2020-01-01T00:00:00Z")
    file.write_text(schedule("ended", *lines))
    assert applied(foliot, file) == "1 unchanged\n"


def test_every_mistake_is_told_by_file_line_schedule_and_field_and_nothing_is_changed(
    foliot: Run, node: ServedNode, file: Path
) -> None:
    file.write_text(
        schedule("wrong.good", 'every = "1h"')
        + schedule("wrong.never", 'cron = "0 0 31 2 *"')
        + "[[schedule]]\nevery = 60\njob.job_type = 'echo'\n"
        + schedule("wrong.local", 'every = "1h"', "start_time = 2027-01-01T00:00:00")
        + schedule("wrong.word", 'corn = "@daily"')
        + schedule("wrong.job", 'every = "1h"', 'job.timeout = "0s"')
    )
    shown = foliot("apply", str(file))
    assert shown.exit_code == 2
    assert shown.stdout == ""
    never, nameless, local, word, job, summary = shown.stderr.removeprefix("Error: ").splitlines()
    assert never == f"{file}:7: schedule wrong.never: cron: can never fire: none of its months has such a day"
    assert nameless.startswith(f"{file}:9: schedule 3: schedule_id: is required")
    assert local.startswith(f"{file}:15: schedule wrong.local: start_time: a time needs its offset")
    assert word == f"{file}:19: schedule wrong.word: corn: there is no such field; did you mean cron?"
    assert job == f"{file}:24: schedule wrong.job: job.timeout: must be above zero"
    assert summary == "5 mistakes; nothing was changed"
    assert names(node, "wrong.") == set()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("schedule = [", "not valid TOML"),
        ("[schedule]\ncron = '@daily'", "two brackets"),
        ("[[schedules]]", "there is no 'schedules' here"),
        ("schedule = [3]", "schedule 1: The body must be an object"),
        (schedule("a", "every = 60") * 2, "schedules.toml:6: schedule a: schedule_id: taken by a schedule above"),
    ],
    ids=["no toml", "one bracket", "other name", "no table", "twice"],
)
def test_a_wrong_file_is_2_and_told_without_a_node(file: Path, text: str, told: str) -> None:
    file.write_text(text)
    shown = CliRunner().invoke(main, ["apply", str(file), "--url", "http://127.0.0.1:1"])
    assert shown.exit_code == 2
    assert told in shown.stderr


def test_a_file_that_is_not_there_is_2(file: Path) -> None:
    shown = CliRunner().invoke(main, ["apply", str(file), "--url", "http://127.0.0.1:1"])
    assert (shown.exit_code, shown.stderr) == (2, f"Error: {file} can not be read: No such file or directory\n")


def test_an_id_without_the_prefix_is_refused(foliot: Run, file: Path) -> None:
    file.write_text(schedule("free", 'every = "1h"'))
    shown = foliot("apply", str(file), "--prefix", "billing.")
    assert shown.exit_code == 2
    assert "'free' does not begin with the prefix 'billing.'" in shown.stderr


def test_what_was_done_before_some_trouble_is_told(foliot: Run, node: ServedNode, file: Path) -> None:
    file.write_text(schedule("stale.a", 'every = "1h"') + schedule("stale.b", 'every = "1h"'))
    applied(foliot, file)
    plan = [Difference(action="delete", schedule_id=name, version=1) for name in ("stale.a", "stale.b")]
    connection = find_connection(node.url, data_dir=str(node.directory / "foliot-data"), environ={})
    with connection.open() as client:
        client.change_schedule("stale.b", ScheduleUpdateBody(every="2h"))
        with pytest.raises(Failed) as refused:
            carry_out_each(client, plan)
    assert refused.value.message.startswith("stale.b: schedule 'stale.b' is at version 2, not 1")
    assert "1 of 2 were done before" in refused.value.message
    assert names(node, "stale.") == {"stale.b"}
