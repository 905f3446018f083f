"""The page of settings is the settings."""

import re

import click
import msgspec
import pytest

from foliot.cli.serve import serve
from foliot.settings import PREFIX, Settings
from tests.docs.pages import ROOT

ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)
ROWS = {name: cells for name, *cells in ROW.findall((ROOT / "docs" / "reference" / "settings.md").read_text())}
FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}
IN_WORDS = {  # an empty string in the code means something that a reader is told instead
    "database": "SQLite in the data directory",
    "admin_key": "made on first start",
    "encryption_keys": "nothing is sealed",
    "url": "`http://host:port`",
    "resources": "only slots",
    "labels": "none",
    "oidc_issuer": "none",
    "oidc_audience": "the client id",
    "oidc_client_id": "none",
    "oidc_client_secret": "none",
    "oidc_roles": "none",
    "allow_command": "none",
    "command_user": "the worker's own",
    "http_allow": "nothing else",
    "tls_cert": "no TLS",
    "tls_key": "none",
    "tls_client_ca": "none",
    "ca_file": "whom the system trusts",
    "client_cert": "none",
    "client_key": "none",
    "otlp_endpoint": "no traces",
}


def options() -> dict[str, str]:
    """How the command line spells each setting."""
    return {
        str(option.name): " ".join(f"`{spelling}`" for spelling in [*option.opts, *option.secondary_opts])
        for option in serve.params
        if isinstance(option, click.Option)
    }


def test_every_setting_has_its_row_in_the_order_of_the_code() -> None:
    assert list(ROWS) == list(FIELDS)


@pytest.mark.parametrize("name", FIELDS)
def test_a_row_is_true(name: str) -> None:
    variable, option, default, meaning = ROWS[name]
    value = FIELDS[name].default
    shown = (
        IN_WORDS[name]
        if value == ""
        else f"`{value if isinstance(value, str) else msgspec.json.encode(value).decode()}`"
    )
    assert (variable, option, default) == (f"`{PREFIX}{name.upper()}`", options().get(name, ""), shown)
    assert meaning
