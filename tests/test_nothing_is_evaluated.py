"""What comes from outside is read as data: no line of the product unpickles, evaluates or hands text to a shell."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "foliot"
FILES = sorted(SOURCE.rglob("*.py"))
MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "code", "pty"}
BUILT_IN = {"eval", "exec", "compile", "__import__"}
MEMBERS = {
    ("os", "system"),
    ("os", "popen"),
    ("subprocess", "getoutput"),
    ("subprocess", "getstatusoutput"),
    ("asyncio", "create_subprocess_shell"),
    ("builtins", "eval"),
    ("builtins", "exec"),
}


def dangers(source: str) -> Iterator[str]:
    """Every danger of a module, each as one word."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module.split(".")[0] in MODULES:
                    yield module
                yield from (f"{module}.{name.name}" for name in names if (module, name.name) in MEMBERS)
            case ast.Name(id=name) if name in BUILT_IN:
                yield name
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if (owner, name) in MEMBERS:
                yield f"{owner}.{name}"
            case ast.keyword(arg="shell", value=value) if not (isinstance(value, ast.Constant) and not value.value):
                yield "shell="
            case _:
                pass


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(SOURCE)))
def test_a_module_neither_unpickles_nor_evaluates(file: Path) -> None:
    assert list(dangers(file.read_text())) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "import marshal as m",
        "from pickle import loads",
        "import yaml; yaml.load(x)",
        "eval(x)",
        "f = exec",
        "__import__(x)",
        "import os; os.system(x)",
        "from os import popen",
        "run(x, shell=True)",
        "run(x, shell=flag)",
        "asyncio.create_subprocess_shell(x)",
    ],
)
def test_a_danger_would_be_found(line: str) -> None:
    assert list(dangers(line))


def test_what_is_harmless_is_left_alone() -> None:
    assert list(dangers("import re; re.compile(x); run(x, shell=False); evaluate(x); 'exec(x)'")) == []
