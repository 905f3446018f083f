"""No regular expression of the package takes longer than the length of its text calls for, whatever the text is."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foliot
from foliot.api.app import shape
from foliot.api.routes import ROUTES
from tests.linear_pattern import why_not_linear

SOURCE = Path(foliot.__file__).parent
ANYWHERE = {"search", "sub", "subn", "split", "findall", "finditer"}
FROM_THE_START = {"compile", "match", "fullmatch"}


@pytest.mark.parametrize(
    ("pattern", "anywhere"),
    [
        (r"(a+)+\Z", False),
        (r"(a*)*b", False),
        (r"(ab|ab?)*c", False),
        (r"(a|b|ab)*c", False),
        (r"(\w+\s?)*\Z", False),
        (r"a*a*b", False),
        (r".*,.*\Z", False),
        (r"\s+b?\s+c", False),
        (r"(\w|\d\d)+!", False),
        (r"\b.+ +\Z", True),
        (r"x\d+(\d|a)*b", False),
        (r"a+b", True),
        (r" +\Z", True),
        (r"(?=(a+)+b)a", False),
    ],
)
def test_what_is_slow_is_found(pattern: str, anywhere: bool) -> None:
    assert why_not_linear(re.compile(pattern), anywhere=anywhere)


@pytest.mark.parametrize(
    ("pattern", "anywhere"),
    [
        (r"a+b", False),
        (r"^a+b", True),
        (r"[a-z]+\.[A-Z]+", False),
        (r'"(?:[^"\\]|\\.)*"', False),
        (r"(?:a[bc])*d", False),
        (r"\s*=\s*[a-z]+", False),
        (r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", False),
        (r"`[^`]*`", True),
        (r"\bcat\b", True),
        (r"\b\d+th", True),
        (r"[^,\s]+\s*,", False),
        (r"(?<=x=)[^&]*", True),
        (r"^a+b|[^&]*", True),
    ],
)
def test_what_is_not_is_not(pattern: str, anywhere: bool) -> None:
    assert why_not_linear(re.compile(pattern), anywhere=anywhere) == ""


def written() -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """Those that stand in the source as a call of `re`, and those by which the wire's types are checked."""
    for file in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(file.read_text())
        searched = {
            node.func.value.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr in ANYWHERE
        }
        named = {
            id(node.value): target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            where = f"{file.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re"), attr=called), args=[ast.Constant(value=text), *_]
                ) if called in ANYWHERE | FROM_THE_START:
                    flags = re.DOTALL if "DOTALL" in ast.unparse(node) else re.NOFLAG
                    anywhere = called in ANYWHERE or named.get(id(node), "") in searched
                    yield where, re.compile(text, flags), anywhere
                case ast.keyword(arg="pattern", value=ast.Constant(value=str(text))):
                    yield where, re.compile(text), True


def loaded() -> Iterator[tuple[str, re.Pattern[Any], bool]]:
    """Those that modules keep under a name, which may be put together from parts; and those of the paths."""
    for found in pkgutil.walk_packages(foliot.__path__, "foliot."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                text = Path(str(module.__file__)).read_text()
                yield f"{found.name}.{name}", value, any(f"{name}.{call}(" in text for call in ANYWHERE)
    for path in sorted({route.path for route in ROUTES if "{" in route.path}):
        yield path, shape(path), False


@pytest.mark.parametrize(("pattern", "anywhere"), [pytest.param(*rest, id=where) for where, *rest in written()])
def test_a_written_pattern_is_linear(pattern: re.Pattern[Any], anywhere: bool) -> None:
    assert why_not_linear(pattern, anywhere=anywhere) == ""


@pytest.mark.parametrize(("pattern", "anywhere"), [pytest.param(*rest, id=where) for where, *rest in loaded()])
def test_a_loaded_pattern_is_linear(pattern: re.Pattern[Any], anywhere: bool) -> None:
    assert why_not_linear(pattern, anywhere=anywhere) == ""
