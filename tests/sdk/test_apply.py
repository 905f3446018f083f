"""Declared schedules made true: what is found to differ, and what is done about it, against a real node."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from foliot import AsyncClient, Client, Foliot
from foliot.domain.errors import BadInput
from foliot.sdk.apply import Difference, apply_at_start, carry_out, find_existing, plan
from foliot.sdk.failures import Stale
from foliot.wire import (
    CalendarBody,
    ConcurrencyBody,
    RetryBody,
    ScheduleBody,
    ScheduleUpdateBody,
    SubmitBody,
    TemplateBody,
)
from tests.sdk.served_node import KEY, ServedNode

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2050, 1, 1, 12, tzinfo=UTC)
JOB = TemplateBody(job_type="note")
YEARLY: dict[str, Any] = {"cron": "0 0 1 1 *", "job": JOB}


def body(schedule_id: str | None = "a", **fields: Any) -> ScheduleBody:
    return ScheduleBody(schedule_id=schedule_id, **{**YEARLY, **fields})


def job(**fields: Any) -> dict[str, Any]:
    return {"job": TemplateBody(job_type="note", **fields)}


@pytest.fixture
def client(app: Foliot) -> Client:
    return app.client


def planned(client: Client, declared: Sequence[ScheduleBody], **more: Any) -> list[Difference]:
    existing = client.thread.run(lambda: find_existing(client.aio, declared, prune=more.get("prune", False)))
    return plan(declared, existing, **more)


def applied(client: Client, declared: Sequence[ScheduleBody], **more: Any) -> list[str]:
    differences = planned(client, declared, **more)
    done = client.thread.run(lambda: carry_out(client.aio, differences))
    return [each.action for each in done]


def test_secret_values_are_handed_in_each_time_and_never_shown(client: Client) -> None:
    def declared(password: str) -> list[ScheduleBody]:
        payload = Raw(msgspec.json.encode({"user": "u", "password": password}))
        return [body("secret", **job(payload=payload, secret_fields=["password"]))]

    made = planned(client, declared("hunter2"))
    assert "hunter2" not in str(made[0].fields)
    assert applied(client, declared("hunter2")) == ["create"]
    again = planned(client, declared("hunter2"))
    assert again[0].fields == {"job.payload": ({"user": "u", "password": "***"},) * 2}
    assert applied(client, declared("hunter2")) == ["change"]
    assert client.schedule("secret").version == 1  # the node knows that nothing has changed
    assert applied(client, declared("hunter3")) == ["change"]
    assert client.schedule("secret").version == 2
    assert applied(client, declared("***")) == ["same"]


def test_what_is_missing_is_made_and_then_the_same(client: Client) -> None:
    declared = [body("a"), body("b", cron=None, every="90s", **job(queue="mail"))]
    made = planned(client, declared)
    assert [(each.action, each.schedule_id) for each in made] == [("create", "a"), ("create", "b")]
    assert made[1].fields == {"every": (None, 90), "job.job_type": (None, "note"), "job.queue": (None, "mail")}
    assert applied(client, declared) == ["create", "create"]
    assert applied(client, declared) == ["same", "same"]
    assert client.schedule("b").version == 1


FULL = body(
    timezone="Europe/Madrid",
    start_time=NOON,
    end_time=NOON + timedelta(days=999),
    max_runs=99,
    jitter=60,
    overlap="queue",
    max_concurrency=2,
    catch_up="all",
    catch_up_window=7200,
    calendar=CalendarBody(country="ES", weekend=["sat", "sun"], closed=["2050-12-24", "2050-12-31"]),
    on_holiday="next",
    paused=True,
    job=TemplateBody(
        job_type="note",
        payload=Raw(b'{"a": 1, "b": [true, null]}'),
        priority="high",
        queue="mail",
        retry=RetryBody(max_attempts=5, initial=60, delays=["1m"]),
        timeout=120,
        tags=["x"],
        owner="me",
        resources={"memory": "2Ki", "cpu": 0.5},
        requires={"zone": "eu", "disk": "ssd"},
        concurrency=ConcurrencyBody(key="mail", limit=2),
        unique_key="daily",
        fair_key="tenant-a",
    ),
)
ALIKE = body(
    cron="0  0 1 1 *",
    timezone="Europe/Madrid",
    start_time=NOON.astimezone(timezone(timedelta(hours=3))),
    end_time=NOON + timedelta(days=999),
    max_runs=99,
    jitter="1m",
    overlap="queue",
    max_concurrency=2,
    catch_up="all",
    catch_up_window="2h",
    calendar=CalendarBody(country="ES", weekend=["sun", "sat"], closed=["2050-12-31", "2050-12-24"]),
    on_holiday="next",
    paused=True,
    job=TemplateBody(
        job_type="note",
        payload=Raw(b'{"b":[true,null],"a":1}'),
        priority=8,
        queue="mail",
        retry=RetryBody(max_attempts=5, initial="60s", delays=[60]),
        timeout="2m",
        tags=["x"],
        owner="me",
        resources={"slot": 1, "cpu": "0.5", "memory": 2048},
        requires={"disk": "ssd", "zone": "eu"},
        concurrency=ConcurrencyBody(limit=2, key="mail"),
        unique_key="daily",
        fair_key="tenant-a",
    ),
)
DEFAULTS = body(
    timezone="UTC",
    jitter="0s",
    overlap="skip",
    max_concurrency=1,
    catch_up="latest",
    catch_up_window="1h",
    paused=False,
    job=TemplateBody(
        job_type="note",
        payload=Raw(b"{}"),
        priority="medium",
        queue="default",
        retry=RetryBody(),
        timeout="1h",
        tags=[],
        owner=None,
        resources={"slot": 1},
        requires={},
        concurrency=None,
        unique_key=None,
        fair_key=None,
    ),
)


@pytest.mark.parametrize(
    ("there", "declared"),
    [
        (FULL, ALIKE),
        (ALIKE, FULL),
        (body(), DEFAULTS),
        (DEFAULTS, body()),
        (body(calendar=CalendarBody()), body(calendar=CalendarBody(weekend=["sat", "sun"]), on_holiday="skip")),
    ],
)
def test_what_is_meant_is_compared_not_how_it_is_written(
    client: Client, there: ScheduleBody, declared: ScheduleBody
) -> None:
    client.create_schedule(there)
    assert [(each.action, each.fields) for each in planned(client, [declared])] == [("same", {})]


CHANGES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({}, {"cron": "@daily"}, {"cron": ("0 0 1 1 *", "@daily")}),
    ({}, {"cron": None, "every": "1h"}, {"cron": ("0 0 1 1 *", None), "every": (None, 3600)}),
    ({"start_time": NOON}, {}, {"start_time": (NOON, None)}),
    ({"max_runs": 3, "jitter": 5}, {"max_runs": 4}, {"max_runs": (3, 4), "jitter": (5, 0)}),
    ({"overlap": "allow"}, {}, {"overlap": ("allow", "skip")}),
    ({}, {"timezone": "Europe/Madrid"}, {"timezone": ("UTC", "Europe/Madrid")}),
    (
        {"calendar": CalendarBody(country="ES"), "on_holiday": "next"},
        {},
        {"calendar": ({"country": "ES"}, None), "on_holiday": ("next", None)},
    ),
    (
        {"cron": "@daily", "calendar": CalendarBody(country="ES"), "on_holiday": "next"},
        {"cron": "@daily", "calendar": CalendarBody(country="ES")},
        {"on_holiday": ("next", "skip")},
    ),
    ({"paused": True}, {"paused": False}, {"paused": (True, False)}),
    ({}, {"paused": True}, {"paused": (False, True)}),
    (job(payload=Raw(b'{"a":1}')), job(payload=Raw(b'{"a":true}')), {"job.payload": ({"a": 1}, {"a": True})}),
    (
        job(queue="mail", priority=1),
        job(priority="low"),
        {"job.queue": ("mail", "default"), "job.priority": (1, "low")},
    ),
    ({}, {"job": TemplateBody(job_type="other")}, {"job.job_type": ("note", "other")}),
]


@pytest.mark.parametrize(("there", "declared", "fields"), CHANGES)
def test_what_differs_is_changed_to_what_is_declared(
    client: Client, there: dict[str, Any], declared: dict[str, Any], fields: dict[str, Any]
) -> None:
    client.create_schedule(body(**there))
    [difference] = planned(client, [body(**declared)])
    assert (difference.action, difference.fields) == ("change", fields)
    assert applied(client, [body(**declared)]) == ["change"]
    assert planned(client, [body(**declared)])[0].fields == {}


def test_a_hold_stays_where_the_declaration_says_nothing_of_it(client: Client) -> None:
    client.create_schedule(body())
    client.pause_schedule("a")
    assert applied(client, [body()]) == ["same"]
    assert applied(client, [body(cron="@daily")]) == ["change"]
    assert client.schedule("a").paused is True


def test_nothing_is_deleted_unless_asked_and_then_only_under_the_prefix(client: Client) -> None:
    for name in ("mine-1", "mine-2", "theirs"):
        client.create_schedule(body(name))
    assert applied(client, [body("mine-1")]) == ["same"]
    assert len(client.schedules()) == 3
    [_, gone] = planned(client, [body("mine-1")], prune=True, prefix="mine-")
    assert (gone.action, gone.schedule_id, gone.body) == ("delete", "mine-2", None)
    assert applied(client, [body("mine-1")], prune=True, prefix="mine-") == ["same", "delete"]
    assert {each.schedule_id for each in client.schedules()} == {"mine-1", "theirs"}
    assert applied(client, [body("mine-1")], prune=True) == ["same", "delete"]
    assert [each.schedule_id for each in client.schedules()] == ["mine-1"]


def test_what_was_changed_since_it_was_looked_at_is_not_deleted(client: Client) -> None:
    client.create_schedule(body())
    [gone] = planned(client, [], prune=True)
    client.change_schedule("a", ScheduleUpdateBody(jitter=1))
    with pytest.raises(Stale):
        client.thread.run(lambda: carry_out(client.aio, [gone]))
    client.delete_schedule("a")
    assert client.thread.run(lambda: carry_out(client.aio, [gone])) == [gone]


@pytest.mark.parametrize(
    ("declared", "prefix", "said"),
    [
        ([body(None)], "", "schedule_id: is needed"),
        ([body("x"), body("y"), body("x")], "", "more than once: x"),
        ([body("theirs")], "mine-", "'theirs' does not begin with the prefix 'mine-'"),
        ([body(cron=None, every="soon")], "", "a: every: 'soon' is not a duration"),
    ],
)
def test_a_declaration_that_can_not_be_meant_is_named(declared: list[ScheduleBody], prefix: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        plan(declared, [], prefix=prefix)


def test_a_plan_that_came_too_late_is_made_anew(client: Client) -> None:
    [create] = planned(client, [body(jitter=1)])
    client.create_schedule(body(jitter=2))
    [done] = client.thread.run(lambda: carry_out(client.aio, [create]))
    assert (done.action, done.fields) == ("change", {"jitter": (2, 1)})

    [change] = planned(client, [body(jitter=3)])
    client.change_schedule("a", ScheduleUpdateBody(jitter=3))
    [done] = client.thread.run(lambda: carry_out(client.aio, [change]))
    assert done.action == "same"

    [change] = planned(client, [body(jitter=4)])
    client.delete_schedule("a")
    [done] = client.thread.run(lambda: carry_out(client.aio, [change]))
    assert done.action == "create"
    assert client.schedule("a").jitter == 4


async def test_many_that_start_at_once_make_it_once(node: ServedNode) -> None:
    async with AsyncClient(node.url, KEY) as client:
        await client.create_schedule(body("b"))
        declared = [body("a"), body("b", jitter=1)]
        await asyncio.gather(*(apply_at_start(client, declared) for _ in range(10)))
        assert [(each.schedule_id, each.version) async for each in client.all_schedules()] == [("a", 1), ("b", 2)]


async def test_one_that_is_refused_is_told_and_holds_up_no_other(
    node: ServedNode, caplog: pytest.LogCaptureFixture
) -> None:
    over = body("over", end_time=datetime(2020, 1, 1, tzinfo=UTC))
    async with AsyncClient(node.url, KEY) as client:
        await apply_at_start(client, [over, body("b")])
        assert [each.schedule_id for each in await client.schedules()] == ["b"]
    assert "schedule over could not be applied: end_time: " in caplog.text


async def test_a_worker_without_the_right_to_declare_is_told_once_which_roles_have_it(
    node: ServedNode, caplog: pytest.LogCaptureFixture
) -> None:
    async with AsyncClient(node.url, KEY) as admin:
        await admin.create_schedule(body("same"))
        worker = (await admin.create_key("mailer", "worker")).key
        narrow = (await admin.create_key("narrow", "operator", queues=["mail"])).key
    declared = [body("a"), body("same"), body("b"), body("in-reach", **job(queue="mail"))]
    async with AsyncClient(node.url, worker) as client:
        await apply_at_start(client, declared)
        assert [each.schedule_id for each in await client.schedules()] == ["same"]
    (record,) = [each for each in caplog.records if each.name == "foliot.schedules"]
    assert "these schedules were not declared: a, b, in-reach (the role worker" in record.getMessage()
    assert "A key of the role operator or admin that reaches them can" in record.getMessage()
    caplog.clear()
    async with AsyncClient(node.url, narrow) as client:
        await apply_at_start(client, declared)
    async with AsyncClient(node.url, KEY) as admin:
        assert {each.schedule_id for each in await admin.schedules()} == {"same", "in-reach"}
    assert "a, same, b (this key reaches only the queues mail" in caplog.text


def test_an_embedded_app_makes_its_schedules_when_it_starts_and_runs_them(tmp_path: Path) -> None:
    def declare(every: str) -> Foliot:
        app = Foliot(f"sqlite:///{tmp_path / 'jobs.db'}")

        @app.schedule(every=every, args=("you",), paused=True)
        def greet(name: str) -> str:
            return f"hello {name}"

        return app

    with declare("1h") as app:
        assert app.client.schedule("greet").every == 3600
        assert app.attach(app.client.trigger_schedule("greet").job_id).result(9) == "hello you"
    with declare("2h") as app:
        assert app.client.schedule("greet").every == 7200


APP = """
from foliot import Foliot

