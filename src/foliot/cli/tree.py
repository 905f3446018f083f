"""The commands as a tree: which there are, where each lives, and how help is laid out."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click

from foliot.cli.exits import INTERRUPTED, MEANINGS, failure_of

# In the order in which somebody new needs them. A module is imported when its command is asked for.
COMMANDS = {
    "serve": "foliot.cli.serve",
    "worker": "foliot.cli.worker",
    "submit": "foliot.cli.submit",
    "jobs": "foliot.cli.jobs",
    "why": "foliot.cli.why",
    "watch": "foliot.cli.watch",
    "schedules": "foliot.cli.schedules",
    "apply": "foliot.cli.apply",
    "top": "foliot.cli.top",
    "lateness": "foliot.cli.lateness",
    "cron": "foliot.cli.cron",
    "forecast": "foliot.cli.forecast",
    "queues": "foliot.cli.queues",
    "types": "foliot.cli.types",
    "limits": "foliot.cli.limits",
    "workers": "foliot.cli.workers",
    "nodes": "foliot.cli.nodes",
    "doctor": "foliot.cli.doctor",
    "alerts": "foliot.cli.alerts",
    "incidents": "foliot.cli.incidents",
    "channels": "foliot.cli.channels",
    "webhooks": "foliot.cli.webhooks",
    "login": "foliot.cli.login",
    "whoami": "foliot.cli.whoami",
    "keys": "foliot.cli.keys",
    "namespaces": "foliot.cli.namespaces",
    "audit": "foliot.cli.audit",
    "migrate": "foliot.cli.migrate",
    "completion": "foliot.cli.completion",
    "version": "foliot.cli.version",
}


class _Examples(click.Command):
    """A command whose help ends with commands to copy."""

    def __init__(self, *args: Any, examples: str = "", **rest: Any) -> None:
        rest.setdefault("context_settings", {})["help_option_names"] = ["-h", "--help"]
        super().__init__(*args, **rest)
        self.examples: Sequence[str] = tuple(line.strip() for line in examples.strip().splitlines())

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{' ' * formatter.current_indent}{line}\n")
        super().format_epilog(ctx, formatter)


class Command(_Examples):
    pass


class Group(_Examples, click.Group):
    """Its commands under the names they have, and under `aliases`, which help does not list. Without a command's name
    it is `default`, so that `foliot workers --json` does what it says."""

    command_class = Command
    group_class = type

    def __init__(
        self, *args: Any, aliases: Mapping[str, str] | None = None, default: str | None = None, **rest: Any
    ) -> None:
        super().__init__(*args, **rest)
        self._aliases = aliases or {}
        self._default = default

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, self._aliases.get(cmd_name, cmd_name))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (not args[0].startswith("-") or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named or self._default is None else [self._default, *args])


class Root(Group):
    """The program itself: finds a command's module by name, and tells the exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = getattr(importlib.import_module(COMMANDS[cmd_name]), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"the commands are {', '.join(COMMANDS)}"
            raise click.UsageError(f"There is no command '{args[0]}'; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo(err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            raise failure from None

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in MEANINGS.items()])


@click.command(
    cls=Root,
    examples="""
    foliot serve
    foliot submit echo '{"message": "hello"}' --wait
    foliot jobs ls --status failed
    foliot top
    """,
)
def main() -> None:
    """Foliot, a distributed job scheduler.

    Start a node with 'foliot serve', hand in jobs with 'foliot submit', watch them with 'foliot top'. The commands that
    ask a node find it by --url or FOLIOT_URL, else on this machine, whose key they find by themselves.
    """
