"""What this process has counted since it started: one number added where something happens, read when somebody asks.

A name is that of a family of `telemetry.families` without its prefix; the words after it are its label values."""

from collections import Counter

_COUNTS: Counter[tuple[str, ...]] = Counter()


def count(name: str, *labels: str, amount: int = 1) -> None:
    """For instance `count("webhook_deliveries", "delivered")`. The labels must be of a small, fixed set of words."""
    _COUNTS[name, *labels] += amount


def counted(name: str) -> dict[tuple[str, ...], int]:
    """All counts of a name, by their labels."""
    return {key[1:]: amount for key, amount in _COUNTS.items() if key[0] == name}
