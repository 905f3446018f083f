"""A page of a list, and where the next one is."""

from collections.abc import Sequence
from typing import Any

from foliot.api.call import Answer, Call
from foliot.api.query import next_link


def paged(call: Call[Any, Any], items: Sequence[object], cursor: str | None) -> Answer:
    """`cursor` is where the next page begins; None after the last."""
    return Answer(items, headers=(next_link(call.path, call.query_string, cursor=cursor),) if cursor else ())
