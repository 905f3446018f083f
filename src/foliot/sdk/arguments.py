"""A function's arguments as a payload: an object of them by name, checked where it is made and where it is read.

The check is the same on both sides: the payload must decode into the types of the signature. A default is not sent; it
is the function's own when the job runs. A parameter annotated `JobContext` is given by the worker, not the payload. An
argument in which a job stands for its result is checked where the job runs, when there is one.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType

from foliot.sdk.context import JobContext
from foliot.sdk.results import MissingResult, mark, put_in

_AT = re.compile(r" - at `\$\.?([^`]*)`$")
_FIELD = re.compile(r"^Object (missing required|contains unknown) field `([^`]*)`$")
Call = tuple[list[Any], dict[str, Any]]
Field = tuple[str, Any] | tuple[str, Any, Any]


class BadArguments(TypeError):
    """A payload that does not fit the function; the message names the argument."""


class Arguments:
    """What a function takes. Made once, when it becomes a job; what JSON can not carry is refused there."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        hints = _hints(function, name)
        parameters = list(inspect.signature(function).parameters.values())
        self._context = [each.name for each in parameters if _is_context(hints.get(each.name))]
        given = [each for each in parameters if each.name not in self._context]
        for each in given:
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                raise TypeError(
                    f"{name}() takes {each}: a job's arguments are known by name; "
                    f"take a {'list' if each.kind is each.VAR_POSITIONAL else 'dict'} as one argument instead"
                )
        self._positional = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]
        self._signature = inspect.Signature(given)
        self._in_order = [each.name for each in given if each.kind is not each.KEYWORD_ONLY]
        self._by_name = frozenset(each.name for each in given if each.kind is not each.POSITIONAL_ONLY)
        self._required = frozenset(each.name for each in given if each.default is each.empty)
        self._defaults = {each.name: each.default for each in given if each.default is not each.empty}
        self.names = frozenset(each.name for each in given)
        fields = [_field(each, hints.get(each.name, Any), name) for each in given]
        self._fields = fields
        self._decoder = _decoder(name, fields)
        self.result = hints.get("return", Any)

    def payload(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Raw:
        """The payload for a call with these arguments; TypeError, naming the argument, where they do not fit."""
        values = self._bind(args, kwargs)
        try:
            text = msgspec.json.encode(values)
        except (TypeError, ValueError, OverflowError, RecursionError):
            raise self._unencodable(values) from None
        self._decode(text)
        return Raw(text)

    def payload_with_results(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Raw, list[str]]:
        """The same, where a job may stand for its result; and the ids of those."""
        try:
            return self.payload(args, kwargs), []
        except BadArguments:
            values = self._bind(args, kwargs)
            marked = {name: self._marked(name, value) for name, value in values.items()}
            if not any(jobs for _, jobs in marked.values()):
                raise
        known = [field for field in self._fields if not marked.get(field[0], (None, None))[1]]
        text = msgspec.json.encode({name: raw for name, (raw, jobs) in marked.items() if not jobs})
        self._decode(text, _decoder(self._name, known))
        payload = msgspec.json.encode({name: raw for name, (raw, _) in marked.items()})
        return Raw(payload), [job_id for _, jobs in marked.values() for job_id in jobs]

    def values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Every argument by name, those left out as the function has them."""
        return self._defaults | self._bind(args, kwargs)

    def call(self, payload: bytes, context: JobContext) -> Call:
        """What to call the function with; BadArguments where the payload does not fit it."""
        try:
            read = self._decode(put_in(payload, context.upstream))
        except MissingResult as error:
            raise BadArguments(f"{self._name}(): {error}") from None
        kwargs = {name: value for name in self.names if (value := getattr(read, name)) is not UNSET}
        kwargs |= dict.fromkeys(self._context, context)
        args = []
        for name in self._positional:
            if name not in kwargs:
                break
            args.append(kwargs.pop(name))
        return args, kwargs

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """As Python would. The plain case is done here, because `inspect` takes most of a submit's time for it."""
        if len(args) <= len(self._in_order):
            values = dict(zip(self._in_order, args, strict=False))
            if kwargs.keys() <= self._by_name and values.keys().isdisjoint(kwargs):
                values.update(kwargs)
                if self._required <= values.keys():
                    return values
        try:
            return self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise BadArguments(f"{self._name}(): {error}") from None

    def _marked(self, name: str, value: Any) -> tuple[Raw, list[str]]:
        try:
            return mark(value)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise self._no_json(name, error) from None

    def _decode(self, payload: bytes, decoder: msgspec.json.Decoder[Any] | None = None) -> Any:
        try:
            return (decoder or self._decoder).decode(payload)
        except msgspec.DecodeError as error:
            raise BadArguments(f"{self._name}(): {_explain(str(error))}") from None

    def _unencodable(self, values: Mapping[str, Any]) -> BadArguments:
        for name, value in values.items():
            try:
                msgspec.json.encode(value)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                return self._no_json(name, error)
        return BadArguments(f"{self._name}(): the arguments can not be sent as JSON")

    def _no_json(self, name: str, error: Exception) -> BadArguments:
        return BadArguments(f"{self._name}(): argument '{name}' can not be sent as JSON: {error}")


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"{name}(): a type in its signature is not known here: {error}") from error


def _is_context(hint: Any) -> bool:
    return hint is JobContext or JobContext in get_args(hint)


def _field(parameter: inspect.Parameter, hint: Any, name: str) -> Field:
    hint = Any if hint is object else hint
    try:
        kind = msgspec.inspect.type_info(hint)
    except TypeError as error:
        raise TypeError(f"{name}(): argument '{parameter.name}': {error}") from None
    if isinstance(kind, msgspec.inspect.CustomType):
        raise TypeError(
            f"{name}(): argument '{parameter.name}' is a {kind.cls.__name__}, which JSON can not carry; "
            "use numbers, strings, datetimes, lists, dicts, dataclasses or msgspec structs"
        )
    if parameter.default is parameter.empty:
        return parameter.name, hint
    if hint is Any:
        return parameter.name, hint, UNSET
    return parameter.name, (hint | None | UnsetType) if parameter.default is None else (hint | UnsetType), UNSET


def _decoder(name: str, fields: list[Field]) -> msgspec.json.Decoder[Any]:
    shape = msgspec.defstruct(_identifier(name), fields, kw_only=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(shape)


def _explain(message: str) -> str:
    """msgspec's message with the argument's name in front."""
    if found := _FIELD.match(message):
        word = "is missing" if found[1] == "missing required" else "is none that it takes"
        return f"argument '{found[2]}' {word}"
    if (found := _AT.search(message)) and found[1]:
        return f"argument '{found[1]}': {message[: found.start()].replace('`', '')}"
    return f"the payload must be an object of the arguments by name: {message.replace('`', '')}"


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name) or "Arguments"
