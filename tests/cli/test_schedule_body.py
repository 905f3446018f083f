"""What `foliot schedules create` and `change` make of their words, and what they refuse before asking a node."""

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from click.testing import CliRunner
from msgspec import Raw

from foliot import wire
from foliot.cli import main, schedule_options
from foliot.cli.schedule_control import change, create
from foliot.cli.schedule_options import change_body, create_body
from foliot.wire import CalendarBody, ScheduleInfo, encode, to_time

ELSEWHERE = ("as_json", "url", "key", "data_dir")
INFO = ScheduleInfo(
    schedule_id="s",
    status="active",
    description="",
    next_run=None,
    runs=0,
    job=Raw(b'{"job_type":"report","payload":{"n": 1.50},"retry":{"max_attempts":2,"backoff":"fixed"}}'),
    calendar=CalendarBody(country="ES", subdivision="MD", closed=["2027-12-24"]),
    created_time=to_time(0),
    last_updated=to_time(0),
    version=7,
)


def given(command: Any, *words: str) -> dict[str, Any]:
    found = command.make_context(command.name, list(words)).params
    return {name: value for name, value in found.items() if name not in ELSEWHERE}


def created(*words: str) -> Any:
    return json.loads(encode(create_body(**given(create, *words))))


def changed(*words: str) -> tuple[Any, int | None]:
    words_given = given(change, "s", *words)
    del words_given["schedule_id"]
    body, version = change_body(present=lambda: INFO, **words_given)
    return json.loads(encode(body)), version


def test_only_what_is_given_is_sent() -> None:
    assert created("echo", "--cron", "@daily") == {"cron": "@daily", "job": {"job_type": "echo"}}


def test_every_option_becomes_its_field() -> None:
    words = ["report", "--id", "r", "--every", "5m", "--tz", "Europe/Madrid", "--start", "2027-01-01T00:00:00+01:00"]
    words += ["--end", "2028-01-01T00:00:00Z", "--max-runs", "9", "--jitter", "30s", "--overlap", "queue"]
    words += ["--max-concurrency", "3", "--catch-up", "all", "--catch-up-window", "1d", "--country", "ES"]
    words += ["--subdivision", "MD", "--closed", "2027-12-24", "--except", "2027-12-31", "--weekend", "fri"]
    words += ["--on-holiday", "skip", "--paused", "--payload", '{"n": 1}', "--queue", "slow", "--priority", "7"]
    words += ["--concurrency", "crm=1", "--resource", "cpu=2", "--require", "zone=eu", "--unique-key", "sync"]
    words += ["--fair-key", "tenant-a"]
    body = created(*words, "--timeout", "10m", "--max-attempts", "5", "--tag", "a", "--tag", "b")
    assert body["job"].pop("retry")["max_attempts"] == 5
    assert body == {
        "schedule_id": "r",
        "every": "5m",
        "timezone": "Europe/Madrid",
        "start_time": "2026-12-31T23:00:00Z",
        "end_time": "2028-01-01T00:00:00Z",
        "max_runs": 9,
        "jitter": "30s",
        "overlap": "queue",
        "max_concurrency": 3,
        "catch_up": "all",
        "catch_up_window": "1d",
        "calendar": {
            "country": "ES",
            "subdivision": "MD",
            "except": ["2027-12-24", "2027-12-31"],
            "weekend": ["fri"],
        },
        "on_holiday": "skip",
        "paused": True,
        "job": {
            "job_type": "report",
            "payload": {"n": 1},
            "queue": "slow",
            "priority": 7,
            "timeout": "10m",
            "tags": ["a", "b"],
            "concurrency": {"key": "crm", "limit": 1},
            "resources": {"cpu": 2.0},
            "requires": {"zone": "eu"},
            "unique_key": "sync",
            "fair_key": "tenant-a",
        },
    }


