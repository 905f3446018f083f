"""`foliot completion`: the shell's own completion, made by click."""

import click

from foliot.cli.tree import Command, main


@click.command(
    cls=Command,
    examples="""
    eval "$(foliot completion bash)"
    foliot completion fish > ~/.config/fish/completions/foliot.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that makes a shell complete Foliot's commands and options."""
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    assert maker is not None
    click.echo(maker(main, {}, "foliot", "_FOLIOT_COMPLETE").source())
