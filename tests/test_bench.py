"""The benchmark runs from the command line and tells its figures in a table."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.__main__ import chosen, parse

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str, seconds: float = 18) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds)


def figures(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The cells of each row."""
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split("|") for line in done.stdout.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_a_quick_run_prints_a_table_of_figures_with_their_limits_and_marks() -> None:
    done = run("--quick", "--only", "submit", "--store", "sqlite", "--jobs", "200")
    assert done.returncode == 0, done.stderr
    rows = [line.strip("| ").split("|") for line in done.stdout.splitlines() if line.startswith("|")]
    header, rule, *figures = [[cell.strip() for cell in row] for row in rows]
    assert header == ["figure", "measured", "bare limit", "share", "first mark", "goal", "verdict"]
    assert all(set(cell) <= {"-", ":"} for cell in rule)
    singles = figures[0]
    assert singles[0] == "submit, one a request, 64 connections"
    assert singles[1].endswith(" jobs/s")
    assert singles[3].endswith("%")
    assert singles[4:6] == ["4,000", "8,000"]
    assert singles[6] in ("goal met", "mark met", "not met")
    assert "submit, 1,000 a request" in [figure[0] for figure in figures]
    assert "█" in done.stdout


def test_an_unknown_measure_is_refused_with_the_known_ones() -> None:
    done = run("--only", "speed")
    assert done.returncode == 2
    assert "there is no measure 'speed'; there are submit, sdk, drain, idle, late, burst, minute" in done.stderr
    assert "time is late, burst, minute, schedules" in done.stderr


def test_a_burst_tells_of_its_first_start_and_of_urgent_jobs_among_it() -> None:
    done = run("--quick", "--only", "burst", "--store", "sqlite")
    assert done.returncode == 0, done.stderr
    figures = [line.split("|")[1].strip() for line in done.stdout.splitlines() if line.startswith("|")]
    assert figures[2:] == [
        "many due at one second: the first start after it",
        "… the last",
        "… starts a second",
        "… a `high` job handed in among them, submit → start",
        "… those queued at that moment waited on for",
        "… so many of them it went before",
    ]


@pytest.mark.timeout(90)
def test_what_rules_cost_is_told_in_percent_of_plain() -> None:
    found = figures(run("--quick", "--only", "queues", "--store", "sqlite", "--jobs", "40", seconds=80))
    assert [(row[0], row[4]) for row in found] == [
        ("drain of a plain backlog beside those under rules", "-"),
        ("… with 10,000 concurrency keys, of plain", "70"),
        ("… with 100 lanes, of plain", "70"),
        ("… policy `fair`, 1,000 fair keys, of plain", "-"),
        ("… policy `fifo`, of plain", "-"),
        ("… with a `max_concurrency` that is not reached, of plain", "-"),
        ("… with a rate that is not reached, of plain", "-"),
    ]
    assert [row[1].split()[-1] for row in found] == ["jobs/s", *["%"] * 6]


@pytest.mark.timeout(60)
def test_graphs_tell_how_soon_a_child_starts_after_its_last_parent() -> None:
    found = figures(run("--quick", "--only", "graphs", "--store", "sqlite", seconds=50))
    assert [(row[0], row[4]) for row in found] == [
        ("end of the last parent → start of its child, p50", "-"),
        ("… p99", "10"),
        ("… the longest", "-"),
    ]
    assert all(float(row[1].split()[0]) > 0 for row in found)


def test_long_measures_run_only_when_asked_for() -> None:
    assert "minute" not in chosen(parse([]))
    assert "minute" in chosen(parse(["--long"]))
    assert chosen(parse(["--only", "time,late"])) == ["late", "burst", "minute", "schedules"]
