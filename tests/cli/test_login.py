"""Letting a browser in, against a real node."""

import json
import urllib.request
import webbrowser
from collections.abc import Callable

import pytest
from click.testing import Result

from tests.cli.conftest import ServedNode
from tests.cli.test_keys import made

Run = Callable[..., Result]


def who_is_let_in(node: ServedNode, link: str) -> str:
    """The name behind the session that a browser gets by the link."""
    with urllib.request.urlopen(link) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    asked = urllib.request.Request(f"{node.url}/api/v1/session", headers={"Cookie": cookie})
    with urllib.request.urlopen(asked) as answer:
        return str(json.loads(answer.read())["name"])


def test_a_link_is_printed_for_a_browser_elsewhere(foliot: Run, node: ServedNode) -> None:
    shown = foliot("login", "--no-open")
    assert shown.stderr == "good for one browser, once, for 2m\n"
    assert who_is_let_in(node, shown.stdout.strip()) == "admin"
    key = made(foliot, "browsing", "--role", "viewer")
    as_json = json.loads(foliot("login", "--json", "--key", key).stdout)
    assert as_json.keys() == {"url", "expires"}
    assert who_is_let_in(node, as_json["url"]) == "browsing"


class Browser(webbrowser.BaseBrowser):
    """One that notes what it was to open."""

    def __init__(self, *, works: bool) -> None:
        super().__init__("noting")
        self.opened: list[str] = []
        self._works = works

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:
        self.opened.append(url)
        return self._works


@pytest.mark.parametrize("works", [True, False])
def test_the_link_is_opened_and_printed_where_there_is_no_browser(
    foliot: Run, node: ServedNode, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    browser = Browser(works=works)
    monkeypatch.setattr(webbrowser, "_tryorder", ["noting"])
    monkeypatch.setattr(webbrowser, "_browsers", {"noting": [None, browser]})
    shown = foliot("login")
    assert shown.exit_code == 0
    (link,) = browser.opened
    assert shown.stdout == ("" if works else f"{link}\n")
    assert ("opened in the browser" if works else "no browser could be opened") in shown.stderr
    assert who_is_let_in(node, link) == "admin"


def test_the_link_is_at_the_address_by_which_the_node_was_reached(foliot: Run, node: ServedNode) -> None:
    near = node.url.replace("127.0.0.1", "localhost")
    assert foliot("login", "--no-open", "--url", f"{near}/").stdout.startswith(f"{near}/login?code=")
