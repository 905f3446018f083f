"""A whole app against a clock that jumps: schedules, jobs, retries, deadlines, outages, each at its moment."""

import asyncio
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foliot import Fatal, Foliot, JobContext, JobFailed, Retry
from foliot.sdk.failures import BadInput, NotFound
from foliot.testing import VirtualTime, virtual

START = datetime(2027, 1, 1, tzinfo=UTC)
Open = Callable[..., VirtualTime]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_quarter_of_weekdays_and_month_ends_runs_on_its_days(app: Foliot, foliot_time: Open) -> None:
    seen: list[tuple[str, datetime]] = []

    @app.schedule(schedule_id="pay-out", cron="0 9 LW * *", timezone="Europe/Madrid")
    @app.job
    def pay_out() -> None:
        seen.append(("pay-out", time.now))

    @app.schedule(schedule_id="report", cron="30 8 * * MON-FRI", timezone="Europe/Madrid")
    @app.job
    async def report() -> None:
        seen.append(("report", time.now))

    time = foliot_time(app, start=START)
    time.advance(days=90)
    assert time.now == at("2027-04-01T00:00")
    paid = ["2027-01-29T08:00", "2027-02-26T08:00", "2027-03-31T07:00"]
    assert [when for name, when in seen if name == "pay-out"] == list(map(at, paid))
    weekdays = [START + timedelta(days=day) for day in range(90) if (START + timedelta(days=day)).weekday() < 5]
    assert [when.date() for name, when in seen if name == "report"] == [day.date() for day in weekdays]
    assert [when for _, when in seen] == sorted(when for _, when in seen)
    runs = time.runs("pay-out")
    assert [(run.due_time, run.verdict) for run in runs] == [(due, "ran") for due in map(at, paid)]
    assert {job.status for job in time.jobs()} == {"completed"}
    assert [job.job_id for job in time.jobs("pay_out")] == [run.job_id for run in runs]


def test_the_same_test_does_the_same_again(app: Foliot) -> None:
    @app.schedule(schedule_id="shaky", every="7m", jitter="3m")
    @app.job(retry={"max_attempts": 3, "initial": "10s"})
    def shaky(context: JobContext) -> str:
        if context.attempt < 2:
            raise ValueError("once more")
        return context.idempotency_key

    def play() -> list[Any]:
        with virtual(app, start=START) as time:
            time.advance(hours=5)
            return [time.jobs(), time.runs("shaky")]

    assert play() == play()


def test_what_the_app_submits_runs_when_it_is_due(app: Foliot, foliot_time: Open) -> None:
    @app.job
    def double(number: int, context: JobContext) -> int:
        ran.append((time.now, context.schedule_time))
        return 2 * number

    ran: list[tuple[datetime, datetime]] = []
    time = foliot_time(app, start=START)
    now, later = double.submit(1), double.submit(2, delay="36h")
    named = double.submit(3, at=at("2027-03-01T12:00"), job_id="mine")
    assert (now.status(), later.status()) == ("queued", "scheduled")
    time.advance(0)
    assert now.result() == 2
    assert [when for when, _ in ran] == [START]
    time.advance(hours=36)
    assert later.result() == 4
    time.advance_to(at("2027-03-01T11:59"))
    assert named.status() == "scheduled"
    time.advance(minutes=1)
    assert app.client.result("mine") == 6
    assert all(when == due for when, due in ran)


def test_a_failure_is_tried_again_after_its_backoff_and_then_stays_failed(app: Foliot, foliot_time: Open) -> None:
    tries: list[datetime] = []

    @app.job(retry={"max_attempts": 3, "backoff": "exponential", "initial": "1m", "jitter": 0})
    def shaky() -> None:
        tries.append(time.now)
        raise ValueError(f"failure {len(tries)}")

    time = foliot_time(app, start=START)
    job = shaky.submit()
    time.advance(minutes=1)
    assert (job.status(), len(tries)) == ("retrying", 2)
    time.advance(days=1)
    assert tries == [START, START + timedelta(minutes=1), START + timedelta(minutes=3)]
    assert [job.job_id for job in time.jobs(status="failed")] == [job.job_id]
    with pytest.raises(JobFailed, match="failure 3"):
        job.result()
    assert [each.status for each in app.client.executions(job.job_id)] == ["retriable_failure"] * 3
    assert [line.log_time for line in job.logs()] == tries
    assert "ValueError: failure 1" in job.logs()[0].log_message


