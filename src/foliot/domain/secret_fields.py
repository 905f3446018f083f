"""Fields of a payload that are written and never shown, named by dotted paths such as `db.password`.

A path goes through objects by their names, and into every item of a list on its way. Nothing else of a payload is
touched: numbers and what is beside a path stay as they were written. What can not be taken apart is hidden as a whole.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from foliot.domain.errors import BadInput

MASK = "***"
MOST_NESTED = 100  # lists within lists that are looked through

Place = tuple[str | int, ...]  # names of objects and numbers of items, from the top
Change = Callable[[bytes, Place], bytes]

_MASK_TEXT = b'"***"'
_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.Encoder().encode


def mask(payload: str, fields: Sequence[str]) -> str:
    """The payload as it is shown."""
    if not fields:
        return payload
    try:
        return _edit(payload.encode(), _paths(fields), (), 0, lambda _value, _place: _MASK_TEXT).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return _MASK_TEXT.decode()


def amend(old: Callable[[], str], old_fields: Sequence[str], new: str, fields: Sequence[str]) -> str:
    """A payload that takes the place of another one, `***` in a secret place standing for the value that was there.
    Asks for the old one only where it is needed. `BadInput` where there is no such value, or where it would be shown
    from now on because its field is not secret any more."""
    if not fields and not old_fields:
        return new
    shown = _paths(exposed(old_fields, fields))

    def keep(value: bytes, place: Place) -> bytes:
        if value.strip() != _MASK_TEXT:
            return value
        kept = None if _covers(shown, place) else _find(old().encode(), place)
        if kept is None:
            name = ".".join(map(str, ("payload", *place)))
            raise BadInput.at(name, f"{MASK} stands for a secret value that is kept, and there is none; give the value")
        return kept

    try:
        return _edit(new.encode(), _paths([*fields, *old_fields]), (), 0, keep).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise BadInput.at("payload", "can not be searched for its secret fields; is its JSON sound?") from None


def exposed(old_fields: Sequence[str], fields: Sequence[str]) -> list[str]:
    """The fields that are secret no more: neither they nor what they lie in is named."""
    kept = _paths(fields)
    return [path for path in old_fields if not _covers(kept, tuple(path.split(".")))]


def secrets_in(payload: bytes, fields: Sequence[str]) -> list[str]:
    """The texts that must not be seen: strings and numbers in these fields."""
    found: list[str] = []

    def note(value: bytes, _place: Place) -> bytes:
        found.extend(_texts(json.loads(value)))
        return value

    try:
        _edit(payload, _paths(fields), (), 0, note)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return found
    return found


def _paths(fields: Iterable[str]) -> list[Place]:
    return [tuple(field.split(".")) for field in fields]


def _covers(paths: Iterable[Place], place: Place) -> bool:
    """Whether a place is at one of the paths or within it."""
    names = tuple(part for part in place if isinstance(part, str))
    return any(names[: len(path)] == path for path in paths)


def _edit(raw: bytes, paths: Sequence[Place], place: Place, depth: int, change: Change) -> bytes:
    """The value with `change` made of what is at the ends of the paths."""
    match raw.lstrip()[:1]:
        case b"{":
            fields = _decode_object(raw)
            for name in {path[0] for path in paths}:
                if isinstance(name, str) and name in fields:
                    value, below = bytes(fields[name]), [path[1:] for path in paths if path[0] == name]
                    here = (*place, name)
                    made = value if all(below) else change(value, here)
                    if made == value and any(below):
                        made = _edit(value, list(filter(None, below)), here, 0, change)
                    fields[name] = Raw(made)
            return _encode(fields)
        case b"[" if depth < MOST_NESTED:
            items = enumerate(_decode_list(raw))
            return _encode([Raw(_edit(bytes(item), paths, (*place, at), depth + 1, change)) for at, item in items])
        case b"[":
            return change(raw, place)
    return raw


def _find(value: bytes, place: Place) -> bytes | None:
    for part in place:
        match part, value.lstrip()[:1]:
            case str(), b"{":
                fields = _decode_object(value)
                if part not in fields:
                    return None
                value = bytes(fields[part])
            case int(), b"[":
                items = _decode_list(value)
                if part >= len(items):
                    return None
                value = bytes(items[part])
            case _:
                return None
    return value


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case bool() | None:
            pass
        case int() | float():
            yield json.dumps(value)
        case list():
            for item in value:
                yield from _texts(item)
        case _:
            for item in value.values():
                yield from _texts(item)
