"""Times and durations as people type and read them. In `--json` they stay as the API has them."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_FROM_NOW = re.compile(r"([+-])(.+)")


class TimeParameter(click.ParamType):  # type: ignore[type-arg]
    """A moment: RFC 3339, the same without an offset for local time, or `+10m` and `-2h` counted from now."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        if match := _FROM_NOW.fullmatch(value):
            span = timedelta(microseconds=self._duration(match[2], param, ctx))
            return read_clock() + (span if match[1] == "+" else -span)
        try:
            time = datetime.fromisoformat(value)
        except ValueError:
            self.fail(
                f"{value!r} is no time; use 2027-03-01T08:00:00+01:00, 2027-03-01T08:00 (local) or +10m", param, ctx
            )
        return time.astimezone(UTC)

    def _duration(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from foliot.domain.duration import parse_duration
        from foliot.domain.errors import BadInput

        try:
            return parse_duration(text, "time")
        except BadInput:
            self.fail(f"{text!r} is no duration; use 250ms, 30s, 5m, 2h or 1d", param, ctx)


class DurationParameter(click.ParamType):  # type: ignore[type-arg]
    """A length of time, as the API takes it: seconds, or `250ms`, `30s`, `5m`, `2h`, `1d`."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        from foliot.domain.duration import parse_duration
        from foliot.domain.errors import BadInput

        try:
            given: float | str = float(value)
        except ValueError:
            given = value
        try:
            parse_duration(given, "duration")
        except BadInput:
            self.fail(f"{value!r} is no duration; use seconds (30) or 250ms, 30s, 5m, 2h, 1d", param, ctx)
        return given


def read_clock() -> datetime:
    """Now, by this machine."""
    from foliot.clock import wall
    from foliot.wire import to_time

    return to_time(wall())


TIME = TimeParameter()
DURATION = DurationParameter()


def show_span(seconds: float) -> str:
    """A duration in one or two units, the way one would say it."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    for size, unit, part, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // part
            return f"{whole // size}{unit}" + (f" {rest}{smaller}" if rest else "")
    return f"{whole}s"


def show_exact(seconds: float) -> str:
    """A duration as it would be typed, nothing left out: 90s, 2h, 250ms."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds * 1000:.6g}ms" if seconds < 1 else f"{seconds:.12g}s"


def show_relative(time: datetime | None, now: datetime) -> str:
    """`in 5m`, `12s ago`."""
    if time is None:
        return "-"
    seconds = (time - now).total_seconds()
    return f"in {show_span(seconds)}" if seconds > 0 else f"{show_span(abs(seconds))} ago"


def show_local(time: datetime) -> str:
    """On this machine's wall; a fraction of a second only where there is one."""
    local = time.astimezone()
    return f"{local:%Y-%m-%d %H:%M:%S}" + (f".{local.microsecond:06d}".rstrip("0") if local.microsecond else "")


def show_moment(time: datetime | None, now: datetime) -> str:
    """Local time, and how far it is from now."""
    if time is None:
        return "-"
    return f"{time.astimezone():%Y-%m-%d %H:%M:%S} ({show_relative(time, now)})"
