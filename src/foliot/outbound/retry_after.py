"""How long a service asks to be left alone."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_WAIT = 24 * 3600.0


def retry_after(value: str | None, now: int) -> float | None:
    """Seconds of a Retry-After header: a number, or a date; `now` in microseconds since 1970. What can not be read is
    as if not given; no service may put anybody off for more than a day."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return min(float(value), LONGEST_WAIT)
    try:
        time: datetime = parsedate_to_datetime(value)
    except ValueError:
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return min(max(0.0, time.timestamp() - now / 1_000_000), LONGEST_WAIT)
