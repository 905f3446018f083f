"""Answers on the screen: JSON for programs, tables for people."""

import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from foliot.wire import ProgressInfo

# Colours that click and rich know by the same name.
STATUS_STYLES = {
    "scheduled": "cyan",
    "blocked": "magenta",
    "queued": "blue",
    "running": "yellow",
    "retrying": "bright_yellow",
    "paused": "magenta",
    "completed": "green",
    "failed": "red",
    "cancelled": "bright_black",
    "cancelling": "yellow",
    "success": "green",
    "retriable_failure": "red",
    "fatal_failure": "red",
    "timed_out": "red",
    "alive": "green",
    "draining": "yellow",
    "lost": "red",
    "active": "green",
    "ended": "bright_black",
    "revoked": "bright_black",
    "ran": "green",
    "caught_up": "cyan",
    "backfilled": "cyan",
    "skipped": "yellow",
    "missed": "red",
    "expired": "red",
    "waiting": "blue",
    "open": "red",
    "acknowledged": "yellow",
    "silenced": "bright_black",
    "resolved": "green",
    "pending": "blue",
    "delivered": "green",
    "failing": "red",
    "off": "bright_black",
}
LEVEL_STYLES = {"DEBUG": "bright_black", "INFO": "blue", "WARNING": "yellow", "ERROR": "red"}
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_BREAKING = re.compile("[\t\n]")
NOT_A_TERMINAL = 100_000  # columns: a table in a pipe or a file is cut nowhere

json_option = click.option("--json", "as_json", is_flag=True, help="Print the API's JSON instead.")


def print_json(value: Any) -> None:
    """A value of `foliot.wire` as the API has it: indented for a terminal, in one line for a pipe."""
    import msgspec

    text = msgspec.json.encode(value)
    click.echo(msgspec.json.format(text, indent=2) if sys.stdout.isatty() else text)


def console(*, stderr: bool = False) -> "Console":
    """Where tables go. Colours only on a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else NOT_A_TERMINAL
    return Console(file=stream, width=width, highlight=False, markup=False, emoji=False)


def table(columns: Sequence[str], rows: Sequence[Sequence["str | Text"]]) -> "Table":
    """A plain table without the columns that are empty in every row. The first, an id to copy, is never cut. Whatever
    a cell says, it stays in its row."""
    from rich.table import Table

    rows = [[one_line(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    shown = [position for position in range(len(columns)) if any(len(row[position]) for row in rows)]
    for position in shown:
        whole = max(len(row[position]) for row in rows) if position == 0 else None
        made.add_column(columns[position], no_wrap=True, overflow="ellipsis", min_width=whole)
    for row in rows:
        made.add_row(*(row[position] for position in shown))
    return made


def print_table(columns: Sequence[str], rows: Sequence[Sequence["str | Text"]], *, empty: str) -> None:
    """A table, or one line on stderr where there is nothing to show."""
    if rows:
        console().print(table(columns, rows))
    else:
        click.echo(empty, err=True)


def print_fields(fields: Iterable[tuple[str, "str | Text | None"]]) -> None:
    """Name and value, one to a line; what is None is left out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in fields:
        if value is not None:
            grid.add_row(one_line(name), plain(value) if isinstance(value, str) else value)
    console().print(grid)


def status_text(status: str) -> "Text":
    from rich.text import Text

    return Text(status, STATUS_STYLES.get(status, ""))


def plain(text: str) -> str:
    """A job's own text without what would drive the terminal: colours dropped, control characters shown as escapes."""
    return _CONTROL.sub(lambda match: repr(match[0])[1:-1], click.unstyle(text))


def one_line(text: str) -> str:
    """As `plain`, and without what would break a line, or turn it around."""
    return _BREAKING.sub(lambda match: repr(match[0])[1:-1], plain(text))


def some(names: Sequence[str], most: int, total: int | None = None) -> str:
    """The first of them, and how many there are besides; `total` where `names` are not all."""
    more = (len(names) if total is None else total) - min(len(names), most)
    shown = ", ".join(names[:most])
    return f"{shown} and {more:,} more" if shown and more > 0 else shown


def amounts_text(amounts: Mapping[str, float]) -> str:
    """Resources by name, whole numbers without a fraction."""
    return ", ".join(f"{name}={amount:,.3f}".rstrip("0").rstrip(".") for name, amount in amounts.items())


def count_text(number: int, noun: str = "job") -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def bar(share: float, width: int = 10) -> str:
    """How full something is; a little is shown as one part."""
    full = math.ceil(min(max(share, 0), 1) * width)
    return "█" * full + "░" * (width - full)


def progress_text(progress: "ProgressInfo | None") -> str:
    if progress is None:
        return ""
    value = "" if progress.value is None else f"{bar(progress.value, 8)} {progress.value:4.0%}"
    return f"{value} {plain(progress.note or '')}".strip()
