"""The values of schedules that stores and clients see: names of runs, numbers of verdicts, a plan as it is kept."""

import re
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.duration import DAY, HOUR
from foliot.domain.schedule import CATCH_UPS, OVERLAPS, WITH_JOB, Plan, Verdict, run_name
from tests.domain.timetable.timetables import NOW, at, table


def test_a_run_is_named_after_its_schedule_and_due_time() -> None:
    assert run_name("nightly", at("2027-01-01T09:00")) == "nightly@2027-01-01T09:00:00Z"
    assert run_name("fast", at("2027-01-01T09:00") + 100_000) == "fast@2027-01-01T09:00:00.100000Z"
    assert run_name("madrid", at("2027-01-01T09:00+01:00")) == "madrid@2027-01-01T08:00:00Z"


@given(dues=st.lists(st.integers(0, at("3050-12-31")), min_size=2, unique=True))
def test_due_times_never_share_a_name_and_each_is_a_legal_job_id(dues: list[int]) -> None:
    names = [run_name("s" * 96, due) for due in sorted(dues)]
    assert len(set(names)) == len(dues)
    assert all(re.fullmatch(r"[A-Za-z0-9._:@-]{1,128}", name) for name in names)
    assert all(one[:116] <= other[:116] for one, other in pairwise(names))  # to the second they sort by time


def test_the_numbers_of_verdicts_are_those_of_the_store() -> None:
    assert {verdict.name: verdict.value for verdict in Verdict} == {
        "RAN": 1,
        "SKIPPED": 2,
        "CAUGHT_UP": 3,
        "BACKFILLED": 4,
        "MISSED": 5,
        "EXPIRED": 6,
    }
    assert set(Verdict) - set(WITH_JOB) == {Verdict.SKIPPED, Verdict.MISSED, Verdict.EXPIRED}


def test_a_plan_of_few_words_skips_overlaps_and_catches_up_the_latest_of_an_hour() -> None:
    plan = Plan(timetable=table(cron="@daily"))
    assert (plan.overlap, plan.max_concurrency, plan.catch_up, plan.catch_up_window) == ("skip", 1, "latest", HOUR)
    assert (OVERLAPS, CATCH_UPS) == (("skip", "queue", "replace", "allow"), ("none", "latest", "all"))


@pytest.mark.parametrize(
    "fields",
    [
        {"cron": "0 9 LW * *", "timezone": "Europe/Madrid", "calendar": {"country": "ES"}, "on_holiday": "previous"},
        {"every": "1500ms", "start_time": NOW, "end_time": NOW + DAY, "max_runs": 3, "jitter": "2s"},
        {"rrule": "FREQ=DAILY;UNTIL=20280101T000000Z", "start_time": NOW},
    ],
    ids=str,
)
def test_a_plan_is_the_same_after_it_was_written_and_read(fields: dict[str, Any]) -> None:
    plan = Plan(timetable=table(**fields), overlap="replace", max_concurrency=3, catch_up="all", catch_up_window=DAY)
    assert msgspec.json.decode(msgspec.json.encode(plan), type=Plan) == plan