def test_a_handler_says_when_to_try_again_and_when_not_to(app: Foliot, foliot_time: Open) -> None:
    @app.job(retry=5)
    async def fetch(context: JobContext) -> datetime:
        if context.attempt == 1:
            raise Retry("busy", after=timedelta(hours=2))
        return time.now

    @app.job(retry=5)
    def refuse() -> None:
        raise Fatal("never", code="no_such_account")

    time = foliot_time(app, start=START)
    fetched, refused = fetch.submit(), refuse.submit()
    time.advance(days=1)
    assert fetched.result() == START + timedelta(hours=2)
    assert (refused.info().status, refused.info().reason, refused.info().attempt) == ("failed", "no_such_account", 1)


def test_a_job_that_can_not_start_by_its_deadline_expires_then(app: Foliot, foliot_time: Open) -> None:
    time = foliot_time(app, start=START)
    app.submit("elsewhere", job_id="late", deadline=START + timedelta(hours=1))
    time.advance(minutes=59)
    assert [job.status for job in time.jobs("elsewhere")] == ["queued"]  # no function here is of that type
    time.advance(minutes=1)
    (job,) = time.jobs("elsewhere")
    assert (job.status, job.reason, job.end_time) == ("failed", "expired", START + timedelta(hours=1))


@pytest.mark.parametrize(
    ("catch_up", "verdicts"),
    [
        ("none", [("ran", 1), ("missed", 3), ("ran", 1)]),
        ("latest", [("ran", 1), ("missed", 2), ("caught_up", 1), ("ran", 1)]),
        ("all", [("ran", 1), ("caught_up", 1), ("caught_up", 1), ("caught_up", 1), ("ran", 1)]),
    ],
)
def test_after_an_outage_each_schedule_catches_up_as_it_says(
    app: Foliot, foliot_time: Open, catch_up: Any, verdicts: list[tuple[str, int]]
) -> None:
    ran: list[datetime] = []

    @app.schedule(schedule_id="hourly", cron="0 * * * *", catch_up=catch_up, catch_up_window="1d")
    @app.job
    def hourly() -> None:
        ran.append(time.now)

    time = foliot_time(app, start=START)
    time.advance(minutes=90)
    back = time.now + timedelta(hours=3)
    time.away(hours=3)
    assert time.now == back
    time.advance_to(START + timedelta(hours=5))
    assert [(run.verdict, run.count) for run in time.runs("hourly")] == verdicts
    assert ran[1:-1] == [back] * sum(verdict == "caught_up" for verdict, _ in verdicts)


@pytest.mark.parametrize(
    ("overlap", "ledger", "statuses"),
    [
        ("skip", ["ran", "skipped", "ran", "skipped"], ["completed", "running"]),
        ("queue", ["ran", "ran", "ran", None], ["completed", "completed", "running"]),
        ("replace", ["ran", "ran", "ran", "ran"], ["cancelled", "cancelled", "cancelled", "running"]),
        ("allow", ["ran", "ran", "ran", "ran"], ["completed", "completed", "running", "running"]),
    ],
)
def test_a_run_that_takes_long_meets_the_next_due_time(
    app: Foliot, foliot_time: Open, overlap: Any, ledger: list[str | None], statuses: list[str]
) -> None:
    @app.schedule(schedule_id="slow", cron="0 * * * *", overlap=overlap)
    @app.job(timeout="2h")
    def slow() -> None: ...

    time = foliot_time(app, start=START)
    time.takes(slow, minutes=90)
    time.advance(hours=4, minutes=10)
    assert [run.verdict for run in time.runs("slow")] == ledger
    assert [job.status for job in time.jobs("slow")] == statuses


def test_an_attempt_ends_as_late_as_it_takes_and_is_out_of_time_after_its_timeout(
    app: Foliot, foliot_time: Open
) -> None:
    @app.job(timeout="10m", retry=1)
    def work(context: JobContext, minutes: float) -> str:
        context.progress(0.5, "half")
        context.wait_cancelled(minutes * 60)
        return "done"

    time = foliot_time(app, start=START)
    short, long = work.submit(minutes=4), work.submit(minutes=11)
    time.advance(minutes=3)
    assert (short.status(), long.status()) == ("running", "running")
    time.advance(hours=1)
    assert short.result() == "done"
    assert short.info().end_time == START + timedelta(minutes=4)
    assert (long.info().status, long.info().reason) == ("failed", "timed_out")
    assert long.info().end_time == START + timedelta(minutes=10)


