"""A file of schedules: TOML with a `[[schedule]]` for each, its fields those of the API."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from foliot.cli.exits import WrongUse
from foliot.cli.show import count_text

if TYPE_CHECKING:
    from foliot.wire import ScheduleBody

_HEADER = re.compile(r"\s*\[\[\s*schedule\s*\]\]\s*(#.*)?")
_LONG_AGO = 0

Given = TypeVar("Given")
Made = TypeVar("Made")


class ScheduleFile:
    """The schedules of a file. All that is wrong with them is told at once, as `WrongUse`: by file, line, schedule and
    field."""

    def __init__(self, file: Path) -> None:
        """Reads it, and refuses what could not be a schedule at any time."""
        text = _read(file)
        self._file = file
        self._tables = _tables(file, text)
        self._places = _Places(text)
        self.bodies: list[ScheduleBody] = self._each(_body, self._tables)
        self._each(self._check_name, range(len(self.bodies)))

    def check(self, created: Mapping[str, int], now: int) -> None:
        """Refuse what a node would refuse, where those that are there were `created` at these times: one whose end has
        passed may stay, but can not be made anew."""
        self._each(lambda body: _check(body, created.get(body.schedule_id or "", now)), self.bodies)

    def _each(self, function: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
        """Something done to each of the schedules, or what was wrong with any of them."""
        from foliot.domain.errors import BadInput

        made: list[Made] = []
        faults: list[str] = []
        for position, each in enumerate(given):
            try:
                made.append(function(each))
            except BadInput as error:
                table = self._tables[position]
                name = table.get("schedule_id") if isinstance(table, dict) else None
                field = error.errors[0].field if error.errors else ""
                place = self._places.find(position, field) if self._places.count == len(self._tables) else ""
                faults.append(f"{self._file}{place}: schedule {name or position + 1}: {error.detail}")
        if faults:
            raise WrongUse("\n".join([*faults, f"{count_text(len(faults), 'mistake')}; nothing was changed"]))
        return made

    def _check_name(self, position: int) -> None:
        from foliot.domain.errors import BadInput

        name = self.bodies[position].schedule_id
        if any(body.schedule_id == name for body in self.bodies[:position]):
            raise BadInput.at("schedule_id", "taken by a schedule above; each needs its own")


def _read(file: Path) -> str:
    try:
        with click.open_file(str(file), "rb") as stream:
            return bytes(stream.read()).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{file} can not be read: {getattr(error, 'strerror', None) or error}") from None


def _tables(file: Path, text: str) -> list[Any]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise WrongUse(f"{file}: not valid TOML: {error}") from None
    tables = document.pop("schedule", [])
    if document:
        raise WrongUse(
            f"{file}: there is no {min(document)!r} here; a schedule's fields stand below a [[schedule]] line"
        )
    if not isinstance(tables, list):
        raise WrongUse(f"{file}: write [[schedule]] with two brackets, once for each schedule")
    return tables


def _body(table: Any) -> "ScheduleBody":
    """A table as the API's body."""
    import msgspec

    from foliot.api.messages import explain
    from foliot.domain.errors import BadInput
    from foliot.wire import ScheduleBody

    try:
        # Through JSON, so that TOML's own times and dates become the API's text.
        body = msgspec.json.decode(msgspec.json.encode(table), type=ScheduleBody)
    except (msgspec.DecodeError, RecursionError) as error:
        raise explain(error, ScheduleBody) from None
    if body.schedule_id is None:
        raise BadInput.at("schedule_id", "is required in a file, so that the schedule is found again")
    _check(body, _LONG_AGO)
    return body


def _check(body: "ScheduleBody", created: int) -> None:
    import msgspec

    from foliot.domain.access import ADMIN
    from foliot.domain.errors import BadInput
    from foliot.domain.ids import JobKey
    from foliot.service.job_fields import lane_of, parse_job, within
    from foliot.service.preview import timetable_of
    from foliot.wire import SubmitBody

    timetable_of(body, created)
    try:
        job = SubmitBody(**msgspec.structs.asdict(body.job))
        parse_job(job, JobKey(0), lane_of(job, ADMIN.namespace), 0, ADMIN, created)
    except BadInput as error:
        raise within(error, "job") from None


class _Places:
    """Where in the text schedules and their fields stand. TOML can be written in more ways than are understood here:
    only where `count` is the number of schedules can it be relied on."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._headers = [number for number, line in enumerate(self._lines) if _HEADER.fullmatch(line)]
        self.count = len(self._headers)

    def find(self, position: int, field: str) -> str:
        """`:12`, the line of the field where there is one, else that of the schedule."""
        first, last = (*self._headers, len(self._lines))[position : position + 2]
        name = re.escape(field.rpartition(".")[2].partition("[")[0])
        key = re.compile(rf"""\s*([\w.]+\.)?["']?{name}["']?\s*=""")
        found = (number for number in range(first, last) if name and key.match(self._lines[number]))
        return f":{next(found, first) + 1}"
