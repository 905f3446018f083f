"""Schedules declared in code: what `@app.schedule` takes, makes and refuses."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest

from foliot import Foliot, JobContext
from foliot.wire import CalendarBody, ScheduleBody


@pytest.fixture
def app() -> Iterator[Foliot]:
    app = Foliot("http://127.0.0.1:1")
    yield app
    app.close()


def job_of(body: ScheduleBody) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body.job))


def test_a_job_is_declared_to_run_by_a_schedule_and_stays_a_job(app: Foliot) -> None:
    @app.schedule(cron="0 9 * * MON-FRI", timezone="Europe/Madrid")
    @app.job(queue="reports")
    def report(context: JobContext, kind: str = "daily") -> str:
        return kind

    [body] = app.schedules
    assert (body.schedule_id, body.cron, body.timezone) == ("report", "0 9 * * MON-FRI", "Europe/Madrid")
    assert job_of(body) == {"job_type": "report", "payload": {}, "queue": "reports"}
    assert report.name in app.handlers


def test_a_plain_function_becomes_a_job(app: Foliot) -> None:
    @app.schedule(every=timedelta(minutes=5))
    async def tidy() -> None: ...

    assert app.handlers["tidy"].isolation == "async"
    assert app.schedules[0].every == 300
    assert tidy.name == "tidy"


def test_every_field_arrives(app: Foliot) -> None:
    start = datetime(2030, 1, 1, tzinfo=timezone(timedelta(hours=1)))

    @app.schedule(
        schedule_id="pay@month",
        args=(3,),
        kwargs={"currency": "EUR"},
        rrule="FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9",
        timezone="Europe/Madrid",
        start_time=start,
        end_time=start + timedelta(days=999),
        max_runs=12,
        jitter="5s",
        overlap="queue",
        max_concurrency=2,
        catch_up="all",
        catch_up_window=timedelta(hours=6),
        calendar={"country": "ES", "subdivision": "MD", "except": ["2030-12-24"]},
        on_holiday="previous",
        paused=True,
        priority="high",
        queue=None,
        tags=["money"],
        timeout=timedelta(minutes=2),
        retry=5,
        owner="treasury",
        fair_key=lambda currency: f"tenant-{currency}",
    )
    @app.job(queue="slow", name="pay")
    def pay_out(count: int, currency: str) -> None: ...

    [body] = app.schedules
    assert body == ScheduleBody(
        schedule_id="pay@month",
        job=body.job,
        rrule="FREQ=MONTHLY;BYMONTHDAY=-1;BYHOUR=9",
        timezone="Europe/Madrid",
        start_time=start,
        end_time=start + timedelta(days=999),
        max_runs=12,
        jitter="5s",
        overlap="queue",
        max_concurrency=2,
        catch_up="all",
        catch_up_window=21_600.0,
        calendar=CalendarBody(country="ES", subdivision="MD", closed=["2030-12-24"]),
        on_holiday="previous",
        paused=True,
    )
    job = job_of(body)
    assert job.pop("retry")["max_attempts"] == 5
    assert job == {
        "job_type": "pay",
        "payload": {"count": 3, "currency": "EUR"},
        "priority": "high",
        "tags": ["money"],
        "timeout": 120.0,
        "owner": "treasury",
        "fair_key": "tenant-EUR",
    }


def test_one_function_may_run_by_several_schedules(app: Foliot) -> None:
    @app.schedule(schedule_id="noon", cron="0 12 * * *")
    @app.schedule(schedule_id="night", cron="0 0 * * *")
    def tidy() -> None: ...

    assert [body.schedule_id for body in app.schedules] == ["night", "noon"]
    with pytest.raises(ValueError, match="two schedules noon"):
        app.schedule(schedule_id="noon", every=60)(tidy)

    def other() -> None: ...

    with pytest.raises(ValueError, match="two schedules night"):
        app.schedule(schedule_id="night", every=60)(other)


def test_a_function_that_is_defined_again_replaces_its_schedule(app: Foliot) -> None:
    for hours in (1, 2):

        @app.schedule(every=f"{hours}h")
        def tidy() -> None: ...

    assert [body.every for body in app.schedules] == ["2h"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "tidy: cron: exactly one of"),
        ({"cron": "@daily", "every": 60}, "tidy: every: exactly one of"),
        ({"cron": "0 0 31 2 *"}, "tidy: cron: "),
        ({"cron": "often"}, "tidy: cron: "),
        ({"every": 0}, "tidy: every: "),
        ({"every": "soon"}, "tidy: every: "),
        ({"every": timedelta(seconds=-1)}, "tidy: every: "),
        ({"rrule": "FREQ=NEVER"}, "tidy: rrule: "),
        ({"cron": "@daily", "timezone": "Mars/Olympus"}, "tidy: timezone: "),
        ({"cron": "@daily", "start_time": datetime(2030, 1, 1)}, "tidy: start_time: must be a datetime with a time"),  # noqa: DTZ001
        ({"cron": "@daily", "end_time": "2030-01-01T00:00:00Z"}, "tidy: end_time: must be a datetime"),
        ({"every": 60, "max_runs": 0}, "tidy: max_runs: "),
        ({"every": 60, "jitter": "x"}, "tidy: jitter: "),
        ({"every": 60, "overlap": "pile"}, "tidy: overlap: "),
        ({"every": 60, "max_concurrency": 0}, "tidy: max_concurrency: "),
        ({"every": 60, "catch_up": "some"}, "tidy: catch_up: "),
        ({"every": 60, "catch_up_window": "x"}, "tidy: catch_up_window: "),
        ({"cron": "@daily", "calendar": {"country": "Atlantis"}}, r"tidy: calendar\.country: "),
        ({"cron": "@daily", "calendar": {"land": "ES"}}, "tidy: calendar: .*land"),
        ({"cron": "@daily", "on_holiday": "next"}, "tidy: on_holiday: "),
        ({"every": 60, "paused": "yes"}, "tidy: paused: "),
        ({"every": 60, "queue": "no spaces"}, r"tidy: job\.queue: "),
        ({"every": 60, "timeout": "x"}, "timeout: "),
        ({"every": 60, "schedule_id": "no spaces"}, "no spaces: schedule_id: "),
    ],
)
def test_what_can_not_be_meant_is_refused_where_it_is_written(app: Foliot, fields: Any, said: str) -> None:
    def tidy() -> None: ...

    with pytest.raises(ValueError, match=f"^{said}"):
        app.schedule(**fields)(tidy)
    assert app.schedules == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "'kind'"),
        ({"args": (1,)}, "'kind'.*int"),
        ({"kwargs": {"kind": "x", "mind": "y"}}, "mind"),
        ({"args": ("x",), "delay": 5}, "no field 'delay'"),
        ({"args": ("x",), "corn": "@daily"}, "no field 'corn'"),
    ],
)
def test_arguments_are_checked_against_the_signature_at_once(app: Foliot, fields: Any, said: str) -> None:
    def report(kind: str) -> None: ...

    with pytest.raises(TypeError, match=said):
        app.schedule(every=60, **fields)(report)


def test_a_job_with_its_own_id_or_time_can_not_run_by_a_schedule(app: Foliot) -> None:
    @app.job(job_id="the-one", delay=5)
    def tidy() -> None: ...

    with pytest.raises(TypeError, match="leave out delay, job_id"):
        app.schedule(every=60)(tidy)


def test_a_schedule_that_is_over_does_not_break_its_program(app: Foliot) -> None:
    @app.schedule(cron="@daily", end_time=datetime(2020, 1, 1, tzinfo=UTC))
    def tidy() -> None: ...

    @app.schedule(rrule="FREQ=DAILY;UNTIL=20200101T000000Z")
    def other() -> None: ...

    assert len(app.schedules) == 2


def test_a_job_of_another_app_is_refused(app: Foliot) -> None:
    def tidy() -> None: ...

    other = Foliot("http://127.0.0.1:2").job(tidy)
    with pytest.raises(ValueError, match="another app"):
        app.schedule(every=60)(other)


def test_a_job_on_top_of_its_schedule_is_refused_with_the_right_order(app: Foliot) -> None:
    async def tidy() -> None: ...

    with pytest.raises(TypeError, match=r"write @app\.schedule above @app\.job"):
        app.job(app.schedule(every=60)(tidy))


def test_a_schedule_after_the_start_of_an_embedded_app_is_refused(embedded: Foliot) -> None:
    @embedded.job
    def tidy() -> None: ...

    embedded.start()
    with pytest.raises(RuntimeError, match="define schedules before"):
        embedded.schedule(every=60)(tidy)


def test_an_app_without_schedules_does_not_load_what_they_need() -> None:
    code = "import sys, foliot; foliot.Foliot(); print('holidays' in sys.modules, 'dateutil' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=15, check=True)
    assert done.stdout == "False False\n"