def test_a_change_sends_what_is_given_and_asks_for_nothing() -> None:
    assert changed("--cron", "@daily", "--active") == ({"cron": "@daily", "paused": False}, None)
    assert changed("--reset", "end_time", "--reset", "calendar") == ({"end_time": None, "calendar": None}, None)


def test_a_part_of_the_job_is_changed_within_the_job_as_it_is() -> None:
    body, version = changed("--queue", "slow", "--max-attempts", "4")
    assert version == INFO.version
    assert body.keys() == {"job"}
    retry = body["job"].pop("retry")
    assert (retry["max_attempts"], retry["backoff"]) == (4, "fixed")
    assert body["job"] == {"job_type": "report", "payload": {"n": 1.5}, "queue": "slow"}


def test_a_part_of_the_calendar_is_changed_within_the_calendar_as_it_is() -> None:
    assert changed("--closed", "2027-12-31") == (
        {"calendar": {"country": "ES", "subdivision": "MD", "except": ["2027-12-31"]}},
        INFO.version,
    )


def test_another_country_leaves_the_part_of_the_one_before_behind() -> None:
    body, _ = changed("--country", "PT")
    assert body == {"calendar": {"country": "PT", "except": ["2027-12-24"]}}


def test_a_body_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text('{"schedule_id": "s", "cron": "@daily", "job": {"job_type": "echo"}}')
    assert created("--file", str(file)) == json.loads(file.read_text())
    file.write_text('{"cron": "@daily", "end_time": null}')
    assert changed("--file", str(file)) == (json.loads(file.read_text()), None)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["create"], "which job type?"),
        (["create", "echo"], "Give one of --cron, --every and --rrule"),
        (["create", "echo", "--cron", "@daily", "--every", "5m"], "Give one of --cron, --every and --rrule"),
        (["create", "echo", "--file", "-"], "leave out the other options"),
        (["create", "echo", "--cron", "@daily", "--payload", "{"], "is not JSON"),
        (["create", "--file", "no-such-file.json"], "no-such-file.json can not be read"),
        (["change", "s"], "change what?"),
        (["change", "s", "--cron", "@daily", "--every", "5m"], "give one of --cron, --every and --rrule"),
        (["change", "s", "--end", "+1d", "--reset", "end_time"], "end_time can not be given and reset at once"),
        (["change", "s", "--paused", "--file", "-"], "leave out the other options"),
        (["delete", "s"], "say --yes"),
        (["backfill", "s", "--from", "-1d"], "--to"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_2_and_told_without_a_node(words: list[str], told: str) -> None:
    shown = CliRunner().invoke(main, ["schedules", *words, "--url", "http://127.0.0.1:1"])
    assert shown.exit_code == 2
    assert told in shown.stderr


def test_a_file_with_a_mistake_is_told_by_its_field() -> None:
    words = ["schedules", "create", "--file", "-", "--url", "http://127.0.0.1:1"]
    shown = CliRunner().invoke(main, words, input='{"corn": "@daily", "job": {"job_type": "echo"}}')
    assert shown.exit_code == 2
    assert shown.stderr == "Error: stdin: corn: there is no such field; did you mean cron?\n"


def test_the_words_and_fields_are_the_apis() -> None:
    assert get_args(wire.OverlapWord) == schedule_options.OVERLAPS
    assert get_args(wire.CatchUpWord) == schedule_options.CATCH_UPS
    assert get_args(wire.OnHolidayWord) == schedule_options.ON_HOLIDAY
    assert get_args(wire.Weekday) == schedule_options.WEEKDAYS
    assert {*schedule_options.PLAN_FIELDS, "calendar"} == {*wire.PlanBody.__struct_fields__}
    assert {*schedule_options.CALENDAR_FIELDS} == {*CalendarBody.__struct_fields__}
    updatable = {field.name for field in msgspec.structs.fields(wire.ScheduleUpdateBody)}
    assert updatable >= {*schedule_options.RESETTABLE}
