"""What a function takes becomes a payload, and back; what does not fit is named."""

import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from foliot import AsyncClient, AsyncJob, JobContext
from foliot.sdk.arguments import Arguments, BadArguments
from tests.sdk.quiet import quiet_context


@dataclass
class Address:
    street: str
    number: int = 1


class Receipt(msgspec.Struct):
    total: Decimal
    lines: list[str]


class Color(Enum):
    RED = "red"


def carried(function: Any, *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """What the function is called with on the other side."""
    arguments = Arguments(function, function.__name__)
    return arguments.call(bytes(arguments.payload(args, kwargs)), quiet_context())


def test_the_payload_is_an_object_of_the_arguments_by_name() -> None:
    def send(to: str, subject: str = "hello", *, copies: int = 1) -> None: ...

    payload = Arguments(send, "send").payload(("you",), {"copies": 2})
    assert msgspec.json.decode(payload) == {"to": "you", "copies": 2}


CLIENT = AsyncClient("http://127.0.0.1:1")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
KEY = uuid.UUID("8c883f67-884f-4c0b-bda0-e499346b80f0")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (int, 3),
        (float, 1.5),
        (str, "grüße\u0000"),
        (bool, True),
        (bytes, b"\x00\xff"),
        (datetime, NOON),
        (date, NOON.date()),
        (timedelta, timedelta(minutes=5)),
        (uuid.UUID, KEY),
        (Decimal, Decimal("1.10")),
        (list[int], [1, 2]),
        (tuple[int, str], (1, "a")),
        (set[int], {1, 2}),
        (dict[str, list[int]], {"a": [1]}),
        (dict[int, str], {1: "a"}),
        (Address, Address("Main St", 7)),
        (list[Address], [Address("a"), Address("b")]),
        (Address | None, None),
        (Receipt, Receipt(total=Decimal(3), lines=["x"])),
        (Color, Color.RED),
        (Literal["a", "b"], "b"),
        (Annotated[int, msgspec.Meta(ge=1)], 1),
        (Any, {"free": [1, None]}),
        (object, [1]),
    ],
    ids=str,
)
def test_a_typed_argument_arrives_as_its_type(kind: Any, value: Any) -> None:
    def take(it): ...

    take.__annotations__ = {"it": kind}
    assert carried(take, value) == ([], {"it": value})


def test_an_argument_without_a_type_arrives_as_json_has_it() -> None:
    def take(it): ...

    assert carried(take, (1, "a")) == ([], {"it": [1, "a"]})


def test_a_default_is_left_to_the_function() -> None:
    marker = object()

    def take(it=marker, items: list[int] = [1, 2]): ...  # noqa: B006

    assert carried(take) == ([], {})


def test_none_may_be_given_where_it_is_the_default() -> None:
    def take(it: int = None): ...  # type: ignore[assignment]  # noqa: RUF013

    assert carried(take, None) == ([], {"it": None})


def test_positional_only_arguments_arrive_by_position() -> None:
    def take(a: int, b: int = 5, /, c: int = 6): ...

    assert carried(take, 1, c=3) == ([1], {"c": 3})


def test_the_context_is_given_by_the_worker() -> None:
    def take(context: JobContext, it: int, also: JobContext | None = None): ...

    arguments = Arguments(take, "take")
    payload = arguments.payload((4,), {})
    assert msgspec.json.decode(payload) == {"it": 4}
    context = quiet_context()
    assert arguments.call(bytes(payload), context) == ([], {"it": 4, "context": context, "also": context})


