"""How deep a body may be nested, told without decoding it."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foliot.api.body import IN_PLACE
from foliot.api.nesting import DEPTH_LIMIT, PIECE, too_deep
from tests.api.client import AsgiClient


def nested(depth: int, inside: str = "") -> str:
    return "[" * depth + inside + "]" * depth


def depth_of(value: Any) -> int:
    deepest, level = 0, [value]
    while level:
        inner = [each for each in level if isinstance(each, list | dict)]
        deepest += bool(inner)
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
    return deepest


@pytest.mark.parametrize("opening", ["[", '{"a":'])
@pytest.mark.parametrize("before", ["", "[]," * 200, '"]]]]",' * 200, r'"\"]\\",' * 200, "[[[[[[]]]]]]," * 30_000])
def test_the_limit_is_exact(opening: str, before: str) -> None:
    closing = "]" if opening == "[" else "}"
    for depth, refused in ((DEPTH_LIMIT, False), (DEPTH_LIMIT + 1, True)):
        inner = opening * (depth - 1) + "0" + closing * (depth - 1)
        assert too_deep(f"[{before}{inner}]".encode()) is refused


@pytest.mark.parametrize("shift", range(4))
def test_strings_are_no_structure_wherever_a_piece_ends(shift: int) -> None:
    """Backslashes and quotes lie across the end of the first piece."""
    for middle in ('\\"', "\\\\", '\\\\\\"', "\\\\\\\\"):
        text = '["' + "x" * (PIECE - 2 - shift) + middle + "[" * 500 + '"]'
        assert depth_of(json.loads(text)) == 1
        assert not too_deep(text.encode())
        hidden = '["' + "x" * (PIECE - 2 - shift) + middle + "]" * 500 + '",' + nested(DEPTH_LIMIT) + "]"
        assert too_deep(hidden.encode())


values = st.recursive(
    st.none() | st.text(alphabet='[]{}"\\ab', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='[]"\\', max_size=2), inner, max_size=3)
    ),
)


@given(values, st.integers(DEPTH_LIMIT - 4, DEPTH_LIMIT + 1), st.integers(0, 200))
@example([], DEPTH_LIMIT, 0)
def test_it_agrees_with_a_parser(value: Any, wraps: int, beside: int) -> None:
    for _ in range(wraps):
        value = [value]
    value = [*[["[", {}]] * beside, value]
    assert too_deep(json.dumps(value).encode()) is (depth_of(value) > DEPTH_LIMIT)


@pytest.mark.parametrize("beside", ["", '"tags":["a"],'])
async def test_a_payload_is_taken_up_to_the_limit_and_refused_beyond(client: AsgiClient, beside: str) -> None:
    """The body's own object is the first level."""
    for depth, status in ((DEPTH_LIMIT - 1, 201), (DEPTH_LIMIT, 400), (500, 400), (100_000, 400)):
        body = f'{{"job_type":"echo",{beside}"payload":{nested(depth)}}}'.encode()
        answer = await client.post("/api/v1/jobs", content=body)
        assert answer.status == status, answer.body
        assert status == 201 or "deep" in answer.json()["detail"]


async def test_a_large_body_is_judged_as_a_small_one(client: AsgiClient) -> None:
    """One that is looked through beside the event loop."""
    jobs = ",".join(f'{{"job_type":"echo","payload":["{"x" * 200_000}"]}}' for _ in range(IN_PLACE // 200_000 + 1))
    deep = f'{{"job_type":"echo","payload":{nested(DEPTH_LIMIT)}}}'
    assert (await client.post("/api/v1/jobs/batch", content=f'{{"jobs":[{jobs}]}}'.encode())).status == 201
    answer = await client.post("/api/v1/jobs/batch", content=f'{{"jobs":[{jobs},{deep}]}}'.encode())
    assert answer.status == 400
