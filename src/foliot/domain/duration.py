"""Durations: seconds as a number, or a short string such as `250ms`, `30s`, `5m`, `2h`, `1d`. Kept as microseconds."""

import math
import re

from foliot.domain.errors import BadInput

Micros = int
SECOND: Micros = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
LONGEST = 100 * 365 * DAY

_UNITS = {"us": 1, "ms": 1000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_SHORT = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(us|ms|s|m|h|d)", re.ASCII)


def parse_duration(value: float | str, field: str) -> Micros:
    """Microseconds of a duration as the API takes it; an error naming `field` where it is none."""
    if isinstance(value, str):
        match = _SHORT.fullmatch(value)
        if match is None:
            raise BadInput.at(
                field, f'{value!r} is not a duration; use seconds (30) or a string like "250ms", "5m", "2h"'
            )
        micros = round(float(match[1]) * _UNITS[match[2]])
    else:
        if not 0 <= value < math.inf:
            raise BadInput.at(field, "a duration is a number of seconds, zero or more")
        micros = round(min(value, LONGEST) * SECOND)
    if micros > LONGEST:
        raise BadInput.at(field, "longer than 100 years")
    return micros


def show_duration(micros: Micros) -> float | int:
    """Seconds, whole where they are whole."""
    whole, rest = divmod(micros, SECOND)
    return whole if rest == 0 else micros / SECOND


def write_duration(length: Micros) -> str:
    """A duration as it may be given, in the largest unit that makes it whole."""
    unit = next(unit for unit in reversed(_UNITS) if length % _UNITS[unit] == 0)
    return f"{length // _UNITS[unit]}{unit}"
