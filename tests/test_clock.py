"""The one place that asks for the time."""

import time

import pytest

from foliot import clock
from foliot.clock import Clock, OffsetClock, WallClock, monotonic, wall

SECOND = 1_000_000


def test_wall_time_is_microseconds_since_1970() -> None:
    before = time.time_ns() // 1000
    asked: Clock = WallClock()
    now = asked.now()
    assert before <= now <= wall()


def test_the_monotonic_clock_never_goes_back() -> None:
    readings = [monotonic() for _ in range(1000)]
    assert readings == sorted(readings)


def test_a_system_without_a_boot_clock_uses_its_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "_BOOT", None)
    before = time.monotonic_ns() // 1000
    assert before <= monotonic() <= time.monotonic_ns() // 1000


def test_an_offset_clock_starts_with_the_machines_time() -> None:
    before = wall() - SECOND
    assert before <= OffsetClock().now() <= wall() + SECOND


@pytest.mark.parametrize("reading", [0, 1_800_000_000 * SECOND])
def test_an_offset_clock_goes_on_from_another_clocks_reading(reading: int) -> None:
    offset = OffsetClock()
    asked = monotonic()
    offset.set(reading, asked=asked, answered=asked)
    now = offset.now()
    assert reading <= now <= reading + (monotonic() - asked)


def test_a_reading_is_taken_as_of_the_middle_of_its_round_trip() -> None:
    offset = OffsetClock()
    asked = monotonic()
    offset.set(1000 * SECOND, asked=asked - 3 * SECOND, answered=asked - SECOND)
    now = offset.now()
    assert 1002 * SECOND <= now <= 1002 * SECOND + (monotonic() - asked)


def test_the_latest_reading_counts() -> None:
    offset = OffsetClock()
    asked = monotonic()
    offset.set(2000 * SECOND, asked=asked, answered=asked)
    offset.set(1000 * SECOND, asked=asked, answered=asked)
    assert 1000 * SECOND <= offset.now() < 2000 * SECOND
