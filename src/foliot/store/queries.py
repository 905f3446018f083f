"""Named SQL: a file holds queries, each under a line `-- name: the_name`, with a comment that says what it is for."""

import re
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)[ \t]*$", re.MULTILINE)


def load_queries(dialect: str) -> dict[str, str]:
    """All queries of `sql/<dialect>/*.sql`, by name (migrations, in a folder of their own, are not among them)."""
    found: dict[str, str] = {}
    for file in resources.files("foliot.store").joinpath("sql", dialect).iterdir():
        if file.name.endswith(".sql"):
            _, *parts = _NAME.split(file.read_text("utf-8"))
            for name, text in zip(parts[::2], parts[1::2], strict=True):
                if name in found:
                    raise ValueError(f"two queries are named {name}")
                found[name] = text.strip().rstrip(";")
    return found
