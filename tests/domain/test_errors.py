"""The errors are one tree, drawn in the module's docstring, and each is known outside by a word and an HTTP status."""

import re
from http import HTTPStatus

import pytest

from foliot.domain import errors
from foliot.domain.errors import BadInput, FieldError, FoliotError, TooLarge, Unavailable

LINE = re.compile(r"(?P<branch>(?:│ {3})*(?:[├└]── )?)(?P<name>[A-Z]\w+)(?: +(?P<status>\d{3})\b.*)?")


def kinds(base: type[FoliotError]) -> list[type[FoliotError]]:
    return [base, *(kind for below in base.__subclasses__() for kind in kinds(below))]


ERRORS = [kind for kind in kinds(FoliotError) if kind.__module__ == errors.__name__]


def drawn() -> list[tuple[str, str, int | None]]:
    """(name, base, status) of each line of the drawing."""
    assert errors.__doc__ is not None
    found: list[tuple[str, str, int | None]] = []
    path: list[str] = []
    for match in filter(None, map(LINE.fullmatch, errors.__doc__.splitlines())):
        depth = len(match["branch"]) // 4
        path[depth:] = [match["name"]]
        base = path[depth - 1] if depth else "Exception"
        found.append((match["name"], base, int(match["status"]) if match["status"] else None))
    return found


def test_the_drawing_is_the_tree() -> None:
    expected = []
    for kind in ERRORS:
        (base,) = kind.__bases__
        expected.append((kind.__name__, base.__name__, None if kind is FoliotError else kind.status))
    assert drawn() == expected


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_an_error_has_a_code_a_title_and_a_status(kind: type[FoliotError]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", kind.code)
    assert kind.title
    assert HTTPStatus(kind.status).value >= 400
    assert str(kind("say what to do")) == kind("say what to do").detail == "say what to do"


def test_no_two_errors_share_a_code() -> None:
    assert len({kind.code for kind in ERRORS}) == len(ERRORS)


def test_bad_input_names_the_field() -> None:
    error = TooLarge.at("payload", "at most 256 KiB")
    assert isinstance(error, TooLarge)
    assert error.detail == "payload: at most 256 KiB"
    assert error.errors == (FieldError("payload", "at most 256 KiB"),)
    assert BadInput("no JSON").errors == ()


def test_unavailable_says_when_to_try_again_and_whether_the_fate_is_known() -> None:
    known, unknown = Unavailable("down"), Unavailable("cut off", fate_unknown=True, retry_after=5)
    assert (known.fate_unknown, known.retry_after) == (False, 1)
    assert (unknown.fate_unknown, unknown.retry_after) == (True, 5)
