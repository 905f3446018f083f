"""Which failures are tried again, and when: decided by the job's rules, where the exception is."""

from datetime import timedelta
from typing import Any

import pytest

from foliot import Fatal, Foliot, JobContext, JobFailed, Retry
from foliot.sdk.errors import Judged, Released
from foliot.sdk.retry_rules import RetryRules
from foliot.wire import ErrorInfo
from foliot.worker.outcome import of_error
from tests.sdk.served_node import ServedNode

WAIT = 15


class Coded(Exception):
    code = "quota"


def judge(error: Exception, attempt: int = 1, **rules: Any) -> str | float | None:
    """`fatal`, the seconds to wait, or None where the policy decides."""
    given = {"retry_for": None, "fatal_for": None, "retry_when": None} | rules
    judged = RetryRules("t", **given).judge(error, attempt)
    if judged is None:
        return None
    return "fatal" if judged.fatal else judged.after


@pytest.mark.parametrize(
    ("error", "rules", "verdict"),
    [
        (ValueError(), {}, None),
        (ValueError(), {"fatal_for": ValueError}, "fatal"),
        (UnicodeError(), {"fatal_for": (KeyError, ValueError)}, "fatal"),
        (OSError(), {"fatal_for": [ValueError]}, None),
        (ConnectionResetError(), {"retry_for": ConnectionError}, None),
        (ValueError(), {"retry_for": (ConnectionError, TimeoutError)}, "fatal"),
        (FileNotFoundError(), {"retry_for": OSError, "fatal_for": FileNotFoundError}, "fatal"),
        (Coded(), {"fatal_for": "quota"}, "fatal"),
        (Coded(), {"retry_for": ("quota", OSError)}, None),
        (Coded(), {"retry_for": "other"}, "fatal"),
        (Retry("later"), {"retry_for": OSError}, None),
        (Retry("later", code="quota"), {"fatal_for": "quota"}, "fatal"),
        (Retry("later", after=3), {"retry_when": lambda error, attempt: 9}, None),
        (Retry("later"), {"retry_when": lambda error, attempt: 9}, 9),
        (Fatal("no"), {"retry_for": Fatal, "retry_when": lambda error, attempt: 9}, None),
        (Released("no"), {"fatal_for": Exception}, None),
        (OSError(), {"retry_when": lambda error, attempt: 0}, 0),
        (OSError(), {"retry_when": lambda error, attempt: timedelta(minutes=1)}, 60),
        (OSError(), {"retry_when": lambda error, attempt: attempt * 10}, 40),
        (OSError(), {"retry_when": lambda error, attempt: True}, None),
        (OSError(), {"retry_when": lambda error, attempt: False}, "fatal"),
        (OSError(), {"retry_when": lambda error, attempt: None}, "fatal"),
        (ValueError(), {"retry_for": OSError, "retry_when": lambda error, attempt: 5}, "fatal"),
        (ValueError(), {"fatal_for": ValueError, "retry_when": lambda error, attempt: 5}, "fatal"),
    ],
)
def test_rules_decide_by_class_by_code_and_by_function(error: Exception, rules: Any, verdict: Any) -> None:
    assert judge(error, 4, **rules) == verdict


@pytest.mark.parametrize("answer", [-1, float("nan"), float("inf"), "5s"])
def test_a_function_that_says_no_time_leaves_it_to_the_policy_and_is_told(answer: Any) -> None:
    error = OSError("lost")
    assert judge(error, retry_when=lambda error, attempt: answer) is None
    assert "retry_when could not tell what to do" in error.__notes__[0]


def test_a_function_that_fails_leaves_it_to_the_policy_and_is_told() -> None:
    error = OSError("lost")
    assert judge(error, retry_when=lambda error, attempt: 1 / 0) is None
    assert "ZeroDivisionError" in (of_error(error).error or ErrorInfo()).stack  # type: ignore[operator]


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"retry_for": 5}, "retry_for"),
        ({"fatal_for": [ValueError, 5]}, "slow: fatal_for lists classes of exceptions and error codes; 5 is neither"),
        ({"fatal_for": KeyboardInterrupt}, "is neither"),
        ({"retry_when": 5}, "slow: retry_when is a function"),
    ],
)
def test_rules_that_can_not_be_meant_are_refused_where_they_are_written(rules: Any, message: str) -> None:
    app = Foliot("http://127.0.0.1:1")
    with pytest.raises(TypeError, match=message):

        @app.job(**rules)
        def slow() -> None: ...


def test_what_was_judged_is_reported_as_the_error_that_it_is() -> None:
    try:
        raise ValueError("wrong")
    except ValueError as error:
        ended = of_error(Judged(error, fatal=True))
        again = of_error(Judged(error, after=2.5))
    assert (ended.status, ended.retry_after, again.status, again.retry_after) == (
        "fatal_failure",
        None,
        "retriable_failure",
        2.5,
    )
    assert ended.error is not None
    assert (ended.error.type, ended.error.message) == ("ValueError", "wrong")
    assert "raise ValueError" in (ended.error.stack or "")


def test_a_fatal_error_is_not_tried_again_and_another_is(app: Foliot, node: ServedNode) -> None:
    @app.job(retry={"max_attempts": 3, "initial": 0}, fatal_for=ValueError)
    async def on_the_loop(context: JobContext) -> None:
        raise OSError("lost") if context.attempt == 1 else ValueError("wrong")

    @app.job(retry={"max_attempts": 3, "initial": 0}, retry_for=OSError)
    def in_a_thread(context: JobContext) -> None:
        raise OSError("lost") if context.attempt == 1 else ValueError("wrong")

    node.run_worker(app.handlers)
    for job in (on_the_loop.submit(), in_a_thread.submit()):
        with pytest.raises(JobFailed, match="failed at attempt 2: wrong") as caught:
            job.result(WAIT)
        assert isinstance(caught.value.error, ErrorInfo)
        assert caught.value.error.type == "ValueError"
        attempts = [attempt.status for attempt in app.client.executions(job.job_id)]
        assert attempts == ["retriable_failure", "fatal_failure"]


def test_a_function_says_when_and_when_no_more(app: Foliot, node: ServedNode) -> None:
    asked: list[tuple[str, int]] = []

    def when(error: Exception, attempt: int) -> float | bool:
        asked.append((str(error), attempt))
        return 0 if attempt < 3 else False

    @app.job(retry={"max_attempts": 9, "backoff": "fixed", "initial": "1h"}, retry_when=when)
    async def lose() -> None:
        raise OSError("lost")

    node.run_worker(app.handlers)
    assert lose.submit().wait(WAIT).status == "failed"
    assert asked == [("lost", 1), ("lost", 2), ("lost", 3)]


def test_a_policy_in_words_waits_as_it_says(app: Foliot, node: ServedNode) -> None:
    @app.job(retry=[0, timedelta(0), "1h"])
    async def lose(context: JobContext) -> None:
        raise OSError("lost")

    job = lose.submit()
    retry = job.info().retry
    assert retry is not None
    assert (retry.max_attempts, retry.delays) == (4, [0, 0, 3600])
