"""What is wrong with an input, told by field and in words a person can act on.

msgspec says where and what in one line ("Expected `int`, got `str` - at `$.retry.max_attempts`"); here the place
becomes the field's name from the top of the request (`retry.max_attempts`, `jobs[3].priority`), and the rest a sentence
that says what would be right. Where a type carries a description, that is the sentence.
"""

import difflib
import re
from typing import Any

import msgspec
from msgspec import inspect

from foliot.domain.errors import BadInput

_PLACE = re.compile(r" - at (?:`key` in )?`\$([^`]*)`\Z")
_STEP = re.compile(r"\.([^.\[\]]+)|(\[)")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`")
_TYPES = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_LENGTH = re.compile(r"Expected `(\w+)` of length (<=|>=|==) (\d+)")
_BOUND = re.compile(r"Expected `\w+` (<=|>=|<|>) (\S+)")

_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "datetime": "a time (RFC 3339 with an offset)",
}
_BOUNDS = {"<=": "at most", ">=": "at least", "==": "exactly", "<": "below", ">": "above"}
_AN_EXAMPLE = "like 2027-01-31T09:00:00Z or 2027-01-31T09:00:00+02:00"


def bad_value(message: str, type_: type) -> BadInput:
    """The error for a value that msgspec refused with `message` when it was to become a `type_`."""
    place = _PLACE.search(message)
    text = message[: place.start()] if place else message
    path = (place[1] if place else "").removeprefix(".")
    target = _find(type_, "." + path if path else "")
    if unknown := _UNKNOWN.fullmatch(text):
        name = unknown[1]
        return BadInput.at(f"{path}.{name}" if path else name, _no_such_field(name, target))
    if missing := _MISSING.fullmatch(text):
        return BadInput.at(f"{path}.{missing[1]}" if path else missing[1], "is required")
    sentence = _sentence(text, target)
    return BadInput.at(path, sentence) if path else BadInput(f"The body {sentence}")


def bad_json(message: str) -> BadInput:
    """The error for a body that is no JSON at all."""
    if "truncated" in message:
        return BadInput("The body is not valid JSON: it ends too early")
    fault = message.removeprefix("JSON is malformed: ")
    return BadInput(f"The body is not valid JSON: {fault.replace('(byte ', '(at byte ')}")


def _no_such_field(name: str, target: inspect.Type | None) -> str:
    struct = next((each for each in members(target) if isinstance(each, inspect.StructType)), None)
    if struct is None:
        return "there is no such field"
    near = difflib.get_close_matches(name, [field.encode_name for field in struct.fields], n=1)
    return f"there is no such field; did you mean {near[0]}?" if near else "there is no such field"


def _sentence(text: str, target: inspect.Type | None) -> str:
    if "timezone" in text:
        return f"a time needs its offset, {_AN_EXAMPLE}"
    if "RFC3339" in text:
        return f"is not a time; use RFC 3339 with an offset, {_AN_EXAMPLE}"
    if "matching regex" in text:
        return f"must be {_description(target) or 'without control characters'}"
    if "enum value" in text and (words := _words(target)):
        return f"must be one of {', '.join(words)}"
    if types := _TYPES.fullmatch(text):
        hint = _description(target) if "|" in types[1] else None
        return f"must be {_kinds(types[1])}, not {_kinds(types[2])}" + (f": {hint}" if hint else "")
    if length := _LENGTH.fullmatch(text):
        one, many = ("character", "characters") if length[1] == "str" else ("entry", "entries")
        return f"must have {_BOUNDS[length[2]]} {length[3]} {one if length[3] == '1' else many}"
    if bound := _BOUND.fullmatch(text):
        number = bound[2].removesuffix(".0")
        return f"must be {_BOUNDS[bound[1]]} {number}"
    return text[:1].lower() + text[1:]


def _kinds(types: str) -> str:
    return " or ".join(_KINDS.get(kind, kind) for kind in types.split(" | "))


def _find(type_: type, path: str) -> inspect.Type | None:
    """The type that stands at `path` within `type_`."""
    found: inspect.Type | None = inspect.type_info(type_)
    for name, _ in _STEP.findall(path):
        found = _step(found, name)
    return found


def _step(type_: inspect.Type | None, name: str) -> inspect.Type | None:
    for member in members(type_):
        match member:
            case inspect.StructType() if name:
                return next((field.type for field in member.fields if field.encode_name == name), None)
            case inspect.ListType() if not name:
                return member.item_type
            case inspect.DictType() if not name:
                return member.value_type
    return None


def members(type_: inspect.Type | None) -> list[inspect.Type]:
    """What a value of this type may be, unions and descriptions taken apart."""
    match type_:
        case None:
            return []
        case inspect.Metadata():
            return members(type_.type)
        case inspect.UnionType():
            return [member for each in type_.types for member in members(each)]
    return [type_]


def _description(type_: inspect.Type | None) -> str | None:
    match type_:
        case inspect.Metadata():
            schema: dict[str, Any] = type_.extra_json_schema or {}
            return schema.get("description")
        case inspect.UnionType():
            return next(filter(None, map(_description, type_.types)), None)
    return None


def _words(type_: inspect.Type | None) -> list[str]:
    return [str(word) for each in members(type_) if isinstance(each, inspect.LiteralType) for word in each.values]


def explain(error: Exception, type_: type) -> BadInput:
    """What to tell for whatever a decoder of `type_` raised."""
    match error:
        case msgspec.ValidationError():
            return bad_value(str(error), type_)
        case UnicodeDecodeError():
            return BadInput("The body is not valid JSON: it is not UTF-8")
        case RecursionError():
            return BadInput("The body is nested too deeply")
    return bad_json(str(error))
