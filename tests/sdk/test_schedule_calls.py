"""The calls on schedules as methods, against a real node over HTTP."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec import Raw

from foliot import AsyncClient, Client, Foliot
from foliot.sdk.failures import BadInput, Conflict, NotFound, Stale, Unreachable
from foliot.wire import BackfillBody, ScheduleBody, ScheduleUpdateBody, TemplateBody
from tests.sdk.cutting_proxy import CuttingProxy
from tests.sdk.served_node import KEY, ServedNode

YEARLY = "0 0 1 1 *"


def body(schedule_id: str | None = "report", **fields: object) -> ScheduleBody:
    given = {"cron": YEARLY, "job": TemplateBody(job_type="note", payload=Raw(b'{"a":1}')), **fields}
    return ScheduleBody(schedule_id=schedule_id, **given)  # type: ignore[arg-type]


@pytest.fixture
def client(app: Foliot) -> Client:
    return app.client


def test_a_schedule_is_made_read_changed_and_deleted(client: Client) -> None:
    made = client.create_schedule(body())
    assert (made.status, made.schedule_id) == ("created", "report")
    info = client.schedule("report")
    assert (info.cron, info.timezone, info.next_run) == (YEARLY, "UTC", made.next_run)
    assert msgspec.json.decode(info.job) == {"job_type": "note", "payload": {"a": 1}}
    changed = client.change_schedule("report", ScheduleUpdateBody(every="1d", overlap="queue"))
    assert changed.status == "updated"
    info = client.schedule("report")
    assert (info.cron, info.every, info.overlap) == (None, 86_400, "queue")
    client.change_schedule("report", ScheduleUpdateBody(overlap=None))
    assert client.schedule("report").overlap == "skip"
    assert client.delete_schedule("report").status == "deleted"
    with pytest.raises(NotFound):
        client.schedule("report")


def test_making_a_schedule_again_is_answered_as_before_and_another_under_its_id_is_refused(client: Client) -> None:
    first = client.create_schedule(body())
    assert client.create_schedule(body()) == first
    with pytest.raises(Conflict):
        client.create_schedule(body(cron="@daily"))


def test_a_schedule_without_an_id_gets_one(client: Client) -> None:
    assert client.schedule(client.create_schedule(body(None)).schedule_id).cron == YEARLY


def test_a_lost_answer_makes_one_schedule(node: ServedNode, proxy: CuttingProxy) -> None:
    with Client(proxy.url, KEY) as client:
        proxy.cuts = 1
        client.create_schedule(body(None))
        assert node.count("POST /api/v1/schedules") == 2
        assert len(client.schedules()) == 1


def test_a_trigger_is_not_repeated_after_a_lost_answer(client: Client, node: ServedNode, proxy: CuttingProxy) -> None:
    client.create_schedule(body())
    with Client(proxy.url, KEY) as cut:
        proxy.cuts = 1
        with pytest.raises(Unreachable):
            cut.trigger_schedule("report")
    assert node.count("POST /api/v1/schedules/report/trigger") == 1


def test_a_change_of_an_older_version_is_refused(client: Client) -> None:
    client.create_schedule(body())
    version = client.schedule("report").version
    client.change_schedule("report", ScheduleUpdateBody(jitter=5), if_match=version)
    with pytest.raises(Stale):
        client.change_schedule("report", ScheduleUpdateBody(jitter=6), if_match=version)
    with pytest.raises(Stale):
        client.pause_schedule("report", if_match=version)
    with pytest.raises(Stale):
        client.delete_schedule("report", if_match=version)


def test_a_schedule_is_paused_and_goes_on(client: Client) -> None:
    client.create_schedule(body())
    assert client.pause_schedule("report").status == "paused"
    assert client.schedule("report").status == "paused"
    assert client.resume_schedule("report").status == "active"
    assert client.schedule("report").paused is False


def test_a_triggered_run_is_a_job_and_stands_in_the_ledger(client: Client) -> None:
    client.create_schedule(body())
    job_id = client.trigger_schedule("report").job_id
    assert client.get(job_id).schedule_id == "report"
    [run] = client.runs("report")
    assert (run.verdict, run.job_id) == ("ran", job_id)


def test_past_due_times_are_backfilled_and_the_ledger_is_read_through_all_pages(
    client: Client, node: ServedNode
) -> None:
    client.create_schedule(body(cron="0 0 * * *"))
    since = datetime(2025, 1, 1, tzinfo=UTC)
    until = since + timedelta(days=6)
    asked = BackfillBody(since=since, until=until, max_concurrency=7)
    assert client.backfill_schedule("report", asked).runs == 7
    dues = [run.due_time for run in client.all_runs("report", page_size=3)]
    assert dues == [until - timedelta(days=back) for back in range(7)]
    assert node.count("GET /api/v1/schedules/report/runs") >= 3
    assert [run.due_time for run in client.all_runs("report", limit=4, page_size=3)] == dues[:4]
    assert [run.due_time for run in client.runs("report", limit=2)] == dues[:2]


def test_schedules_are_read_through_all_pages_newest_first(client: Client, node: ServedNode) -> None:
    names = [f"s{number}" for number in range(7)]
    for name in names:
        client.create_schedule(body(name))
    assert [each.schedule_id for each in client.all_schedules(page_size=3)] == names[::-1]
    assert node.count("GET /api/v1/schedules") == 3
    assert [each.schedule_id for each in client.all_schedules(limit=4, page_size=3)] == names[:2:-1]
    assert [each.schedule_id for each in client.schedules(limit=2)] == ["s6", "s5"]
    page, cursor = client.schedule_page(limit=5)
    assert [each.schedule_id for each in client.schedule_page(limit=5, cursor=cursor)[0]] == ["s1", "s0"]
    assert len(page) == 5


def test_what_is_due_in_the_next_day_is_forecast(client: Client) -> None:
    client.create_schedule(body(cron="0 * * * *"))
    forecast = client.forecast()
    assert forecast.runs == sum(minute.runs for minute in forecast.minutes) == 24
    assert {minute.time.minute for minute in forecast.minutes} == {0}


def test_what_is_wrong_is_named_and_nothing_is_saved(client: Client) -> None:
    with pytest.raises(BadInput) as caught:
        client.create_schedule(body(cron="0 0 31 2 *"))
    assert [error.field for error in caught.value.errors] == ["cron"]
    assert client.schedules() == []
    for call in (client.schedule, client.delete_schedule, client.pause_schedule, client.trigger_schedule, client.runs):
        with pytest.raises(NotFound):
            call("nobody")


async def test_an_async_client_has_the_calls_too(node: ServedNode) -> None:
    async with AsyncClient(node.url, KEY) as client:
        await client.create_schedule(body("a@b:c"))
        assert [each.schedule_id async for each in client.all_schedules()] == ["a@b:c"]
        assert (await client.schedule("a@b:c")).schedule_id == "a@b:c"
