"""`foliot cron`: when a schedule would run, told without a node."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from foliot.cli import main
from tests.cli.conftest import FOLIOT, ServedNode, clean_environment
from tests.cli.test_jobs import api

SPRING = ("--from", "2027-03-27T00:00:00Z")


def cron(*words: str) -> Result:
    return CliRunner().invoke(main, ["cron", *words])


def rows(shown: Result) -> list[list[str]]:
    """The table's lines as cells, its head first."""
    assert shown.exit_code == 0, shown.stderr
    return [re.split(r"\s{2,}", line.strip()) for line in shown.stdout.partition("\n\n")[2].splitlines()]


def test_a_schedule_is_told_in_words() -> None:
    words = cron("0 9 LW * *", "--tz", "Europe/Madrid", "--count", "1").stdout.splitlines()[0]
    assert words == "At 09:00 on the last weekday of the month, Europe/Madrid time"


def test_the_runs_are_shown_local_in_utc_and_with_the_rule_that_applied() -> None:
    head, before, on_the_day = rows(cron("30 2 * * *", "--tz", "Europe/Madrid", *SPRING, "--count", "2"))
    assert head == ["LOCAL", "UTC", "IN", "NOTE"]
    assert before[:2] == ["Sat 2027-03-27 02:30:00+01:00", "2027-03-27 01:30:00"]
    assert on_the_day[:2] == ["Sun 2027-03-28 03:00:00+02:00", "2027-03-28 01:00:00"]
    assert on_the_day[3] == "02:30 does not exist on Sun 2027-03-28: runs at 03:00"


def test_each_run_is_told_from_now() -> None:
    _, *found = rows(cron("--every", "90m", "--count", "2"))
    assert [cells[2] for cells in found] == ["in 1h 30m", "in 3h"]


def test_ten_runs_are_shown_without_a_note_where_there_is_none() -> None:
    head, *found = rows(cron("@hourly"))
    assert head == ["LOCAL", "UTC", "IN"]
    assert len(found) == 10


def test_a_rule_is_taken_too() -> None:
    _, *found = rows(cron("--rrule", "FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0", *SPRING, "--count", "2"))
    assert [cells[1] for cells in found] == ["2027-04-30 09:00:00", "2027-05-28 09:00:00"]


def test_holidays_and_dates_move_a_run_where_that_is_asked_for() -> None:
    asked = ("0 9 L * *", "--tz", "Europe/Madrid", "--from", "2027-01-01T00:00:00Z", "--count", "1")
    closed = ("--country", "ES", "--subdivision", "MD", "--except", "2027-01-29", "--except", "2027-01-28")
    _, moved = rows(cron(*asked, *closed, "--on-holiday", "previous"))
    assert moved[0].startswith("Wed 2027-01-27 09:00")
    assert moved[3].startswith("moved from Sun 2027-01-31")
    _, skipped = rows(cron(*asked, *closed))
    assert skipped[0].startswith("Wed 2027-03-31 09:00")


def test_json_is_what_the_api_would_answer(foliot: Callable[..., Result], node: ServedNode) -> None:
    shown = foliot("cron", "30 2 * * *", "--tz", "Europe/Madrid", *SPRING, "--count", "3", "--json")
    query = "cron=30+2+*+*+*&timezone=Europe/Madrid&start_time=2027-03-27T00:00:00Z&count=3"
    assert json.loads(shown.stdout) == api(node, f"/schedules/preview?{query}")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "give one of a cron expression, --every and --rrule"),
        (["@daily", "--every", "5m"], "give one of a cron expression, --every and --rrule"),
        (["0 9 * *"], "has 4 fields"),
        (["0 0 31 2 *"], "can never fire"),
        (["@daily", "--tz", "Europe/Madrd"], "did you mean 'Europe/Madrid'?"),
        (["--every", "50ms"], "100 ms"),
        (["--rrule", "every day"], "rrule: "),
        (["@daily", "--on-holiday", "next"], "needs a calendar"),
        (["@daily", "--country", "XX"], "'XX' is not known"),
        (["@daily", "--except", "soon"], "'soon' is not a date"),
    ],
    ids=" ".join,
)
def test_what_is_wrong_is_one_line_and_2(words: list[str], told: str) -> None:
    shown = cron(*words)
    assert shown.exit_code == 2
    assert shown.stdout == ""
    (line,) = shown.stderr.splitlines()
    assert line.startswith("Error: ")
    assert told in line


def test_too_many_runs_are_wrong_use() -> None:
    assert cron("@daily", "--count", "1001").exit_code == 2


def test_no_node_is_asked_and_nothing_is_left_behind(tmp_path: Path) -> None:
    environ = clean_environment(FOLIOT_URL="http://127.0.0.1:1")
    shown = subprocess.run([*FOLIOT, "cron", "@daily"], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_a_table_in_a_narrow_terminal_keeps_the_whole_note() -> None:
    code = (
        "import sys; sys.stdout.isatty = lambda: True\n"
        "from foliot.cli import main\n"
        f"main({['cron', '30 2 * * *', '--tz', 'Europe/Madrid', *SPRING, '--count', '2']})"
    )
    environ = clean_environment(COLUMNS="80", NO_COLOR="1", TERM="dumb")
    shown = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True).stdout
    table = shown.partition("\n\n")[2]
    assert max(map(len, table.splitlines())) <= 80
    note = table.partition("NOTE")[2].split()
    assert {"exist", "03:00"} <= set(note)
    assert "…" not in table
