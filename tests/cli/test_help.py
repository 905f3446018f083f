"""Every command explains itself, and the reference page is what the commands say."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from foliot.cli import main
from foliot.cli.exits import MEANINGS
from foliot.cli.filters import STATUSES
from foliot.cli.reference import render, walk
from foliot.cli.tree import COMMANDS
from foliot.domain import status

ROOT = Path(__file__).resolve().parents[2]
PATHS = [context.command_path.split()[1:] for context in walk()]
EXAMPLES = [example for context in walk() for example in getattr(context.command, "examples", ())]


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_a_command_has_help_that_ends_with_an_example(path: list[str]) -> None:
    shown = CliRunner().invoke(main, [*path, "--help"])
    assert shown.exit_code == 0
    assert " ".join(["foliot", *path]) in shown.output.partition("Examples:\n")[2]
    assert CliRunner().invoke(main, [*path, "-h"]).output == shown.output


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_understood(example: str) -> None:
    """Parsed as it would be, not carried out: a wrong option or value in an example fails here."""
    if inside := re.search(r"\$\((.*)\)", example):
        example = inside[1]
    words = shlex.split(example.partition(" | ")[0].partition(" < ")[0].partition(" > ")[0])
    assert words.pop(0) == "foliot"
    command: click.Command = main
    context = command.make_context("foliot", words.copy()) if words else None
    while isinstance(command, click.Group) and context is not None:
        name, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        assert found is not None
        assert name is not None
        context = found.make_context(name, rest, parent=context)
        command = found


def test_the_reference_page_is_what_the_commands_say() -> None:
    page = ROOT / "docs" / "reference" / "cli.md"
    assert page.read_text() == render(), "stale; run: python -m foliot.cli.reference > docs/reference/cli.md"


def test_help_lists_every_command_and_exit_code() -> None:
    shown = CliRunner().invoke(main, ["--help"]).output
    assert [line.split()[0] for line in shown.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()] == list(
        COMMANDS
    )
    for code in MEANINGS:
        assert f"\n  {code} " in shown.partition("Exit codes:")[2]


def test_help_and_version_load_nothing_heavy() -> None:
    heavy = ["aiohttp", "asyncpg", "msgspec", "rich", "uvicorn", "asyncio", "sqlite3", "holidays"]
    code = (
        "import sys; from foliot.cli import main\n"
        "main(['version'], standalone_mode=False)\n"
        "for words in [], ['serve'], ['jobs'], ['why'], ['cron'], ['schedules', 'create'], ['apply'], ['limits'], \\\n"
        "    ['queues', 'set'], ['types'], ['keys', 'create'], ['namespaces'], ['audit', 'export'], \\\n"
        "    ['login'], ['whoami'], ['watch'], ['alerts', 'set'], ['incidents'], ['channels', 'set'], \\\n"
        "    ['webhooks', 'add']:\n"
        "    main([*words, '--help'], standalone_mode=False)\n"
        f"print('loaded', [name for name in {heavy} if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "loaded []"


def test_the_words_for_a_status_are_the_domains() -> None:
    assert set(STATUSES) == {"waiting", *status.STATUSES}


def test_a_mistyped_command_is_told_what_was_meant() -> None:
    shown = CliRunner().invoke(main, ["sbumit", "echo"])
    assert shown.exit_code == 2
    assert "did you mean 'submit'?" in shown.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    shown = CliRunner().invoke(main, ["completion", shell])
    assert shown.exit_code == 0
    assert "_FOLIOT_COMPLETE" in shown.output
