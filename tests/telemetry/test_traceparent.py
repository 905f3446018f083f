"""W3C's header: what is one, and what is as if it had not been sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.telemetry.traceparent import of_run, parse, run_span, show, split

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (f"00-{TRACE}-{SPAN}-01".encode(), f"00-{TRACE}-{SPAN}-01"),
        (f"  00-{TRACE}-{SPAN}-00\t".encode(), f"00-{TRACE}-{SPAN}-00"),
        (f"00-{TRACE}-{SPAN}-ff".encode(), f"00-{TRACE}-{SPAN}-03"),  # flags that nobody knows are not sent on
        (f"cc-{TRACE}-{SPAN}-01-what-comes-later".encode(), f"00-{TRACE}-{SPAN}-01"),
    ],
)
def test_what_makes_sense_is_carried_on(sent: bytes, kept: str) -> None:
    assert parse(sent) == kept


@pytest.mark.parametrize(
    "sent",
    [
        None,
        b"",
        b"\xff\xfe",
        b"junk",
        f"00-{TRACE}-{SPAN}".encode(),
        f"00-{TRACE}-{SPAN}-1".encode(),
        f"00-{TRACE.upper()}-{SPAN}-01".encode(),
        f"00-{TRACE}-{SPAN}-01-more".encode(),
        f"ff-{TRACE}-{SPAN}-01".encode(),
        f"00-{'0' * 32}-{SPAN}-01".encode(),
        f"00-{TRACE}-{'0' * 16}-01".encode(),
        f"00-{TRACE}-{SPAN}-01\n".encode(),
        f"00-{TRACE}-{SPAN}-0\N{FULLWIDTH DIGIT ONE}".encode(),
    ],
)
def test_what_makes_none_is_as_if_not_sent(sent: bytes | None) -> None:
    assert parse(sent) is None


@given(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.integers(0, 3))
def test_what_is_shown_is_read_again(trace: int, span: int, flags: int) -> None:
    shown = show(trace, span, flags)
    assert parse(shown) == shown
    assert split(shown) == (trace, span, flags)


@given(st.binary(max_size=80))
def test_no_header_breaks_anything(sent: bytes) -> None:
    found = parse(sent)
    assert found is None or parse(found) == found


def test_every_attempt_has_a_span_of_its_own_in_its_jobs_trace() -> None:
    submitted = f"00-{TRACE}-{SPAN}-01"
    runs = {of_run(submitted, key, attempt) for key in ("j_1", "j_11", "j_2") for attempt in (1, 2, 11)}
    assert len(runs) == 9
    assert all(run.startswith(f"00-{TRACE}-") and run.endswith("-01") for run in runs)
    assert run_span("j_1", 1) == run_span("j_1", 1)
