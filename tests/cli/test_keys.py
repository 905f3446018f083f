"""Keys on the command line, against a real node."""

import json
import re
from collections.abc import Callable

import pytest
from click.testing import Result

from foliot.cli.keys import ROLES
from foliot.domain import access
from foliot.domain.credential import parse_key
from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api

Run = Callable[..., Result]
ONCE = "the key is shown only this once: keep it now, where only who needs it can read it\n"


def made(foliot: Run, name: str, *words: str) -> str:
    shown = foliot("keys", "create", name, *words, "--quiet")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stderr == ""
    return shown.stdout.removesuffix("\n")


def test_the_roles_are_the_domains() -> None:
    assert ROLES == access.ROLES


def test_a_new_key_is_printed_alone_for_a_pipe_and_lets_its_holder_in(foliot: Run) -> None:
    key = made(foliot, "piped", "--role", "submitter", "--queue", "builds", "--queue", "mail", "--type", "build")
    assert parse_key(key) is not None
    shown = foliot("whoami", "--key", key)
    fields = dict(re.split(r"  +", line.strip(), maxsplit=1) for line in shown.stdout.splitlines())
    assert fields["name"] == "piped"
    assert fields["role"] == "submitter"
    assert fields["may"] == "known, read, submit"
    assert fields["reaches"] == "queues builds, mail; type build"
    assert fields["key from"] == "--key"
    assert json.loads(foliot("whoami", "--key", key, "--json").stdout)["queues"] == ["builds", "mail"]


def test_a_person_is_told_that_a_new_key_is_shown_only_once(foliot: Run) -> None:
    shown = foliot("keys", "create", "told", "--role", "viewer", "--expires", "2100-06-15T12:00:00Z")
    assert shown.stderr == ONCE
    assert "2100-06-15" in shown.stdout
    (key,) = [line for line in shown.stdout.splitlines() if parse_key(line)]
    again = foliot("keys", "show", "told")
    _, secret = parse_key(key) or ("", "")
    assert secret not in again.stdout
    assert "2100-06-15" in again.stdout


def test_a_new_key_in_json_is_the_apis_answer(foliot: Run, node: ServedNode) -> None:
    answer = json.loads(foliot("keys", "create", "as-json", "--role", "operator", "--json").stdout)
    assert parse_key(answer.pop("key")) is not None
    assert answer == api(node, f"/api-keys/{answer['key_id']}")
    assert foliot("keys", "create", "x", "--role", "viewer", "--json", "--quiet").exit_code == 2


def test_keys_are_listed_with_how_they_stand(foliot: Run, node: ServedNode) -> None:
    used = made(foliot, "listed", "--role", "worker", "--queue", "mail")
    made(foliot, "gone", "--role", "viewer")
    assert foliot("keys", "revoke", "gone").stdout == "gone revoked\n"
    lines = {line.split()[1]: line.split() for line in foliot("keys", "list", "--all").stdout.splitlines()[1:]}
    key_id, _ = parse_key(used) or ("", "")
    assert lines["listed"] == [key_id, "listed", "worker", "default", "queue", "mail", "active", "never"]
    assert lines["gone"][4] == "revoked"
    assert json.loads(foliot("keys", "--all", "--json").stdout) == api(node, "/api-keys?limit=1000")


def test_a_rotated_key_is_good_with_both_secrets_for_the_overlap(foliot: Run) -> None:
    old = made(foliot, "rotated", "--role", "viewer")
    shown = foliot("keys", "rotate", "rotated", "--overlap", "2h")
    assert shown.stderr == ONCE + "the secret before is good for another 2h\n"
    (new,) = [line for line in shown.stdout.splitlines() if parse_key(line)]
    for key in (old, new):
        assert foliot("whoami", "--key", key).exit_code == 0
    last = foliot("keys", "rotate", "rotated", "--overlap", "0", "--quiet").stdout.strip()
    assert foliot("whoami", "--key", old).exit_code == 5
    assert foliot("whoami", "--key", last).exit_code == 0


def test_a_key_is_found_by_id_by_name_or_by_itself_without_its_secret_being_sent(foliot: Run, node: ServedNode) -> None:
    key = made(foliot, "found", "--role", "viewer")
    key_id, _ = parse_key(key) or ("", "")
    for named in (key_id, "found", key):
        assert json.loads(foliot("keys", "show", named, "--json").stdout)["key_id"] == key_id
    missing = foliot("keys", "show", "no-such-key")
    assert missing.exit_code == 4
    assert "no-such-key" in missing.stderr
    assert foliot("keys", "show", key.replace(key_id, "0" * 16)).exit_code == 4


def test_a_name_that_several_namespaces_have_is_told_with_the_ids(foliot: Run) -> None:
    foliot("namespaces", "create", "name-twice")
    ids = [
        parse_key(made(foliot, "twice", "--role", "viewer", "--namespace", namespace))
        for namespace in ("default", "name-twice")
    ]
    shown = foliot("keys", "revoke", "twice")
    assert shown.exit_code == 1
    for each in ids:
        assert each is not None
        assert each[0] in shown.stderr
        assert foliot("keys", "revoke", each[0]).exit_code == 0
    assert foliot("namespaces", "delete", "name-twice").exit_code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["create", "a b", "--role", "viewer"], "name"),
        (["create", "x", "--role", "viewer", "--namespace", "nowhere"], "nowhere"),
        (["create", "x", "--role", "viewer", "--expires", "-1h"], "expires"),
        (["create", "x", "--role", "king"], "king"),
        (["create", "x"], "--role"),
    ],
)
def test_a_key_that_can_not_be_meant_is_2(foliot: Run, words: list[str], told: str) -> None:
    shown = foliot("keys", *words)
    assert shown.exit_code == 2
    assert told in shown.stderr


def test_what_a_key_may_not_do_is_5_with_what_to_do_next(foliot: Run) -> None:
    key = made(foliot, "looks-only", "--role", "viewer")
    shown = foliot("queues", "pause", "mail", "--key", key)
    assert shown.exit_code == 5
    assert "the role viewer may not do this" in shown.stderr
    assert "The key came from --key; 'foliot whoami' tells what it may do" in shown.stderr
    assert key not in shown.stderr


def test_a_key_for_sealing_is_made_here(foliot: Run) -> None:
    assert re.fullmatch(r"k[0-9a-f]{8}:[A-Za-z0-9+/]{43}=\n", foliot("keys", "new-encryption-key").stdout)
