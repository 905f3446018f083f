"""How to give access: every line of the page is typed, and does what it says."""

import csv
import re
from typing import Any

import pytest

from foliot import Client, Foliot
from foliot.domain.access import MATRIX
from foliot.domain.credential import parse_key
from tests.docs.pages import ROOT, blocks
from tests.docs.shell import Reader

PAGE = "docs/how-to/give-access.md"


def test_the_pages_roles_are_those_of_the_domain() -> None:
    head, _, *rows = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in re.findall(r"^\|.*\|$", (ROOT / PAGE).read_text().partition("## Narrow")[0], re.MULTILINE)
    ]
    told = {role: {name for name, cell in zip(head[1:], cells, strict=True) if cell} for role, *cells in rows}
    assert told == {role: {*may} - {"none", "known"} for role, may in MATRIX.items()}


def test_every_command_of_the_page_does_what_it_says(reader: Reader) -> None:
    make, narrow, rotate, revoke, namespaces, login, audit = blocks(PAGE, "sh")
    at_node = f"export FOLIOT_URL={reader.url}\n"
    with reader.client() as client:
        assert "key from   FOLIOT_KEY" in reader.type(at_node + make)
        found = {each.name: each for each in client.all_keys()}
        assert {name: each.role for name, each in found.items()} == {"ci": "submitter", "mailer": "worker"}
        narrowed = reader.type(at_node + narrow)
        assert narrowed.splitlines()[-1] == "not with this key"
        assert "seen" in narrowed
        assert "active" in reader.type(at_node + rotate)
        new = (reader.folder / "ci.key").read_text().strip()
        with Client(reader.url, new) as ci:
            assert ci.whoami().name == "ci"
        assert "ci revoked" in reader.type(at_node + revoke)
        assert "1,000" in reader.type(at_node + namespaces)
        with Client(reader.url, (reader.folder / "boss.key").read_text().strip()) as boss:
            assert boss.get("theirs").job_id == "theirs"
            assert {each.name for each in boss.all_keys()} == {"boss", "shop"}
        assert reader.type(at_node + login).startswith(f"{reader.url}/login?code=")
        assert "the chain is whole" in reader.type(at_node + audit)
        with (reader.folder / "audit.csv").open(newline="") as file:
            assert {"admin", "boss"} <= {entry["actor"] for entry in csv.DictReader(file)}


def test_the_pages_python_makes_a_key_and_reads_the_log(reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks(PAGE, "python")
    app = Foliot(reader.url, reader.key)
    names: dict[str, Any] = {"app": app}
    try:
        exec(program, names)
        printed, entry = capsys.readouterr().out.splitlines()
        key_id, key = printed.split()
        assert parse_key(key) is not None
        assert app.client.key(key_id).queues == ["reports"]
        assert "admin POST /api/v1/api-keys" in entry
    finally:
        app.close()
