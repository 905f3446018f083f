"""The values of secret fields are in nothing that a worker tells of a job: lines, errors, progress."""

import logging
from typing import Any

import msgspec
import pytest

from foliot.sdk.context import JobContext
from foliot.sdk.errors import Fatal
from foliot.sdk.handler import Handler, Isolation
from foliot.wire import LOG_LINE_LIMIT
from foliot.worker.attempt_log import CHARACTERS, LINES, AttemptLog, clean
from foliot.worker.redaction import CUT_MARK, Redactor
from tests.worker.lone_runner import LoneRunner, assigned, error_of

SECRET = "hunter2-hunter2"
PAYLOAD = {"name": "visible", "db": {"password": SECRET}, "pin": 123456, "short": "abc"}
FIELDS = ["db.password", "pin", "short"]


def blab(payload: bytes, context: JobContext) -> Any:
    given = msgspec.json.decode(payload)
    secret = given["db"]["password"]
    print("printed", secret, given["pin"], given["short"], given["name"])
    logging.getLogger("sample").error("logged %s", given)
    context.log.info("told %s", payload.decode())
    context.progress(0.5, f"half of {secret}")
    if given.get("fatal"):
        raise Fatal(f"refused {secret}", code=f"code-{secret}")
    if given.get("fail"):
        raise ValueError(f"bad {secret}")
    return {"given": secret}


async def blab_async(payload: bytes, context: JobContext) -> Any:
    return blab(payload, context)


def handler(isolation: Isolation) -> Handler:
    return Handler(name="blab", function=blab_async if isolation == "async" else blab, isolation=isolation)


async def ran(isolation: Isolation, **more: Any) -> tuple[Any, list[str]]:
    runner = LoneRunner({"blab": handler(isolation)})
    job = msgspec.structs.replace(assigned("blab", PAYLOAD | more), secret_fields=FIELDS)
    try:
        report, lines = await runner.run(job)
        return report, lines
    finally:
        await runner.close()


ISOLATIONS = pytest.mark.parametrize("isolation", ["async", "thread", "process"])


@ISOLATIONS
async def test_lines_do_not_show_secret_values(isolation: Isolation) -> None:
    report, lines = await ran(isolation)
    text = "\n".join(lines)
    assert report.status == "success"
    assert "printed *** *** abc visible" in text
    assert text.count("visible") == 3
    assert SECRET not in text
    assert "123456" not in text


@ISOLATIONS
async def test_errors_do_not_show_secret_values(isolation: Isolation) -> None:
    for more, status in (({"fail": True}, "retriable_failure"), ({"fatal": True}, "fatal_failure")):
        report, lines = await ran(isolation, **more)
        error = error_of(report)
        assert report.status == status
        assert SECRET not in f"{error} {lines}"
        assert "***" in error.message


async def test_progress_does_not_show_secret_values() -> None:
    runner = LoneRunner({"blab": handler("async")})
    job = msgspec.structs.replace(assigned("blab", PAYLOAD), secret_fields=FIELDS)
    runner.begin(job)
    [attempt] = runner.runner.attempts.values()
    attempt.note_progress(0.5, f"half of {SECRET}")
    assert attempt.progress is not None
    assert attempt.progress.note == "half of ***"
    await runner.ended()
    await runner.close()


async def test_without_secret_fields_nothing_is_replaced() -> None:
    runner = LoneRunner({"blab": handler("async")})
    _, lines = await runner.run(assigned("blab", PAYLOAD))
    assert f"printed {SECRET} 123456 abc visible" in lines
    await runner.close()


# the redactor itself


@pytest.mark.parametrize(
    "text",
    [
        'pass"word\\ü',
        '{"p": "pass\\"word\\\\ü"}',
        '{"p": "pass\\"word\\\\\\u00fc"}',
        repr('pass"word\\ü'),
        "https://x/?p=pass%22word%5C%C3%BC",
    ],
)
def test_a_value_is_found_as_others_write_it(text: str) -> None:
    shown = Redactor(['pass"word\\ü'])(text)
    assert "word" not in shown
    assert "***" in shown


def test_each_line_of_a_value_is_hidden() -> None:
    redact = Redactor(["-----BEGIN KEY-----\nMIIEabcd\nEFGHijkl\n"])
    assert redact("a line: MIIEabcd") == "a line: ***"
    assert redact("EFGHijkl") == "***"


def test_the_longest_value_is_hidden_first() -> None:
    assert Redactor(["secret", "secret-longer"])("secret-longer secret") == "*** ***"


def test_short_values_are_left() -> None:
    assert Redactor(["abc", ""])("abc abcd") == "abc abcd"


@pytest.mark.parametrize("left", range(4, len(SECRET) + 1))
def test_a_value_that_a_cut_goes_through_is_hidden_too(left: int) -> None:
    redact = Redactor([SECRET])
    limit = 100
    line = "x" * (limit - len(CUT_MARK.encode()) - left) + SECRET + "y" * limit
    assert SECRET[:4] in clean(line, limit)
    assert SECRET[:4] not in redact(clean(line, limit))
    assert SECRET[-4:] not in redact("…" + SECRET[-left:] + " and more")


def test_a_cut_that_goes_through_no_value_takes_nothing() -> None:
    redact = Redactor([SECRET])
    for text in (f"hunter1{CUT_MARK}", f"hunt hunter3{CUT_MARK}", "…hunter1-x", "…ter1 ter2"):
        assert redact(text) == text


def test_a_line_without_end_shows_no_part_of_a_value() -> None:
    for before in range(LOG_LINE_LIMIT - len(SECRET), LOG_LINE_LIMIT + 2):
        log = AttemptLog(lambda: None, Redactor([SECRET]))
        log.write("INFO", SECRET)
        log.write("INFO", "x" * (before - len(SECRET)) + SECRET + "y" * 50)
        log.write("INFO", "\n")
        log.close()
        [line] = [message for _, _, message in log.take(LINES, CHARACTERS)][:1]
        assert SECRET[:4] not in line


def test_a_value_written_in_pieces_is_hidden() -> None:
    log = AttemptLog(lambda: None, Redactor([SECRET]))
    for piece in ("the key is ", SECRET[:5], SECRET[5:], "!\n"):
        log.write("INFO", piece)
    [line] = [message for _, _, message in log.take(LINES, CHARACTERS)]
    assert line == "the key is ***!"
