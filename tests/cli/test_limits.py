"""Concurrency keys on the command line, against a real node."""

import json
from collections.abc import Callable

from click.testing import Result

from tests.cli.conftest import ServedNode
from tests.cli.test_jobs import api, submitted

Run = Callable[..., Result]


def test_a_key_is_shown_with_who_holds_it_and_who_waits(foliot: Run, node: ServedNode) -> None:
    first, *others = (submitted(foliot, "none", "--concurrency", "shown=1") for _ in range(5))
    (line,) = [line for line in foliot("limits").stdout.splitlines() if line.startswith("shown ")]
    assert line.split() == [
        "shown",
        "1",
        "1",
        "4",
        first,
        f"{others[0]},",
        f"{others[1]},",
        others[2],
        *("and", "1", "more"),
    ]
    fields = foliot("limits", "show", "shown").stdout
    assert "1 at once" in fields
    assert ", ".join(others) in " ".join(fields.split())
    assert json.loads(foliot("limits", "show", "shown", "--json").stdout) == api(node, "/limits/shown")
    assert json.loads(foliot("limits", "--json").stdout) == api(node, "/limits")


def test_a_higher_limit_lets_in_those_that_wait(foliot: Run) -> None:
    for _ in range(3):
        submitted(foliot, "none", "--concurrency", "raised@a:b=1")
    assert foliot("limits", "set", "raised@a:b", "2").stdout == "raised@a:b 2 at once, 2 held, 1 waiting\n"
    assert foliot("limits", "set", "raised@a:b", "1").stdout == "raised@a:b 1 at once, 2 held, 1 waiting\n"
    assert json.loads(foliot("limits", "get", "raised@a:b", "--json").stdout)["limit"] == 1


def test_a_key_that_nobody_has_named_is_4(foliot: Run) -> None:
    shown = foliot("limits", "show", "no-such-key")
    assert shown.exit_code == 4
    assert "no-such-key" in shown.stderr


def test_a_list_stops_at_the_limit_and_all_goes_on(foliot: Run) -> None:
    for name in ("many-1", "many-2"):
        assert foliot("limits", "set", name, "1").exit_code == 0
    shown = foliot("limits", "ls", "--limit", "1")
    assert len(shown.stdout.splitlines()) == 2
    assert shown.stderr == "these are the first 1; a higher --limit or --all shows more\n"
    assert {"many-1", "many-2"} <= {
        each["key"] for each in json.loads(foliot("limits", "list", "--all", "--json").stdout)
    }
