"""Namespaces on the command line, against a real node."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args, get_type_hints

from click.testing import Result
from msgspec import Meta

from foliot.cli.namespaces import QUOTAS
from foliot.wire import QuotasBody
from tests.cli.conftest import ServedNode, serve, stop
from tests.cli.test_jobs import api
from tests.cli.test_keys import made

Run = Callable[..., Result]


def test_the_bounds_are_the_apis() -> None:
    hints = get_type_hints(QuotasBody, include_extras=True)
    (bounds,) = zip(
        *(
            [(quota, each.ge, each.le) for part in get_args(hint) for each in get_args(part) if isinstance(each, Meta)]
            for quota, hint in hints.items()
        ),
        strict=True,
    )
    assert list(bounds) == [(quota, lowest, highest) for quota, (lowest, highest, _) in QUOTAS.items()]


def test_a_namespace_is_made_limited_freed_and_deleted(foliot: Run, node: ServedNode) -> None:
    created = foliot("namespaces", "create", "team-a", "--submits-per-second", "500", "--live-jobs", "100000")
    assert created.stdout == "team-a submits per second 500, live jobs 100,000\n"
    assert foliot("namespaces", "create", "team-a").exit_code == 1
    changed = foliot("namespaces", "set", "team-a", "--payload-bytes-per-second", "4096", "--reset", "live_jobs")
    assert changed.stdout == "team-a submits per second 500, payload bytes per second 4,096\n"
    assert json.loads(foliot("namespaces", "--json").stdout) == api(node, "/namespaces")
    (line,) = [line for line in foliot("namespaces").stdout.splitlines() if line.startswith("team-a ")]
    assert line.split()[:3] == ["team-a", "500", "4,096"]
    assert foliot("namespaces", "delete", "team-a").stdout == "team-a deleted\n"
    assert foliot("namespaces", "delete", "team-a").exit_code == 4
    assert foliot("namespaces", "set", "team-a", "--live-jobs", "1").exit_code == 4


def test_a_namespace_in_use_is_not_deleted(foliot: Run) -> None:
    foliot("namespaces", "create", "in-use")
    made(foliot, "someone", "--role", "viewer", "--namespace", "in-use")
    shown = foliot("namespaces", "delete", "in-use")
    assert shown.exit_code == 1
    assert "in use" in shown.stderr


def test_setting_nothing_or_one_thing_twice_is_2(foliot: Run) -> None:
    assert foliot("namespaces", "set", "default").exit_code == 2
    assert foliot("namespaces", "set", "default", "--live-jobs", "1", "--reset", "live_jobs").exit_code == 2


def test_beyond_a_quota_the_exit_code_is_5_and_the_quota_is_told(tmp_path: Path) -> None:
    node = serve(tmp_path, "--no-worker")
    try:
        assert node.run("namespaces", "create", "small", "--live-jobs", "1").returncode == 0
        words = ("keys", "create", "small", "--role", "submitter", "--namespace", "small", "--quiet")
        key = node.run(*words).stdout.strip()
        assert node.run("submit", "note", FOLIOT_KEY=key).returncode == 0
        refused = node.run("submit", "note", FOLIOT_KEY=key)
        assert refused.returncode == 5
        assert "this namespace may have 1 jobs that have not ended" in refused.stderr
        assert node.run("submit", "note").returncode == 0
    finally:
        stop(node)


def test_an_admin_of_a_namespace_sees_only_that(foliot: Run) -> None:
    foliot("namespaces", "create", "mine")
    key = made(foliot, "boss", "--role", "admin", "--namespace", "mine")
    assert [each["name"] for each in json.loads(foliot("namespaces", "--json", "--key", key).stdout)] == ["mine"]
    assert [each["name"] for each in json.loads(foliot("keys", "--json", "--key", key).stdout)] == ["boss"]
    shown = foliot("namespaces", "create", "more", "--key", key)
    assert shown.exit_code == 5
    assert "admin key" in shown.stderr
