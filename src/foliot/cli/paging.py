"""Lists that come in pages: the options that bound them, and going through them."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import click

PAGE = 1000

T = TypeVar("T")


class Page(Protocol[T]):
    """A client's method for one page."""

    def __call__(self, *, limit: int, cursor: str | None) -> tuple[list[T], str | None]: ...


def page_options(function: Callable[..., None]) -> Callable[..., None]:
    limit = click.option(
        "--limit", type=click.IntRange(1, PAGE), default=50, show_default=True, help="How many at most."
    )
    everything = click.option(
        "--all", "everything", is_flag=True, help="All of them, page by page, whatever --limit says."
    )
    return limit(everything(function))


def collect(page: Page[T], limit: int | None) -> tuple[list[T], bool]:
    """What there is, up to `limit`, and whether there may be more. A page may be short and still have a next one."""
    found: list[T] = []
    cursor: str | None = None
    while limit is None or len(found) < limit:
        items, cursor = page(limit=PAGE if limit is None else limit - len(found), cursor=cursor)
        found += items
        if cursor is None:
            break
    return found, cursor is not None


def tell_of_more(shown: int, which: str = "newest") -> None:
    click.echo(f"these are the {which} {shown}; a higher --limit or --all shows more", err=True)
