"""The audit log as a file: a line of JSON or of CSV for each entry."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from foliot.cli.exits import Failed

if TYPE_CHECKING:
    from foliot.wire import AuditInfo

# What a spreadsheet takes for the begin of a formula; the last four are the wide forms of the first four.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", *"\uff1d\uff0b\uff0d\uff20")


def ndjson_row(entry: "AuditInfo") -> bytes:
    import msgspec

    return msgspec.json.encode(entry) + b"\n"


def csv_row(entry: "AuditInfo | None") -> bytes:
    """A line; for None the one with the names. Every cell is quoted, so that a program that cuts at another character
    than the comma does not find the begin of a formula inside one."""
    import csv
    import io

    import msgspec

    from foliot.wire import AuditInfo

    cells = AuditInfo.__struct_fields__ if entry is None else msgspec.to_builtins(entry).values()
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow("" if each is None else harmless(str(each)) for each in cells)
    return line.getvalue().encode()


def harmless(cell: str) -> str:
    """A text that no spreadsheet carries out."""
    return f"'{cell}" if cell.lstrip(" ").startswith(FORMULA_STARTS) else cell


@contextmanager
def written(path: str) -> Iterator[IO[bytes]]:
    """Where to write; `-` is stdout. A file is replaced at the end, so that it is all there or as it was before."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.flush()
        return
    file = Path(path).resolve()
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        if file.exists() and not file.is_file():  # a pipe or a device: nothing that could be replaced
            with file.open("wb") as out:
                yield out
            return
        try:
            with draft.open("xb") as out:
                yield out
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise Failed(f"{path} can not be written: {error.strerror or error}") from None
