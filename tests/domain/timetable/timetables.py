"""Short ways to write instants and timetables."""

from datetime import UTC, datetime
from typing import Any

from foliot.domain.timetable.fields import parse_timetable
from foliot.domain.timetable.timetable import Timetable


def at(text: str) -> int:
    """Microseconds of a time like 2027-01-01 or 2027-01-01T09:00, in UTC unless it has an offset."""
    when = datetime.fromisoformat(text)
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1_000_000)


NOW = at("2027-01-01")


def table(*, created: int = NOW, **fields: Any) -> Timetable:
    return parse_timetable(created=created, **fields)


def shown(instants: list[int]) -> list[str]:
    return [datetime.fromtimestamp(instant / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M") for instant in instants]