def test_annotations_may_be_strings() -> None:
    def take(it: "Address", when: "datetime"): ...

    with pytest.raises(TypeError, match="argument 'when'"):
        Arguments(take, "take").payload((Address("x"), "soon"), {})


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, r"take\(\): missing a required argument: 'a'"),
        ((1, 2, 3, 4), {}, r"take\(\): too many positional arguments"),
        ((1,), {"nope": 1}, r"take\(\): got an unexpected keyword argument 'nope'"),
        (("1",), {}, r"take\(\): argument 'a': Expected int, got str"),
        ((1,), {"b": Address("x", "y")}, r"take\(\): argument 'b.number': Expected int, got str"),  # type: ignore[arg-type]
        ((1,), {"c": [1, None]}, r"take\(\): argument 'c\[1\]': Expected int, got null"),
        ((0,), {}, r"take\(\): argument 'a': Expected int >= 1"),
        ((1,), {"b": Path()}, r"take\(\): argument 'b' can not be sent as JSON: .*Path"),
    ],
)
def test_wrong_arguments_are_named_at_submit(args: Any, kwargs: Any, message: str) -> None:
    def take(a: Annotated[int, msgspec.Meta(ge=1)], b: Address | None = None, c: list[int] | None = None): ...

    with pytest.raises(TypeError, match=message):
        Arguments(take, "take").payload(args, kwargs)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"{}", "argument 'a' is missing"),
        (b'{"a":"x"}', "argument 'a': Expected int, got str"),
        (b'{"a":1,"z":2}', "argument 'z' is none that it takes"),
        (b"[1]", "must be an object of the arguments by name"),
        (b'{"a":1,"b":{"number":1}}', "argument 'b': Object missing required field street"),
    ],
)
def test_wrong_arguments_are_named_at_run(payload: bytes, message: str) -> None:
    def take(a: int, b: Address | None = None): ...

    with pytest.raises(BadArguments, match=message):
        Arguments(take, "take").call(payload, quiet_context())


def test_arguments_without_names_are_refused_when_the_job_is_made() -> None:
    def many(*items: int): ...

    def named(**items: int): ...

    with pytest.raises(TypeError, match=r"many\(\) takes \*items: int.*take a list"):
        Arguments(many, "many")
    with pytest.raises(TypeError, match=r"named\(\) takes \*\*items: int.*take a dict"):
        Arguments(named, "named")


def test_a_type_that_json_can_not_carry_is_refused_when_the_job_is_made() -> None:
    def take(file: Path): ...

    with pytest.raises(TypeError, match=r"take\(\): argument 'file' is a Path"):
        Arguments(take, "take")


def test_a_type_that_is_not_known_is_refused_when_the_job_is_made() -> None:
    def take(it: "Nowhere"): ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(TypeError, match="'Nowhere' is not defined"):
        Arguments(take, "take")


def upstream(**parents: Any) -> JobContext:
    context = quiet_context()
    context.upstream = parents
    return context


def done(result: Any) -> dict[str, Any]:
    return {"status": "completed", "result": result}


def test_a_job_stands_for_its_result_at_any_depth() -> None:
    def load(a: list[int], b: dict[str, list[int]], c: int = 0, d: Any = None) -> None: ...

    arguments = Arguments(load, "load")
    one, two = (AsyncJob[Any](CLIENT, name) for name in ("one", "two"))
    payload, parents = arguments.payload_with_results((one, {"x": [two, 3]}), {"c": 7, "d": 1 << 62})
    assert msgspec.json.decode(payload) == {
        "a": {"$result_of": "one"},
        "b": {"x": [{"$result_of": "two"}, 3]},
        "c": 7,
        "d": 1 << 62,
    }
    assert parents == ["one", "two"]
    called = arguments.call(bytes(payload), upstream(one=done([1, 2]), two=done(5)))
    assert called == ([], {"a": [1, 2], "b": {"x": [5, 3]}, "c": 7, "d": 1 << 62})


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({}, "the result of one was not handed on: the job does not depend on it"),
        ({"one": {"status": "failed", "result": None}}, "one has no result: it is failed"),
        ({"one": {"status": "completed", "result": None, "note": "too long"}}, "the result of one is too long"),
        ({"one": done("x")}, "argument 'a': Expected int, got str"),
    ],
)
def test_a_result_that_is_not_there_or_does_not_fit_is_told(parents: Any, message: str) -> None:
    def load(a: int) -> None: ...

    with pytest.raises(BadArguments, match=message):
        Arguments(load, "load").call(b'{"a":{"$result_of":"one"}}', upstream(**parents))


def test_what_only_looks_like_a_result_is_left_as_it_is() -> None:
    def load(a: Any) -> None: ...

    for text in (b'{"a":{"$result_of":1}}', b'{"a":{"$result_of":"one","b":2}}', b'{"a":"$result_of"}'):
        _, called = Arguments(load, "load").call(text, quiet_context())
        assert called == msgspec.json.decode(text)
