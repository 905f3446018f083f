"""The bounds of an attempt's log."""

import pytest

from foliot.domain.duration import SECOND
from foliot.wire import LOG_LINE_LIMIT
from foliot.worker.attempt_log import BURST, CHARACTERS, LINES, PER_SECOND, AttemptLog, clean


class Watch:
    """What time it is, for a log that counts lines by it; with `step` each look takes that long."""

    def __init__(self, step: int = 0) -> None:
        self.time = 0
        self.step = step

    def __call__(self) -> int:
        self.time += self.step
        return self.time


@pytest.fixture
def log() -> AttemptLog:
    """Of a handler that takes a second for each line."""
    return AttemptLog(lambda: None, now=Watch(SECOND))


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def fast_log(watch: Watch) -> AttemptLog:
    return AttemptLog(lambda: None, now=watch)


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


def test_lines_that_come_too_fast_are_left_out_and_counted(watch: Watch, fast_log: AttemptLog) -> None:
    for number in range(BURST + 500):
        fast_log.line("INFO", str(number))
    assert texts(fast_log) == [str(number) for number in range(BURST)]
    watch.time += SECOND
    fast_log.write("INFO", "".join(f"{number}\n" for number in range(PER_SECOND + 3)))
    mark, *kept = texts(fast_log)
    assert mark.startswith("500 lines were left out here")
    assert kept == [str(number) for number in range(PER_SECOND)]
    fast_log.close()
    (last,) = texts(fast_log)
    assert last.startswith("3 lines were left out here")


def test_a_flood_has_one_gap_a_second_and_not_one_between_any_two_lines(watch: Watch, fast_log: AttemptLog) -> None:
    for _ in range(5 * 1000):
        watch.time += SECOND // 1000
        fast_log.line("INFO", "x")
    kept = texts(fast_log)
    marks = [text for text in kept if "left out here" in text]
    assert len(marks) <= 5
    assert BURST <= len(kept) <= BURST + 5 * (PER_SECOND + 1)


def test_after_silence_a_burst_passes_again(watch: Watch, fast_log: AttemptLog) -> None:
    for _ in range(2):
        for number in range(BURST):
            fast_log.line("INFO", str(number))
        watch.time += BURST // PER_SECOND * SECOND
    fast_log.close()
    assert len(texts(fast_log)) == 2 * BURST


def test_what_a_worker_says_itself_is_kept_whatever_the_handler_wrote(fast_log: AttemptLog) -> None:
    for number in range(BURST + 1):
        fast_log.line("INFO", str(number))
    fast_log.note("ERROR", "it failed")
    fast_log.close()
    *_, mark, error = texts(fast_log)
    assert mark.startswith("1 line was left out here")
    assert error == "it failed"


def test_what_a_worker_says_of_a_full_log_is_kept(log: AttemptLog) -> None:
    for number in range(LINES + 1):
        log.line("INFO", str(number))
    log.note("ERROR", "it failed")
    log.close()
    log.note("ERROR", "too late")
    *_, error, dropped = texts(log)
    assert error == "it failed"
    assert dropped.startswith("1 more lines")


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
