"""`foliot doctor`: what is wrong here, and what to do about it."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from foliot.cli.connection import find_connection, with_options
from foliot.cli.exits import FAILED, NO_NODE, OK
from foliot.cli.show import console, json_option, one_line, print_json
from foliot.cli.tree import Command

if TYPE_CHECKING:
    from foliot.cli.finding import Finding

STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}
OF_NO_NODE = frozenset(("node", "key"))


@click.command(
    cls=Command,
    examples="""
    foliot doctor
    foliot doctor --url https://foliot.example.org --key fk_… --json
    """,
)
@json_option
@with_options
@click.pass_context
def doctor(ctx: click.Context, /, as_json: bool, url: str | None, key: str | None, data_dir: str | None) -> None:
    """Look for what is wrong with a node, with what it works on, and with the settings here.

    Each line says ok, warn or fail, and what to do next. It ends with 0 where nothing failed, warnings or not; with 5
    where the node is not there, or does not take the key; with 1 where anything else failed.
    """
    found = _look(url, key, data_dir)
    if as_json:
        print_json({"status": _worst(found), "checks": found})
    else:
        _show(found)
    failed = {each.name for each in found if each.status == "fail"}
    ctx.exit(OK if not failed else NO_NODE if failed <= OF_NO_NODE else FAILED)


def _look(url: str | None, key: str | None, data_dir: str | None) -> "list[Finding]":
    import asyncio

    from foliot.cli.exits import failure_of
    from foliot.cli.finding import fail
    from foliot.cli.local_checks import check_certificate_files, check_disk, check_settings
    from foliot.cli.node_checks import check_node
    from foliot.cli.times import read_clock
    from foliot.settings import SettingsError, load_settings

    try:
        settings = load_settings({"url": url, "data_dir": data_dir})
        found = [*check_settings(os.environ), *check_disk(settings)]
        found += check_certificate_files(settings, read_clock())
    except SettingsError as error:
        return [fail("settings", str(error), "set it right; docs/reference/settings.md lists all there are")]
    try:
        return found + asyncio.run(check_node(find_connection(url, key, data_dir)))
    except click.ClickException as error:
        return [*found, fail("key", error.message, "give one with --key or FOLIOT_KEY")]
    except Exception as error:
        known = failure_of(error)
        if known is None:
            raise
        return [*found, fail("node", known.message, "set it right, then try again")]


def _worst(found: "Sequence[Finding]") -> str:
    return next((status for status in ("fail", "warn") if any(each.status == status for each in found)), "ok")


def _show(found: "Sequence[Finding]") -> None:
    from rich.text import Text

    out = console()
    wide = max(len(each.name) for each in found)
    for each in found:
        line = Text(f"{each.status:<4}  ", STYLES[each.status])
        line.append(f"{each.name:<{wide}}  ", "bold")
        line.append(one_line(each.detail))
        out.print(line, soft_wrap=True)
        if each.todo:
            out.print(Text(f"{'':<{wide + 8}}→ {one_line(each.todo)}"), soft_wrap=True)
    counts = [f"{sum(each.status == status for each in found)} {status}" for status in STYLES]
    out.print(Text(", ".join(counts), "bold"))
