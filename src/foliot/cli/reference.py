"""The reference page of the command line, made from the commands themselves:

python -m foliot.cli.reference > docs/reference/cli.md
"""

import inspect
from collections.abc import Iterator

import click

from foliot.cli.exits import MEANINGS
from foliot.cli.tree import main

HEAD = """# The command line

Made from the commands' own help by `python -m foliot.cli.reference`; a test fails when it is stale.

Every command that asks a node finds it by `--url`, else `FOLIOT_URL`, else at the address of this machine's settings;
and its key by `--key`, else `FOLIOT_KEY`, else `FOLIOT_ADMIN_KEY`, else, for a node on this machine, in `admin.key` in
the data directory. Reading commands print tables for people and, with `--json`, the API's JSON for programs.

## Exit codes

| code | meaning |
|---|---|
"""


def walk(
    command: click.Command = main, parent: click.Context | None = None, name: str = "foliot"
) -> Iterator[click.Context]:
    """A context for every command, a group before its commands."""
    context = click.Context(command, parent=parent, info_name=name, **command.context_settings)
    yield context
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from walk(found, context, child)


def render() -> str:
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in MEANINGS.items())
    return f"{HEAD}{codes}\n" + "\n".join(_section(context) for context in walk() if context.parent)


def _section(context: click.Context) -> str:
    command = context.command
    depth = "#" * len(context.command_path.split())
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"{depth} {context.command_path}", _prose(command.help or ""), f"```\n{usage}\n```"]
    options = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option)
        and "--help" not in parameter.opts
        and (record := parameter.get_help_record(context))
    ]
    if options:
        rows = "".join(f"| `{_cell(names)}` | {_cell(text)} |\n" for names, text in options)
        parts.append(f"| option | meaning |\n|---|---|\n{rows}".rstrip())
    examples = "\n".join(getattr(command, "examples", ()))
    parts.append(f"For example:\n\n```sh\n{examples}\n```")
    return "\n\n".join(parts) + "\n"


def _prose(text: str) -> str:
    """A help text, what click keeps as it is written (behind a `\\b`) as one fenced block."""
    lines: list[str] = []
    fenced = False
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        kept = paragraph.startswith("\b\n")
        if kept != fenced:
            lines.append("\n```toml" if kept else "```\n")
        elif lines:
            lines.append("")
        lines.append(paragraph.removeprefix("\b\n"))
        fenced = kept
    return "\n".join([*lines, "```"] if fenced else lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("  ", " ")


if __name__ == "__main__":
    click.echo(render(), nl=False)
