"""`foliot lateness`, and what `foliot top` tells of it."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from foliot.cli.lateness import show_brief

Foliot = Callable[..., Result]


@pytest.fixture
def ran(foliot: Foliot) -> str:
    """The queue of a job that has run."""
    assert foliot("submit", "echo", "{}", "--queue", "late-jobs", "--wait").exit_code == 0
    return "late-jobs"


def test_lateness_is_a_table_for_people(foliot: Foliot, ran: str) -> None:
    head, row = foliot("lateness", "--queue", ran).stdout.splitlines()
    assert head.split() == ["QUEUE", "TYPE", "JOBS", "LATE", "P50", "P99", "MAX", "ADMIT", "CLAIM", "START", "RUN"]
    assert row.split()[:2] == [ran, "echo"]
    assert "all" in foliot("lateness", "--queue", ran, "--by", "queue", "--since", "5m").stdout.splitlines()[1].split()


def test_lateness_is_json_for_programs(foliot: Foliot, ran: str) -> None:
    (found,) = json.loads(foliot("lateness", "--queue", ran, "--type", "echo", "--json").stdout)
    assert found["jobs"] >= 1
    assert found["late"]["p50"] <= found["late"]["max"]


def test_where_nothing_has_ended_it_says_so(foliot: Foliot) -> None:
    told = foliot("lateness", "--queue", "nobody-uses-this")
    assert (told.exit_code, told.stdout) == (0, "")
    assert "no job has ended" in told.stderr


def test_top_shows_how_late_each_queue_is(foliot: Foliot, ran: str) -> None:
    lines = foliot("top", "--once").stdout.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("QUEUE"))
    assert lines[head].split()[-3:] == ["P50", "P99", "MAX"]
    assert any(line.startswith(ran) for line in lines[head:])


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.0, "0.0ms"), (0.00123, "1.2ms"), (0.0099, "9.9ms"), (0.01, "10ms"), (2.04, "2.0s")]
)
def test_a_short_time_is_told_in_parts_of_a_millisecond(seconds: float, shown: str) -> None:
    assert show_brief(seconds) == shown
