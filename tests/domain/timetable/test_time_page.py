"""The page on time says what happens: its examples are run."""

import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from foliot.domain.errors import BadInput
from foliot.domain.timetable.describe import describe
from foliot.domain.timetable.fields import parse_timetable
from foliot.domain.timetable.preview import preview
from foliot.domain.timetable.timetable import Timetable

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "explanation" / "time.md").read_text()
EXAMPLES = re.findall(r"^```json\n(.*?)\n```\n\n```text\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
REFUSED = re.findall(r"^\| `(\{.*?\})` \| (.*) \|$", PAGE, re.MULTILINE)


def micros(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp()) * 1_000_000


def timetable(text: str, created: int) -> Timetable:
    fields: dict[str, Any] = json.loads(text)
    times = {name: micros(value) for name, value in fields.items() if name in ("start_time", "end_time")}
    return parse_timetable(created=created, **{**fields, **times})


@pytest.mark.parametrize(("fields", "shown"), EXAMPLES, ids=[fields for fields, _ in EXAMPLES])
def test_an_example_runs_as_the_page_shows_it(fields: str, shown: str) -> None:
    when, words, *due = shown.splitlines()
    planned = timetable(fields, micros(when))
    assert describe(planned) == words
    rows = preview(planned, micros(when), len(due))
    assert [f"{row.local}  {row.note}" if row.note else row.local for row in rows] == due


@pytest.mark.parametrize(("fields", "message"), REFUSED, ids=[fields for fields, _ in REFUSED])
def test_what_the_page_says_is_refused(fields: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        timetable(fields, micros("2027-01-01T00:00:00Z"))
    assert caught.value.detail == message


def test_no_example_is_overlooked() -> None:
    assert len(EXAMPLES) == PAGE.count("```json") == PAGE.count("```text") >= 10
    assert len(REFUSED) == PAGE.count("| `{") >= 9
