"""The page on previews shows what its commands and calls print."""

import json
import re
from itertools import zip_longest

from tests.docs.pages import blocks
from tests.docs.shell import Reader

PAGE = "docs/how-to/preview-a-schedule.md"


def without_now(text: str) -> list[list[str]]:
    """The cells of each line but how long it is until then, which is another every day."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in text.strip().splitlines()]
    return [[cell for cell in line if not re.fullmatch(r"in \w+( \w+)?|\w+( \w+)? ago", cell)] for line in lines]


def test_the_commands_print_what_the_page_shows(reader: Reader) -> None:
    commands = [text for text in blocks(PAGE, "sh") if text.startswith("foliot ")]
    assert len(commands) == 3
    for command, shown in zip_longest(commands, blocks(PAGE, "text")):
        assert without_now(reader.type(command)) == without_now(shown)


def test_the_calls_are_answered_as_the_page_shows(reader: Reader) -> None:
    calls = [text for text in blocks(PAGE, "sh") if text.startswith("curl ")]
    assert len(calls) == 2
    for call, shown in zip_longest(calls, blocks(PAGE, "json")):
        assert json.loads(reader.type(call)) == json.loads(shown)
