"""Options beside the arguments: what they become, what is refused."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foliot import AsyncClient, AsyncJob, Foliot
from foliot.sdk.options import submit_body
from foliot.wire import encode

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
CLIENT = AsyncClient("http://127.0.0.1:1")


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
        ({"resources": {"cpu": 0.5, "memory": "256Mi"}}, {"resources": {"cpu": 0.5, "memory": "256Mi"}}),
        ({"requires": {"zone": "eu"}}, {"requires": {"zone": "eu"}}),
        ({"concurrency": ("a", 2), "unique_key": "k"}, {"concurrency": {"key": "a", "limit": 2}, "unique_key": "k"}),
        ({"concurrency": {"key": "a", "limit": 2}}, {"concurrency": {"key": "a", "limit": 2}}),
        ({"fair_key": "tenant-a"}, {"fair_key": "tenant-a"}),
        ({"depends_on": "a"}, {"depends_on": ["a"]}),
        ({"depends_on": ["a", "b", "a"]}, {"depends_on": ["a", "b"]}),
        (
            {"depends_on": [AsyncJob(CLIENT, "a"), (AsyncJob(CLIENT, "b"), "any"), ("c", "failure")]},
            {"depends_on": ["a", {"job_id": "b", "on": "any"}, {"job_id": "c", "on": "failure"}]},
        ),
        ({"depends_on": AsyncJob(CLIENT, "a")}, {"depends_on": ["a"]}),
    ],
)
def test_an_option_becomes_a_field_of_the_job(options: Any, sent: Any) -> None:
    assert body(**options) == sent


@pytest.mark.parametrize("retry", [7, {"max_attempts": 7}, [1, 2, 3, 4, 5, 6]])
def test_a_retry_is_a_policy_or_a_number_of_attempts_or_the_waits_between_them(retry: Any) -> None:
    assert body(retry=retry)["retry"]["max_attempts"] == 7


def test_the_times_of_a_retry_are_durations_of_any_kind() -> None:
    minute = timedelta(minutes=1)
    sent = body(retry={"backoff": "linear", "initial": minute, "max": "1h", "delays": [minute, 2]})["retry"]
    assert (sent["backoff"], sent["initial"], sent["max"], sent["delays"]) == ("linear", 60, "1h", [60, 2])


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
        ({"retry": {"initial": "soon"}}, "retry.initial: 'soon' is not a duration"),
        ({"retry": ["soon"]}, "retry.delays: 'soon' is not a duration"),
        ({"tags": "mail"}, "tags is a list of words"),
        ({"resources": {"cpu": -1}}, "resources.cpu"),
        ({"resources": {"memory": "lots"}}, "resources.memory"),
        ({"resources": {"cpu": None}}, "wrong type"),
        ({"concurrency": ("a",)}, "concurrency: .* is not a key and its limit"),
        ({"concurrency": ("a", 0)}, "concurrency: .*limit"),
        ({"concurrency": "a"}, "concurrency"),
        ({"concurrency": lambda account: ("a", 1)}, "concurrency can be a function only where"),
        ({"unique_key": lambda account: "a"}, "unique_key can be a function only where"),
        ({"fair_key": lambda account: "a"}, "fair_key can be a function only where"),
        ({"depends_on": [("a", "soon")]}, "is no dependency; it is a job, or a pair of one and success or failure"),
        ({"depends_on": ["a", ("a", "any")]}, "a is depended on twice, for success and for any"),
        ({"depends_on": 5}, "depends_on is a list of jobs"),
        ({"depends_on": [5]}, "5 is neither a job nor an id"),
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


def sent(call: Any, *args: Any, **kwargs: Any) -> Any:
    return msgspec.json.decode(encode(call.aio.body(*args, **kwargs)))


def test_keys_may_be_functions_of_the_arguments_by_name() -> None:
    app = Foliot("http://127.0.0.1:1")

    @app.job(
        concurrency=lambda account: (f"account-{account}", 1),
        unique_key=lambda **given: "/".join(f"{name}={value}" for name, value in sorted(given.items())),
        fair_key=lambda account: f"tenant-{account % 10}",
    )
    def charge(account: int, amount: float = 5.0, *, why: str = "fee") -> None: ...

    made = sent(charge, 42)
    assert made["concurrency"] == {"key": "account-42", "limit": 1}
    assert made["unique_key"] == "account=42/amount=5.0/why=fee"
    assert made["fair_key"] == "tenant-2"
    assert made["payload"] == {"account": 42}
    assert sent(charge, account=7, amount=1)["concurrency"]["key"] == "account-7"
    other = charge.options(concurrency=lambda amount, limit=3: {"key": f"of-{amount}", "limit": limit}, unique_key=None)
    assert sent(other, 1, why="x")["concurrency"] == {"key": "of-5.0", "limit": 3}
    assert "unique_key" not in sent(other, 1)
    assert "concurrency" not in sent(charge, 1, concurrency=lambda: None)
    template = charge.template((1,), {}, {})
    assert template.concurrency is not None
    assert template.concurrency is not msgspec.UNSET
    assert template.concurrency.key == "account-1"
    assert template.fair_key == "tenant-1"


def test_a_key_of_an_argument_that_the_job_does_not_take_is_refused_where_it_is_written() -> None:
    app = Foliot("http://127.0.0.1:1")
    with pytest.raises(TypeError, match="charge: concurrency asks for customer, which the job does not take"):

        @app.job(concurrency=lambda customer: (customer, 1))
        def charge(account: int) -> None: ...

    with pytest.raises(TypeError, match="by place only"):

        @app.job(unique_key=lambda account, /: str(account))
        def pay(account: int) -> None: ...
