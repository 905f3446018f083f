"""Every way that the pages point out leads somewhere, and no page is left without one that leads to it."""

import html
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, links, name_of

OUTSIDE = {"https://keepachangelog.com/en/1.1.0/", "https://semver.org"}


def heading_id(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def headings(page: Path) -> set[str]:
    return {heading_id(found) for found in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_resolves(page: Path) -> None:
    wrong = []
    for link in links(page):
        path, _, part = link.partition("#")
        target = page.parent / path if path else page
        if link not in OUTSIDE and not (target.exists() and (not part or part in headings(target))):
            wrong.append(link)
    assert wrong == []


def unlinked(index: Path, wanted: Iterable[Path]) -> list[str]:
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    return [name_of(page) for page in wanted if page not in linked]


def test_the_design_index_leads_to_every_decision() -> None:
    index = ROOT / "docs" / "design" / "README.md"
    assert unlinked(index, {*index.parent.rglob("*.md")} - {index}) == []


def test_the_index_leads_to_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    design = {*(index.parent / "design").rglob("*.md")} - {index.parent / "design" / "README.md"}
    assert unlinked(index, {*index.parent.rglob("*.md")} - design - {index}) == []


def test_the_readme_shows_a_picture_that_loads_nothing() -> None:
    shown = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert shown == ["docs/picture.svg"]
    picture = (ROOT / shown[0]).read_text()
    assert re.findall(r"https?://[^\"' <]+", picture.replace("http://127.0.0.1:7070", "")) == [
        "http://www.w3.org/2000/svg"
    ]
    assert re.findall(r"@import|@font-face|url\((?!#)|<script|<image", picture) == []


def test_the_picture_can_be_drawn_again(tmp_path: Path) -> None:
    drawn = tmp_path / "picture.svg"
    subprocess.run([sys.executable, ROOT / "tools" / "picture", drawn], check=True, timeout=18)
    for picture in (drawn, ROOT / "docs" / "picture.svg"):
        shown = html.unescape(picture.read_text()).replace("\xa0", " ")
        wanted = ["foliot submit charge", "completed", ", attempt 2", "foliot top --once", "shop-1", "month 9 of 12"]
        assert [words for words in wanted if words not in shown] == []
