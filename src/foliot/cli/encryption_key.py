"""`foliot keys new-encryption-key`: a key for the setting encryption_keys."""

import click

from foliot.cli.tree import Command


@click.command(
    "new-encryption-key",
    cls=Command,
    examples="""
    export FOLIOT_ENCRYPTION_KEYS=$(foliot keys new-encryption-key)
    """,
)
def new_encryption_key() -> None:
    """Print a new key with an id, as the setting encryption_keys takes it. It is kept nowhere else."""
    import secrets
    from base64 import b64encode

    click.echo(f"k{secrets.token_hex(4)}:{b64encode(secrets.token_bytes(32)).decode()}")
