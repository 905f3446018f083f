"""Options beside the arguments: what they become, what is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foliot import Foliot
from foliot.sdk.options import submit_body
from foliot.wire import encode

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def body(**options: Any) -> Any:
    made = msgspec.json.decode(encode(submit_body("t", msgspec.Raw(b"{}"), options)))
    return {name: value for name, value in made.items() if name not in ("job_type", "payload")}


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {}),
        ({"at": NOON}, {"schedule_time": "2030-01-01T12:00:00Z"}),
        ({"delay": timedelta(seconds=90)}, {"delay": 90.0}),
        ({"delay": "5m", "timeout": 1.5}, {"delay": "5m", "timeout": 1.5}),
        ({"priority": "high", "queue": "mail", "job_id": "a"}, {"priority": "high", "queue": "mail", "job_id": "a"}),
        ({"tags": ("a", "b"), "deadline": NOON}, {"tags": ["a", "b"], "deadline": "2030-01-01T12:00:00Z"}),
        ({"queue": None}, {}),
    ],
)
def test_an_option_becomes_a_field_of_the_job(options: Any, sent: Any) -> None:
    assert body(**options) == sent


@pytest.mark.parametrize("retry", [7, {"max_attempts": 7}])
def test_a_retry_is_a_policy_or_a_number_of_attempts(retry: Any) -> None:
    assert body(retry=retry)["retry"]["max_attempts"] == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"at": datetime(2030, 1, 1)}, "at must be a datetime with a time zone"),  # noqa: DTZ001
        ({"deadline": "soon"}, "deadline must be a datetime with a time zone"),
        ({"at": NOON, "delay": 5}, "at and delay both say when"),
        ({"delay": "soon"}, "delay: 'soon' is not a duration"),
        ({"timeout": -1}, "timeout: a duration is"),
        ({"priority": 11}, "priority: 11 is no priority"),
        ({"retry": {"attempts": 3}}, "retry: .*attempts"),
        ({"tags": "mail"}, "tags is a list of words"),
        ({"when": NOON}, "there is no option 'when'; the options are at, "),
    ],
)
def test_an_option_that_can_not_be_meant_is_refused_by_name(options: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        body(**options)


def test_options_of_a_job_are_checked_when_it_is_made() -> None:
    app = Foliot("http://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"(?s)slow.*queue"):

        @app.job(queue="no spaces")
        def slow() -> None: ...


def test_two_functions_can_not_be_the_same_job() -> None:
    app = Foliot("http://127.0.0.1:1")

    @app.job(name="work")
    def one() -> None: ...

    with pytest.raises(ValueError, match=r"work is already the job of .*one"):

        @app.job(name="work")
        def two() -> None: ...


def test_a_coroutine_runs_on_the_loop_and_a_plain_function_in_a_thread_or_process() -> None:
    app = Foliot("http://127.0.0.1:1")

    @app.job
    async def quick() -> None: ...

    @app.job
    def plain() -> None: ...

    @app.job(isolation="process")
    def apart() -> None: ...

    assert {name: handler.isolation for name, handler in app.handlers.items()} == {
        "quick": "async",
        "plain": "thread",
        "apart": "process",
    }
    with pytest.raises(TypeError, match="not in a thread"):

        @app.job(isolation="thread")
        async def wrong() -> None: ...

    with pytest.raises(TypeError, match="use a thread or a process"):

        @app.job(isolation="async")
        def also_wrong() -> None: ...


def test_a_job_is_still_called_as_a_function() -> None:
    app = Foliot("http://127.0.0.1:1")

    @app.job(queue="sums")
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add(1, b=2) == 3
    assert add.__doc__ == "Adds."
    assert add.__name__ == "add"
