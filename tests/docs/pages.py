"""The pages that people read, and what a test wants of them: blocks of code, commands, links."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click

from foliot.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ADDRESS = "http://127.0.0.1:7070"  # what the pages call a node; a test puts its own in

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_ENDS = {"<", ">", "|", "&", "||", "&&"}
_COMMAND = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(foliot .+)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    return [text for kind, text in _FENCE.findall((ROOT / page).read_text()) if kind == language]


def links(page: Path) -> list[str]:
    """Where a page leads to; what only looks like a link inside a block of code is none."""
    return _LINK.findall(_FENCE.sub("", page.read_text()))


def commands(page: Path) -> Iterator[list[str]]:
    """The words of every `foliot …` that a page tells its reader to type."""
    for kind, text in _FENCE.findall(page.read_text()):
        if kind == "sh":
            for line in _COMMAND.findall(text.replace("\\\n", " ")):
                words = shlex.split(line, comments=True)[1:]
                yield words[: next((place for place, word in enumerate(words) if word in _ENDS), None)]


def make_targets(page: Path) -> list[str]:
    """What a page says after `make`, in blocks and in the text."""
    return re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(), re.MULTILINE)


def bench_options(page: Path) -> list[list[str]]:
    """What every `make bench` with options hands on."""
    found = re.findall(r"^make bench ARGS=([^#\n]+)", page.read_text(), re.MULTILINE)
    return [shlex.split(shlex.split(options)[0]) for options in found]


def understand(words: list[str]) -> None:
    """Parse a command as it would be, without carrying it out; a wrong name, option or value raises."""
    command: click.Command = main
    context = command.make_context("foliot", words.copy())
    while isinstance(command, click.Group):
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        context = found.make_context(name, rest, parent=context)
        command = found
