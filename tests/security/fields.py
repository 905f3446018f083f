"""Where text may stand in the body of a call, found in its type; and the smallest body of that type."""

from collections.abc import Iterator
from typing import Any

from msgspec import NODEFAULT, inspect

from foliot.api.messages import members
from tests.security.requests import EXAMPLES

Step = str | int
KEY = "a key of the object"  # a step: the text is the key itself
_DEEPEST = 4


def places(type_: type) -> Iterator[tuple[Step, ...]]:
    """The paths at which a body of this type has text."""
    yield from _places(inspect.type_info(type_), ())


def _places(type_: inspect.Type, path: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    if len(path) > _DEEPEST:
        return
    for member in members(type_):
        match member:
            case inspect.StructType():
                for field in member.fields:
                    yield from _places(field.type, (*path, field.encode_name))
            case inspect.ListType() | inspect.VarTupleType():
                yield from _places(member.item_type, (*path, 0))
            case inspect.DictType():
                yield (*path, KEY)
                yield from _places(member.value_type, (*path, "name"))
            case inspect.RawType() | inspect.AnyType():
                yield path
                yield (*path, "name")
                yield (*path, KEY)
            case inspect.StrType() | inspect.LiteralType() | inspect.DateTimeType():
                yield path


def with_text(type_: type, path: tuple[Step, ...], text: str) -> Any:
    """The smallest body of the type, with `text` at the path."""
    start = EXAMPLES.get(type_) or least(inspect.type_info(type_))
    return _put(inspect.type_info(type_), start, path, text)


def _put(type_: inspect.Type | None, value: Any, path: tuple[Step, ...], text: str) -> Any:
    if not path:
        return text
    step, *rest = path
    if step == KEY:
        return {text: _some_value(type_)}
    inner = _inner(type_, step)
    if isinstance(step, int):
        return [_put(inner, least(inner), tuple(rest), text)]
    known = value if isinstance(value, dict) else least(_struct(type_))
    known = known if isinstance(known, dict) else {}
    return known | {step: _put(inner, known.get(step, least(inner) if rest else None), tuple(rest), text)}


def _some_value(type_: inspect.Type | None) -> Any:
    found = next((each for each in members(type_) if isinstance(each, inspect.DictType)), None)
    return 1 if found is None else least(found.value_type)


def _struct(type_: inspect.Type | None) -> inspect.Type | None:
    return next((each for each in members(type_) if isinstance(each, inspect.StructType)), None)


def _inner(type_: inspect.Type | None, step: Step) -> inspect.Type | None:
    for member in members(type_):
        match member:
            case inspect.StructType():
                for field in member.fields:
                    if field.encode_name == step:
                        return field.type
            case inspect.ListType() | inspect.VarTupleType() if isinstance(step, int):
                return member.item_type
            case inspect.DictType() if isinstance(step, str):
                return member.value_type
    return None


def least(type_: inspect.Type | None) -> Any:
    """The smallest value of a type."""
    for member in members(type_):
        match member:
            case inspect.StructType():
                return {
                    field.encode_name: least(field.type)
                    for field in member.fields
                    if field.default is NODEFAULT and field.default_factory is NODEFAULT
                }
            case inspect.LiteralType():
                return member.values[0]
            case inspect.IntType() | inspect.FloatType():
                return 1
            case inspect.StrType():
                return "x"
            case inspect.DateTimeType():
                return "2025-01-01T00:00:00Z"
            case inspect.ListType() | inspect.VarTupleType():
                return []
            case inspect.DictType():
                return {}
    return None
