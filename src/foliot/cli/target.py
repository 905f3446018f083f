"""The app that `module:attribute` names."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from foliot.cli.exits import WrongUse

if TYPE_CHECKING:
    from foliot.sdk.app import Foliot


def load_app(target: str) -> "Foliot":
    """The app, with the current directory importable, as it is for a program that is started there."""
    module_name, _, attribute = target.partition(":")
    attribute = attribute or "app"
    if not all(part.isidentifier() for part in (*module_name.split("."), *attribute.split("."))):
        raise WrongUse(f"{target!r} names no app; write module:attribute, as in myapp:app")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _import(module_name, here)
    found: Any = module
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise WrongUse(f"{module_name} has no {attribute!r}{_hint(module)}")
        found = getattr(found, name)
    from foliot.sdk.app import Foliot

    if not isinstance(found, Foliot):
        raise WrongUse(f"{target} is of type {type(found).__name__}, not a Foliot app{_hint(module)}")
    return found


def _import(name: str, here: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if f"{name}.".startswith(f"{missing}."):
            raise WrongUse(f"there is no module {missing!r}, neither in {here} nor installed") from None
        raise WrongUse(f"{name} needs the module {missing!r}, which is not installed here") from None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        where = f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else name
        if isinstance(error, SyntaxError):
            where = f"{error.filename}, line {error.lineno}"
        raise WrongUse(f"{name} can not be imported: {type(error).__name__}: {error} ({where})") from None


def _hint(module: ModuleType) -> str:
    """The apps that the module does have."""
    from foliot.sdk.app import Foliot

    found = [name for name, value in vars(module).items() if isinstance(value, Foliot)]
    return f"; did you mean {module.__name__}:{found[0]}?" if found else "; make one with: app = Foliot()"