def test_a_running_job_is_cancelled_at_the_moment_of_asking(app: Foliot, foliot_time: Open) -> None:
    @app.job
    def work(context: JobContext) -> bool:
        return context.wait_cancelled(None)

    time = foliot_time(app, start=START)
    job = work.submit()
    time.advance(minutes=5)
    assert job.cancel().status == "cancelling"
    time.advance(minutes=1)
    assert (job.status(), job.info().end_time) == ("cancelled", START + timedelta(minutes=5))


def test_jobs_that_are_due_together_run_by_priority_one_after_another(app: Foliot, foliot_time: Open) -> None:
    order: list[str] = []

    @app.job
    def note(word: str) -> None:
        order.append(word)
        if word == "first":
            note.submit("urgent", priority="high")

    time = foliot_time(app, start=START)
    for word in ("first", "second", "third"):
        note.submit(word, priority="high" if word == "first" else "low", delay=60)
    time.advance(60)
    assert order == ["first", "urgent", "second", "third"]


def test_a_plain_function_runs_on_the_tests_own_thread(app: Foliot, foliot_time: Open) -> None:
    threads: list[str] = []

    @app.job
    def here() -> None:
        threads.append(threading.current_thread().name)

    time = foliot_time(app, start=START)
    here.submit()
    time.advance(0)
    assert threads == [threading.current_thread().name]


async def test_a_test_with_an_event_loop_awaits_the_time(app: Foliot, foliot_time: Open) -> None:
    loops: list[object] = []
    pages: asyncio.Queue[str] = asyncio.Queue()

    @app.schedule(schedule_id="read", every="1h", max_runs=2)
    @app.job
    async def read() -> None:
        loops.append(asyncio.get_running_loop())
        await pages.put("page")
        await store.aio.submit(len(loops))

    @app.job
    def store(number: int) -> int:
        app.submit("elsewhere")  # a plain function is on a thread without an event loop
        return number

    time = foliot_time(app, start=START)
    await time.aio.advance(hours=3)
    assert loops == [asyncio.get_running_loop()] * 2
    assert pages.qsize() == 2
    assert [job.status for job in time.jobs("store")] == ["completed", "completed"]
    await time.aio.away(days=1)
    await time.aio.advance_to(START + timedelta(days=2))
    assert time.now == START + timedelta(days=2)
    with pytest.raises(RuntimeError, match=r"\.aio"):
        time.advance(1)


def test_deferred_calls_wait_for_the_virtual_time(app: Foliot, foliot_time: Open) -> None:
    made: list[tuple[str, datetime]] = []

    def note(word: str) -> str:
        made.append((word, time.now))
        if word == "first":
            _ = app.call_later(30, note, "from within")
        return word

    async def note_async(word: str) -> None:
        made.append((word, time.now))

    time = foliot_time(app, start=START)
    first = app.call_later(60, note, "first")
    _ = app.call_later(timedelta(hours=1), note_async, "async")
    dropped = app.call_later(61, note, "never")
    assert dropped.cancel()
    time.advance(59)
    assert not first.done()
    time.advance(hours=2)
    assert first.result() == "first"
    assert made == [
        ("first", START + timedelta(seconds=60)),
        ("from within", START + timedelta(seconds=90)),
        ("async", START + timedelta(hours=1)),
    ]
    late = app.call_later(3600, note, "too late")
    app.close()
    assert late.cancelled()


def test_a_plain_function_is_handed_in_as_it_is_where_the_app_is_embedded(foliot_time: Open) -> None:
    app = Foliot("sqlite:///:memory:")
    time = foliot_time(app, start=START)
    job = app.submit(add_up, [1, 2], at=START + timedelta(days=1))
    time.advance(days=1)
    assert job.result() == 3
    other = app.submit(shout, "hey")
    time.advance(0)
    assert other.result() == "HEY"
    assert [job.job_type for job in time.jobs()] == [f"{__name__}.shout", f"{__name__}.add_up"][::-1]


def add_up(numbers: list[int]) -> int:
    return sum(numbers)


def shout(word: str) -> str:
    return word.upper()


def test_an_app_is_given_back_as_it_was(foliot_time: Open) -> None:
    app = Foliot("sqlite:///:memory:")

    @app.job
    def one() -> int:
        return 1

    before = one.submit()
    assert before.result(10) == 1
    with virtual(app, start=START) as time:
        inside = one.submit()
        with pytest.raises(NotFound):
            before.status()
        time.advance(0)
        assert inside.result() == 1
    assert before.status() == "completed"
    with pytest.raises(NotFound):
        inside.status()
    app.close()


