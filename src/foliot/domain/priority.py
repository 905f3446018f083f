"""Priorities: 0 to 9, 9 first; three have names."""

from foliot.domain.errors import BadInput

WORDS = {"high": 8, "medium": 5, "low": 2}
DEFAULT = WORDS["medium"]
_NAMES = {number: word for word, number in WORDS.items()}


def parse_priority(value: int | str) -> int:
    if isinstance(value, str):
        if value in WORDS:
            return WORDS[value]
    elif 0 <= value <= 9:
        return value
    raise BadInput.at("priority", f'{value!r} is no priority; use "high", "medium", "low", or 0 to 9 (9 runs first)')


def show_priority(priority: int) -> int | str:
    return _NAMES.get(priority, priority)