app = Foliot()

@app.schedule(cron="0 0 1 1 *", kwargs={"name": "you"}, queue="polite")
@app.job
async def greet(name: str) -> str:
    return name
"""


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "foliot", "worker", "declared_app:app"],
        ["-c", "import declared_app; raise SystemExit(declared_app.app.run_worker())"],
    ],
    ids=["command", "method"],
)
def test_a_worker_makes_the_schedules_of_its_app(
    client: Client, node: ServedNode, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "declared_app.py").write_text(APP)
    own = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    environ = {**own, "FOLIOT_URL": node.url, "FOLIOT_KEY": KEY}
    with subprocess.Popen(
        [sys.executable, *command], cwd=tmp_path, env=environ, stderr=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stderr is not None
        told = next((line for line in worker.stderr if "schedule greet was created" in line), None)
        assert told is not None
        assert msgspec.json.decode(client.schedule("greet").job)["queue"] == "polite"
        job_id = client.trigger_schedule("greet").job_id
        assert client.outcome(job_id, timeout=15) == "you"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0


def test_a_worker_whose_key_may_not_declare_runs_its_jobs_all_the_same(
    client: Client, node: ServedNode, tmp_path: Path
) -> None:
    (tmp_path / "declared_app.py").write_text(APP)
    own = {name: value for name, value in os.environ.items() if not name.startswith("FOLIOT_")}
    environ = {**own, "FOLIOT_URL": node.url, "FOLIOT_KEY": client.create_key("greeter", "worker").key}
    with subprocess.Popen(
        [sys.executable, "-m", "foliot", "worker", "declared_app:app"],
        cwd=tmp_path,
        env=environ,
        stderr=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stderr is not None
        told = next((line for line in worker.stderr if "these schedules were not declared: greet" in line), None)
        assert told is not None
        job_id = client.submit(SubmitBody(job_type="greet", queue="polite", payload=Raw(b'{"name": "you"}')))
        assert client.outcome(job_id, timeout=15) == "you"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(15) == 0