def test_the_app_may_be_closed_meanwhile(app: Foliot, foliot_time: Open) -> None:
    @app.job
    def one() -> int:
        return 1

    time = foliot_time(app, start=START)
    with app:
        first = one.submit()
    time.advance(1)
    assert first.result() == one(), "the world is the test's, not the app's"


def test_only_the_test_moves_the_time_and_only_forward(app: Foliot, foliot_time: Open) -> None:
    @app.job(retry=1)
    def meddle() -> None:
        time.advance(1)

    time = foliot_time(app, start=START)
    job = meddle.submit()
    time.advance(1)
    assert "only the test moves it" in str(job.info().last_error)
    with pytest.raises(ValueError, match="only goes forward"):
        time.advance_to(START)
    with pytest.raises(ValueError, match="only goes forward"):
        time.advance(-1)
    with pytest.raises(TypeError, match="how long"):
        time.advance()
    with pytest.raises(TypeError, match="how long"):
        time.advance(1, days=1)
    with pytest.raises(ValueError, match="time zone"):
        time.advance_to(datetime(2028, 1, 1))  # noqa: DTZ001
    with pytest.raises(ValueError, match="up to 2059"):
        time.advance(days=365 * 40)
    with pytest.raises(RuntimeError, match="under a virtual clock already"):
        foliot_time(app, start=START)
    assert time.now == START + timedelta(seconds=1)


def test_work_without_end_at_one_moment_is_named(
    app: Foliot, foliot_time: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foliot.testing.world.MOST_CALLS", 50)

    @app.job
    def again() -> None:
        again.submit()

    time = foliot_time(app, start=START)
    again.submit()
    with pytest.raises(RuntimeError, match=r"and no end.*again"):
        time.advance(1)


def test_an_outcome_of_pytest_ends_the_test_and_not_the_job(app: Foliot, foliot_time: Open) -> None:
    @app.job
    def check() -> None:
        pytest.fail("seen")

    time = foliot_time(app, start=START)
    check.submit()
    with pytest.raises(pytest.fail.Exception, match="seen"):
        time.advance(1)


def test_a_schedule_that_is_over_is_told_in_the_log_as_at_a_start(
    app: Foliot, foliot_time: Open, caplog: pytest.LogCaptureFixture
) -> None:
    @app.schedule(schedule_id="over", every="1h", end_time=START - timedelta(days=1))
    @app.schedule(schedule_id="hourly", every="1h")
    @app.job
    def hourly() -> None: ...

    time = foliot_time(app, start=START)
    time.advance(hours=2)
    assert "schedule over could not be applied: end_time" in caplog.text
    assert len(time.runs("hourly")) == 2


def test_the_whole_api_is_there(app: Foliot, foliot_time: Open) -> None:
    @app.schedule(schedule_id="daily", cron="@daily")
    @app.job
    def daily() -> None: ...

    time = foliot_time(app, start=START)
    app.client.pause_schedule("daily")
    time.advance(days=2)
    app.client.resume_schedule("daily")
    app.client.trigger_schedule("daily")
    time.advance(hours=1)
    app.client.delete_schedule("daily")
    time.advance(days=2)
    assert [job.status for job in time.jobs("daily")] == ["completed"]
    with pytest.raises(BadInput):
        app.submit("no such type!")


def test_jobs_that_depend_on_jobs_run_after_them(app: Foliot, foliot_time: Open) -> None:
    seen: list[str] = []

    @app.job
    def step(name: str, *, fail: bool = False) -> None:
        seen.append(name)
        if fail:
            raise Fatal("no")

    time = foliot_time(app, start=START)
    first = step.submit("first", delay="1h")
    broken = step.submit("broken", fail=True)
    step.submit("second", depends_on=[first])
    never = step.submit("never", depends_on=[broken])
    time.advance(minutes=59)
    assert (seen, never.status()) == (["broken"], "cancelled")
    time.advance(minutes=1)
    assert seen == ["broken", "first", "second"]


def test_jobs_of_a_concurrency_key_run_one_after_another(app: Foliot, foliot_time: Open) -> None:
    seen: list[datetime] = []

    @app.job(concurrency=("till", 1))
    def pay() -> None:
        seen.append(time.now)

    time = foliot_time(app, start=START)
    time.takes(pay, minutes=10)
    for delay in ("0s", "0s", "5m"):
        pay.submit(delay=delay)
    time.advance(hours=1)
    assert seen == [START, START + timedelta(minutes=10), START + timedelta(minutes=20)]
