"""`foliot migrate`: the database's schema."""

from pathlib import Path
from typing import Any

import click

from foliot.cli.exits import FAILED, Failed
from foliot.cli.serve import settings_options
from foliot.cli.tree import Command


@click.command(
    cls=Command,
    examples="""
    foliot migrate --status
    foliot migrate --database postgresql://foliot@db/foliot
    """,
)
@settings_options("database", "data_dir", "config")
@click.option("--status", is_flag=True, help="Only tell which steps the database has taken and which are to come.")
@click.pass_context
def migrate(ctx: click.Context, /, config: Path | None, status: bool, **given: Any) -> None:
    """Bring the database's schema to this version.

    Steps that were taken are never taken again, so it is safe to run before every start. With --status it ends with 1
    where steps are still to be taken.
    """
    from foliot.settings import load_settings

    settings = load_settings(given, file=config)
    import asyncio

    from foliot import main
    from foliot.domain.errors import FoliotError
    from foliot.main.schema import read_schema

    try:
        if status:
            taken, missing = asyncio.run(read_schema(settings.store_url))
            for step in taken:
                click.echo(f"{step.number:04} {step.name}: taken")
            for step in missing:
                click.echo(f"{step.number:04} {step.name}: to come")
            ctx.exit(FAILED if missing else 0)
        applied = main.migrate(settings)
    except FoliotError as error:
        raise Failed(error.detail) from None
    for name in applied:
        click.echo(f"applied {name}")
    if not applied:
        click.echo("the schema is up to date")
