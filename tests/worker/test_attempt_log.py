"""The bounds of an attempt's log."""

import pytest

from foliot.wire import LOG_LINE_LIMIT
from foliot.worker.attempt_log import CHARACTERS, LINES, AttemptLog, clean


@pytest.fixture
def log() -> AttemptLog:
    return AttemptLog(lambda: None)


def texts(log: AttemptLog) -> list[str]:
    return [message for _, _, message in log.take(LINES * 2, CHARACTERS * 2)]


def test_text_becomes_lines_at_its_newlines(log: AttemptLog) -> None:
    for part in ("one\ntw", "o\n\nthr", "ee"):
        log.write("INFO", part)
    assert texts(log) == ["one", "two", ""]
    log.close()
    assert texts(log) == ["three"]


def test_streams_do_not_mix_within_a_line(log: AttemptLog) -> None:
    log.write("INFO", "out")
    log.write("WARNING", "err\n")
    log.write("INFO", "put\n")
    assert texts(log) == ["err", "output"]


def test_beyond_its_lines_it_only_counts(log: AttemptLog) -> None:
    for number in range(LINES + 5):
        log.line("INFO", str(number))
    log.write("INFO", "a\nb\n")
    log.close()
    found = texts(log)
    assert len(found) == LINES + 1
    assert found[-2] == str(LINES - 1)
    assert found[-1].startswith("7 more lines")


def test_a_line_without_end_does_not_fill_the_memory(log: AttemptLog) -> None:
    for _ in range(100):
        log.write("INFO", "x" * 100_000)
    log.close()
    kept = texts(log)
    assert sum(map(len, kept)) <= LOG_LINE_LIMIT + 200
    assert "were dropped" in kept[-1]


def test_what_is_written_after_the_end_is_nobodys(log: AttemptLog) -> None:
    log.close()
    log.line("INFO", "late")
    log.write("INFO", "later\n")
    assert texts(log) == []


def test_lines_that_were_put_back_come_first(log: AttemptLog) -> None:
    for word in ("a", "b", "c"):
        log.line("INFO", word)
    taken = log.take(2, 1000)
    log.put_back(taken)
    assert texts(log) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "limit", "wanted"),
    [
        ("a\0b", 100, "a\ufffdb"),
        ("half \ud83d", 100, "half ?"),
        ("x" * 50, 40, "x" * 30 + " … (cut)"),
        ("é" * 50, 40, "é" * 15 + " … (cut)"),
        ("fits", 4, "fits"),
    ],
)
def test_text_is_made_fit_to_store(text: str, limit: int, wanted: str) -> None:
    found = clean(text, limit)
    assert found == wanted
    assert len(found.encode()) <= limit
