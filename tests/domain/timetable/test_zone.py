"""Zones as stretches of one offset."""

from itertools import pairwise

import pytest

from foliot.domain.errors import BadInput
from foliot.domain.timetable.zone import (
    FIRST_YEAR,
    LAST_YEAR,
    parse_zone,
    stretches,
    stretches_back_from,
    stretches_from,
    wall_of,
    zone_names,
)
from tests.domain.timetable.timetables import at


def seconds(text: str) -> int:
    return at(text) // 1_000_000


def test_a_year_of_madrid_has_three_stretches() -> None:
    winter, summer, autumn = stretches("Europe/Madrid", 2027)
    assert (winter.start, winter.end, winter.offset) == (seconds("2027-01-01"), seconds("2027-03-28T01:00"), 3600)
    assert (summer.start, summer.end, summer.offset) == (seconds("2027-03-28T01:00"), seconds("2027-10-31T01:00"), 7200)
    assert autumn.end == seconds("2028-01-01")
    assert winter.peak == winter.start + winter.offset
    assert summer.peak == seconds("2027-03-28T02:00")  # an hour less than its first: a gap
    assert autumn.peak == seconds("2027-10-31T03:00")  # an hour more: a fold


def test_a_gap_may_be_a_whole_day_and_an_offset_may_have_seconds() -> None:
    before, after = stretches("Pacific/Apia", 2011)[-2:]
    assert after.start + after.offset - after.peak == 24 * 3600
    assert before.end == after.start
    assert stretches("Africa/Monrovia", 1972)[0].offset == -2670


@pytest.mark.parametrize("name", ["Europe/Madrid", "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia", "UTC"])
def test_stretches_follow_each_other_without_a_hole(name: str) -> None:
    walked = [stretch for year in range(1970, 2040) for stretch in stretches(name, year)]
    assert all(one.end == other.start for one, other in pairwise(walked))
    assert all(wall_of(name, stretch.start) == stretch.start + stretch.offset for stretch in walked)
    assert all(wall_of(name, stretch.end - 1) == stretch.end - 1 + stretch.offset for stretch in walked)


def test_walking_starts_at_the_instant_asked_for_and_stays_within_the_years() -> None:
    instant = seconds("2027-06-01")
    assert next(stretches_from("Europe/Madrid", instant)) == stretches("Europe/Madrid", 2027)[1]
    assert next(stretches_back_from("Europe/Madrid", instant)) == stretches("Europe/Madrid", 2027)[1]
    assert next(stretches_from("UTC", -(10**15))).start == 0
    assert list(stretches_back_from("UTC", -(10**15))) == []
    assert list(stretches_from("UTC", 10**15)) == []
    assert sum(1 for _ in stretches_from("UTC", 0)) == LAST_YEAR - FIRST_YEAR + 1


def test_a_zone_is_named_as_iana_names_it() -> None:
    assert parse_zone("Europe/Madrid") == "Europe/Madrid"
    assert len(zone_names()) > 500


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Madird", "did you mean 'Europe/Madrid'?"),
        ("CEST", "did you mean"),
        ("../../etc/passwd", 'use one like "Europe/Madrid"'),
        ("", 'use one like "Europe/Madrid"'),
        ("x" * 100_000, 'use one like "Europe/Madrid"'),
    ],
)
def test_another_name_is_refused_with_a_hint(name: str, hint: str) -> None:
    with pytest.raises(BadInput, match="timezone: ") as caught:
        parse_zone(name)
    assert hint in caught.value.detail
    assert len(caught.value.detail) < 200
