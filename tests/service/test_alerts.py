"""Alerts: each kind opens an incident, is told once, and its end is told too."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import msgspec
import pytest

from foliot.domain.access import ADMIN, Caller
from foliot.domain.duration import SECOND
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound
from foliot.domain.feed import Happening, mask_of
from foliot.domain.ids import NODE
from foliot.domain.ids import show as show_id
from foliot.service import alert_checks
from foliot.store.base import Fact
from foliot.wire import (
    ChannelBody,
    ExchangeBody,
    RegisterBody,
    RetryJobBody,
    RuleBody,
    RuleFields,
    ScheduleBody,
    SilenceBody,
    SubmitBody,
)
from tests.alerts.receiver import Receiver
from tests.service.alarms import Alarms
from tests.service.conftest import World, report
from tests.service.meddling import Meddling

FAILED = "Jobs of default/echo fail"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
async def alarms(store: Meddling, receiver: Receiver) -> AsyncIterator[Alarms]:
    made = Alarms(store, receiver)
    await made.open()
    yield made
    made.services.channels.close()


def words(alarms: Alarms) -> str:
    return str(alarms.receiver.notices[-1]["message"])


# ---- what happens


async def test_a_failed_job_is_told_once_and_its_end_after_a_later_one_completed(alarms: Alarms) -> None:
    await alarms.rule("failed")
    job_id = await alarms.fail()
    await alarms.round()
    assert alarms.titles == [FAILED]
    assert f"foliot why {job_id}" in words(alarms)
    await alarms.round(600)
    assert alarms.titles == [FAILED]
    await alarms.complete()
    await alarms.round()
    await alarms.round(1)
    assert alarms.titles == [FAILED, f"[over] {FAILED}"]
    incident = await alarms.incident()
    assert (incident.status, incident.count, incident.jobs) == ("resolved", 1, [job_id])
    assert [notice.notice for notice in incident.notices] == ["opened", "recovered"]


async def test_a_thousand_failures_are_two_notices_with_their_count(alarms: Alarms) -> None:
    await alarms.rule("failed", throttle="1m")
    await alarms.fail()
    await alarms.round()
    worker = await alarms.worker(resources={"slot": 1000})
    for _ in range(999):
        await alarms.submit()
    for job in await alarms.take(worker, 1000):
        await alarms.report(worker, job, "fatal_failure")
    for _ in range(3):
        await alarms.round(1)
    assert alarms.titles == [FAILED]
    await alarms.round(60)
    assert alarms.titles == [FAILED, f"[still] {FAILED}"]
    assert "999 more since" in words(alarms)
    incident = await alarms.incident()
    assert (incident.count, len(incident.jobs)) == (1000, 10)


async def test_failures_between_successes_are_one_incident(alarms: Alarms) -> None:
    await alarms.rule("failed")
    for _ in range(5):
        await alarms.fail()
        await alarms.round(1)
        await alarms.complete()
        await alarms.round(1)
    assert alarms.titles == [FAILED]
    assert (await alarms.incident()).count == 5


async def test_only_failures_after_which_another_try_would_have_followed_are_exhausted(alarms: Alarms) -> None:
    await alarms.rule("exhausted", throttle=0)
    await alarms.fail()
    await alarms.round()
    assert alarms.titles == []
    await alarms.fail(status="retriable_failure", retry={"max_attempts": 1})
    await alarms.round()
    assert alarms.titles == ["Jobs of default/echo have no tries left"]
    await alarms.complete()
    await alarms.round()
    await alarms.round(1)
    assert alarms.titles[-1] == "[over] Jobs of default/echo have no tries left"


async def test_rules_match_by_queue_type_schedule_and_tag(alarms: Alarms) -> None:
    await alarms.rule("failed", "queue", match={"queue": "mail"})
    await alarms.rule("failed", "tag", match={"tag": "gold"})
    await alarms.rule("failed", "type", match={"job_type": "send"})
    await alarms.fail()
    await alarms.round()
    assert await alarms.incidents() == []
    await alarms.fail("send", queue="mail", tags=["gold", "x"])
    await alarms.round()
    assert sorted(each.rule for each in await alarms.incidents()) == ["queue", "tag", "type"]
    await alarms.complete("send", queue="mail")
    await alarms.round()
    await alarms.round(600)
    assert {each.rule for each in await alarms.incidents() if each.status == "open"} == {"tag"}


async def test_a_missed_due_time_is_told_and_over_when_a_later_run_starts(alarms: Alarms) -> None:
    await alarms.rule("missed", throttle=0, match={"schedule_id": "nightly"})
    body = msgspec.convert(
        {"schedule_id": "nightly", "every": "1h", "catch_up": "none", "job": {"job_type": "x"}}, ScheduleBody
    )
    await alarms.services.schedules.create(body, ADMIN)
    data = '{"schedule_id":"nightly","due_time":"a","until":"b","runs":3}'
    await alarms.store.note(
        [
            Happening(kind="schedule.missed", subject="nightly", namespace="default", data=data),
            Happening(kind="schedule.missed", subject="other", namespace="default", data=data),
            Happening(kind="schedule.missed", subject="nightly", namespace="elsewhere", data=data),
            Happening(kind="nothing.known", subject="nightly", namespace="default"),
        ],
        alarms.clock.now(),
    )
    await alarms.round()
    assert alarms.titles == ["The schedule nightly missed runs"]
    assert (await alarms.incident()).count == 3
    assert alarms.alerts.wanted() == mask_of(["running"])
    await alarms.services.schedules.trigger("nightly", caller=ADMIN)
    await alarms.take(await alarms.worker(job_types=["x"]))
    await alarms.round(1)
    await alarms.round(1)
    assert alarms.titles == ["The schedule nightly missed runs", "[over] The schedule nightly missed runs"]


@pytest.mark.parametrize(
    ("kind", "on", "data", "told"),
    [
        ("worker.lost", "worker_lost", '{"name":"w","last_seen":"t","holds":2}', "w, last seen t; it held 2 jobs."),
        ("node.lost", "node_lost", '{"name":"n","last_seen":"t"}', "n, last seen t."),
        (
            "webhook.disabled",
            "webhook_disabled",
            '{"reason":"failing","failing_since":"t","url":"https://secret.example.org"}',
            "Its reason: failing; it fails since t.",
        ),
    ],
)
async def test_what_is_lost_is_told_once_and_forgotten_after_a_day(
    alarms: Alarms, kind: str, on: str, data: str, told: str
) -> None:
    await alarms.rule(on)
    subject = show_id(NODE, 7)
    await alarms.store.note([Happening(kind=kind, subject=subject, data=data)], alarms.clock.now())
    await alarms.round()
    assert len(alarms.titles) == 1
    assert subject in alarms.titles[0]
    assert told in words(alarms)
    await alarms.round(24 * 3600 - 1)
    assert (await alarms.incident()).status == "open"
    await alarms.round(1)
    assert (await alarms.incident()).status == "resolved"
    assert len(alarms.titles) == 1


# ---- what holds


async def test_a_late_start_is_told_while_the_job_is_still_late(alarms: Alarms) -> None:
    await alarms.rule("late", after="30s", match={"queue": "default"})
    job_id = await alarms.submit(job_id="invoice")
    await alarms.submit(queue="other")
    await alarms.round(29)
    assert alarms.titles == []
    await alarms.round(2)
    assert alarms.titles == ["Jobs of default/echo are late"]
    assert await alarms.status(job_id) == "queued"
    assert "1 job should have started and has not; the first was due 31s ago." in words(alarms)
    assert "foliot why invoice" in words(alarms)
    await alarms.round(1)
    await alarms.take(await alarms.worker())
    await alarms.round(1)
    await alarms.round(61)
    assert alarms.titles == ["Jobs of default/echo are late", "[over] Jobs of default/echo are late"]
    assert (await alarms.incident()).jobs == ["invoice"]


async def test_more_late_jobs_are_told_with_the_next_notice(alarms: Alarms) -> None:
    await alarms.rule("late", after="1s", throttle="1m")
    await alarms.submit()
    await alarms.round(2)
    await alarms.submit()
    await alarms.submit()
    await alarms.round(2)
    await alarms.round(60)
    assert alarms.titles == ["Jobs of default/echo are late", "[still] Jobs of default/echo are late"]
    assert "3 jobs should have started and have not" in words(alarms)


async def test_a_job_that_waits_for_a_token_is_late_too(alarms: Alarms) -> None:
    await alarms.rule("late", after="10s")
    waits = await alarms.submit(concurrency={"key": "k", "limit": 1})
    assert (await alarms.services.query.job(waits, ADMIN)).reason == "limit"
    await alarms.round(11)
    assert (await alarms.incident()).jobs == [waits]


async def test_a_job_that_runs_too_long_is_told_until_it_ends(alarms: Alarms) -> None:
    await alarms.rule("overrun", after="1m", match={"job_type": "echo"})
    await alarms.rule("overrun", "others", after="1h")
    worker = await alarms.worker()
    job_id = await alarms.submit()
    await alarms.submit("other")
    jobs = await alarms.take(worker)
    await alarms.round(59)
    assert alarms.titles == []
    await alarms.round(2)
    assert alarms.titles == ["Jobs of default/echo run too long"]
    assert "1 job runs for longer than 1m; the first for 61s." in words(alarms)
    assert (await alarms.incident()).jobs == [job_id]
    for job in jobs:
        await alarms.report(worker, job, "success")
    await alarms.round(1)
    await alarms.round(61)
    assert alarms.titles[-1] == "[over] Jobs of default/echo run too long"


async def test_an_old_queue_is_told_until_its_jobs_start(alarms: Alarms) -> None:
    await alarms.rule("queue_age", after="5m", match={"queue": "default"})
    first = await alarms.submit()
    await alarms.submit("send")
    await alarms.submit(queue="other")
    await alarms.round(301)
    assert alarms.titles == ["Jobs wait too long in the queue default"]
    assert "The oldest job waits for 301s." in words(alarms)
    assert (await alarms.incident()).jobs == [first]
    await alarms.take(await alarms.worker())
    await alarms.round(1)
    await alarms.round(61)
    assert alarms.titles[-1] == "[over] Jobs wait too long in the queue default"


async def test_jobs_that_no_living_worker_takes_are_told_until_one_comes(alarms: Alarms) -> None:
    await alarms.rule("no_worker", after="1m", match={"job_type": "send"})
    await alarms.worker(job_types=["echo"])
    await alarms.submit("send")
    await alarms.submit("send")
    await alarms.submit("echo")
    await alarms.round(61)
    assert alarms.titles == ["No worker takes jobs of default/send"]
    assert "2 jobs wait, and no living worker takes them" in words(alarms)
    await alarms.worker(job_types=["send"])
    await alarms.round(1)
    await alarms.round(61)
    assert alarms.titles[-1] == "[over] No worker takes jobs of default/send"


async def test_a_store_in_trouble_is_told_until_it_is_not(alarms: Alarms, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = [Fact(name="disk_free_bytes", value=1.0, trouble="1 byte is free"), Fact(name="rows", value=1.0)]

    async def measured() -> list[Fact]:
        return facts

    monkeypatch.setattr(alarms.store, "facts", measured)
    await alarms.rule("store")
    await alarms.round()
    assert alarms.titles == ["The store is in trouble: disk_free_bytes"]
    assert "1 byte is free" in words(alarms)
    facts.pop(0)
    await alarms.round(1)
    await alarms.round(30)
    await alarms.round(60)
    assert alarms.titles[-1] == "[over] The store is in trouble: disk_free_bytes"


async def test_a_queue_that_misses_its_objective_is_told_until_it_keeps_it(alarms: Alarms) -> None:
    await alarms.set_queue(objective={"target": 0.99, "within": "1s", "over": "7d"})
    await alarms.set_queue("unwatched", objective={"target": 0.99, "within": "1s"})
    await alarms.rule("slo", match={"queue": "default"})
    worker = await alarms.worker()
    lateness = alarms.services.lateness

    async def run_a_job(late: float) -> None:
        await alarms.submit()
        alarms.clock.pass_seconds(late)
        (job,) = await alarms.take(worker)
        await alarms.report(worker, job, "success")
        await lateness.flush()

    await run_a_job(0)
    await alarms.round(31)
    assert alarms.titles == []
    await run_a_job(30)
    await alarms.round(31)
    assert alarms.titles == ["The queue default misses its objective"]
    assert "0.99 of the jobs are to start within 1s; over the last 1h the budget" in words(alarms)
    await alarms.round(7 * 3600)
    await alarms.round(60)
    assert alarms.titles[-1] == "[over] The queue default misses its objective"


async def test_an_objective_counts_anew_when_it_is_changed(alarms: Alarms) -> None:
    await alarms.set_queue(objective={"target": 0.99, "within": "1m"}, notify={"on": ["slo"], "channels": ["ops"]})
    worker = await alarms.worker()
    await alarms.submit()
    alarms.clock.pass_seconds(30)
    (job,) = await alarms.take(worker)
    await alarms.report(worker, job, "success")
    await alarms.services.lateness.flush()
    await alarms.round(31)
    assert alarms.titles == []
    await alarms.set_queue(objective={"target": 0.99, "within": "1s"})
    await alarms.round(31)
    assert [each.rule for each in await alarms.incidents()] == ["queue:default"]


async def test_with_no_rules_nothing_is_asked_of_the_store(alarms: Alarms) -> None:
    await alarms.submit()
    await alarms.round(600)
    before = dict(alarms.store.calls)
    await alarms.alerts.check(alarms.clock.now())
    assert dict(alarms.store.calls) == before
    assert alarms.alerts.wanted() == 0


# ---- what queues and jobs say themselves


async def test_a_queue_tells_of_its_jobs(alarms: Alarms) -> None:
    notify = {"on": ["failed", "late"], "late_after": "10s", "channels": ["ops"]}
    queue = await alarms.set_queue("mail", notify=notify)
    assert queue.notify is not None
    assert (queue.notify.on, queue.notify.late_after, queue.notify.channels) == (["failed", "late"], 10, ["ops"])
    await alarms.fail("send", queue="mail")
    await alarms.fail("send")
    await alarms.submit("send", queue="mail")
    await alarms.round(11)
    assert sorted(alarms.titles) == ["Jobs of mail/send are late", "Jobs of mail/send fail"]
    assert (await alarms.set_queue("mail", weight=2)).notify == queue.notify
    assert (await alarms.set_queue("mail", notify=None)).notify is None
    await alarms.round(1)
    assert {each.status for each in await alarms.incidents()} == {"resolved"}
    assert len(alarms.titles) == 2


async def test_what_a_job_says_takes_the_place_of_what_its_queue_says(alarms: Alarms) -> None:
    await alarms.set_queue(notify={"on": ["failed", "late"], "late_after": "1s", "channels": ["ops"]})
    notify = {"on": ["failed", "late"], "late_after": "1m", "channels": ["ops"]}
    job_id = await alarms.fail(notify=notify)
    await alarms.fail(notify={"on": []})
    late = await alarms.submit(notify=notify)
    await alarms.submit(notify={"on": [], "channels": []})
    info = await alarms.services.query.job(job_id, ADMIN)
    assert info.notify is not None
    assert info.notify.late_after == 60
    await alarms.round(2)
    assert [(each.rule, each.kind) for each in await alarms.incidents()] == [("job:ops", "failed")]
    await alarms.round(60)
    assert [(each.rule, each.kind, each.jobs) for each in await alarms.incidents()][1:] == [("job:ops", "late", [late])]
    await alarms.take(await alarms.worker())
    await alarms.round(1)
    await alarms.round(61)
    assert alarms.titles[-1] == "[over] Jobs of default/echo are late"


async def test_a_jobs_failure_is_over_when_another_of_its_kind_completes(alarms: Alarms) -> None:
    await alarms.fail(notify={"on": ["failed"], "channels": ["ops"]})
    await alarms.round()
    await alarms.complete()
    await alarms.round()
    await alarms.round(301)
    assert alarms.titles == [FAILED, f"[over] {FAILED}"]


# ---- throttle, silence, acknowledge, resolve


async def test_a_silenced_incident_is_told_of_after_that(alarms: Alarms) -> None:
    await alarms.rule("failed", throttle="1m")
    await alarms.fail()
    await alarms.round()
    incident = await alarms.incident()
    silenced = await alarms.alerts.silence(incident.incident_id, SilenceBody(duration="1h"), ADMIN)
    assert silenced.silenced_until is not None
    await alarms.fail()
    await alarms.round(1800)
    assert alarms.titles == [FAILED]
    await alarms.round(1800)
    assert alarms.titles == [FAILED, f"[still] {FAILED}"]


async def test_an_acknowledged_incident_is_told_of_when_it_is_over(alarms: Alarms) -> None:
    await alarms.rule("failed", throttle="1m")
    await alarms.fail()
    await alarms.round()
    incident = await alarms.incident()
    known = await alarms.alerts.acknowledge(incident.incident_id, ADMIN)
    assert (known.acknowledged_by, known.acknowledged_time is not None) == ("admin", True)
    await alarms.fail()
    await alarms.round(600)
    assert alarms.titles == [FAILED]
    await alarms.complete()
    await alarms.round()
    await alarms.round(61)
    assert alarms.titles == [FAILED, f"[over] {FAILED}"]


async def test_somebody_may_say_that_an_incident_is_over(alarms: Alarms) -> None:
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.round()
    incident = await alarms.incident()
    over = await alarms.alerts.resolve(incident.incident_id, ADMIN)
    assert over.status == "resolved"
    await alarms.round()
    assert alarms.titles == [FAILED, f"[over] {FAILED}"]
    assert "says admin" in words(alarms)
    with pytest.raises(Conflict, match="over already"):
        await alarms.alerts.acknowledge(incident.incident_id, ADMIN)
    await alarms.fail()
    await alarms.round()
    assert [each.status for each in await alarms.incidents()] == ["resolved", "open"]


async def test_incidents_are_over_with_their_rule_and_nothing_is_told_of_it(alarms: Alarms) -> None:
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.round()
    await alarms.services.alert_rules.delete("r", ADMIN)
    await alarms.round(1)
    assert (await alarms.incident()).status == "resolved"
    assert alarms.titles == [FAILED]


async def test_an_open_incident_goes_on_by_its_changed_rule(alarms: Alarms, receiver: Receiver) -> None:
    await alarms.rule("late", after="1s", throttle="1h")
    await alarms.submit()
    await alarms.round(2)
    await alarms.services.alert_rules.update("r", RuleFields(throttle="1m"), if_match=None, caller=ADMIN)
    await alarms.submit()
    await alarms.round(2)
    await alarms.round(60)
    assert len(receiver.notices) == 2


# ---- races


async def test_of_a_look_that_somebody_else_came_before_nothing_is_kept_and_the_next_one_sees_it(
    alarms: Alarms,
) -> None:
    await alarms.rule("late", after="1s")
    await alarms.submit()
    await alarms.round(2)
    incident = await alarms.incident()

    async def acknowledged() -> None:
        await alarms.alerts.acknowledge(incident.incident_id, ADMIN)

    await alarms.submit()
    alarms.store.after("open_incidents", acknowledged)
    await alarms.round(2)
    assert (await alarms.incident()).count == 1
    await alarms.round(1)
    assert (await alarms.incident()).count == 2


async def test_what_happens_while_a_notice_is_sent_is_not_lost(alarms: Alarms) -> None:
    await alarms.rule("failed", throttle="1m")
    await alarms.fail()

    async def another() -> None:
        await alarms.fail()
        await alarms.alerts.refresh()
        await alarms.follow()

    alarms.store.after("take_notices", another)
    await alarms.round()
    assert alarms.titles == [FAILED]
    incident = await alarms.incident()
    assert (incident.count, [notice.count for notice in incident.notices]) == (2, [1])
    await alarms.round(60)
    assert alarms.titles == [FAILED, f"[still] {FAILED}"]


async def test_an_incident_that_is_gone_when_its_notice_was_sent_is_let_be(alarms: Alarms) -> None:
    await alarms.rule("failed")
    await alarms.fail()

    async def forgotten() -> None:
        incident = await alarms.incident()
        await alarms.alerts.resolve(incident.incident_id, ADMIN)
        await alarms.store.forget_watch(alarms.clock.now() + 3600 * SECOND, 100)

    alarms.store.after("take_notices", forgotten)
    await alarms.round()
    assert alarms.titles == [FAILED]
    assert await alarms.incidents() == []


async def test_one_that_always_changes_gives_up(alarms: Alarms, caplog: pytest.LogCaptureFixture) -> None:
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.follow()
    incident = await alarms.incident()

    async def never(_: object) -> bool:
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarms.store, "save_incidents", never)
        with pytest.raises(Conflict, match="changes faster"):
            await alarms.alerts.acknowledge(incident.incident_id, ADMIN)
        assert await alarms.services.notices.send_due() == 1
    assert "could not be noted" in caplog.text


async def test_of_two_nodes_one_sends_the_notice(alarms: Alarms, receiver: Receiver) -> None:
    other = Alarms(alarms.store, receiver)
    await other.services.definitions.refresh()
    other.clock.time = alarms.clock.time
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.follow()
    assert await alarms.services.notices.send_due() + await other.services.notices.send_due() == 1
    assert receiver.titles == [FAILED]
    other.services.channels.close()


async def test_an_acknowledged_incident_whose_notice_was_taken_is_not_told(alarms: Alarms) -> None:
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.follow()
    incident = await alarms.incident()
    taken = await alarms.store.take_notices(alarms.clock.now(), alarms.clock.now() + 60 * SECOND, 10)
    assert len(taken) == 1  # by a node that died
    await alarms.alerts.acknowledge(incident.incident_id, ADMIN)
    await alarms.round(61)
    assert alarms.titles == []
    assert (await alarms.store.open_incidents())[0].notify_at is None


# ---- channels that fail


async def test_a_channel_that_fails_is_tried_again_and_told_in_the_incident(
    alarms: Alarms, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.statuses = [500]
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.round()
    incident = await alarms.incident()
    assert "500" in incident.trouble_telling["ops"]
    assert "the channel default/ops did not take a notice" in caplog.text
    await alarms.round(10)
    assert len(receiver.notices) == 2
    incident = await alarms.incident()
    assert (incident.trouble_telling, incident.notices[0].sent) == ({}, ["ops"])


async def test_a_channel_that_was_deleted_is_named_in_the_incident(alarms: Alarms) -> None:
    await alarms.services.channels.create(ChannelBody(name="mail", url=alarms.receiver.url), ADMIN)
    await alarms.rule("failed", channels=["ops", "mail"])
    await alarms.services.channels.delete("ops", ADMIN)
    await alarms.fail()
    await alarms.round()
    assert alarms.titles == [FAILED]
    assert (await alarms.incident()).trouble_telling == {"ops": "there is no such channel"}


# ---- reading


async def test_incidents_are_listed_newest_first_page_by_page(alarms: Alarms) -> None:
    await alarms.rule("failed")
    for job_type in ("a", "b", "c"):
        await alarms.fail(job_type)
        await alarms.round(1)
    page, cursor = await alarms.alerts.page(limit=2, cursor=None, caller=ADMIN)
    rest, end = await alarms.alerts.page(limit=2, cursor=cursor, caller=ADMIN)
    assert [each.subject for each in [*page, *rest]] == ["default/c", "default/b", "default/a"]
    assert end is None
    with pytest.raises(BadInput, match="cursor"):
        await alarms.alerts.page(limit=2, cursor="x", caller=ADMIN)
    assert await alarms.alerts.read(page[0].incident_id, ADMIN) == page[0]


async def test_what_is_not_there_or_not_reached_is_refused(alarms: Alarms) -> None:
    for incident_id in ("i_0000000000000001", "x"):
        with pytest.raises(NotFound):
            await alarms.alerts.read(incident_id, ADMIN)
    with pytest.raises(BadInput, match="31 days"):
        await alarms.alerts.silence("i_0000000000000001", SilenceBody(duration="40d"), ADMIN)
    narrow = Caller(name="n", queues=("mail",))
    with pytest.raises(Forbidden):
        await alarms.alerts.page(limit=1, cursor=None, caller=narrow)
    with pytest.raises(Forbidden):
        await alarms.alerts.resolve("i_0000000000000001", narrow)


async def test_a_job_that_was_run_again_since_is_still_told(alarms: Alarms) -> None:
    await alarms.rule(["failed", "exhausted"])
    job_id = await alarms.fail(status="retriable_failure", retry={"max_attempts": 1})
    await alarms.services.control.retry(job_id, RetryJobBody(), if_match=None, caller=ADMIN)
    await alarms.round()
    assert len(alarms.titles) == 2


async def test_another_namespace_sees_nothing_of_it(alarms: Alarms) -> None:
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.round()
    stranger = Caller(name="s", namespace="there")
    assert (await alarms.alerts.page(limit=9, cursor=None, caller=stranger))[0] == []
    with pytest.raises(NotFound):
        await alarms.alerts.read((await alarms.incident()).incident_id, stranger)


async def test_a_node_that_comes_on_watch_goes_on_with_what_is_open(alarms: Alarms, store: Meddling) -> None:
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.round()
    other = World(store)
    await other.services.definitions.refresh()
    assert other.services.alerts.wanted() == mask_of(["failed"])
    await other.services.alerts.check(alarms.clock.now())
    assert other.services.alerts.wanted() == mask_of(["failed", "completed"])


async def test_whoever_sends_notices_hears_of_a_new_one(alarms: Alarms) -> None:
    rung: list[bool] = []
    alarms.alerts.on_notice.append(lambda: rung.append(True))
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.follow()
    assert rung == [True]


async def test_a_completed_job_of_another_namespace_mends_nothing(alarms: Alarms) -> None:
    await alarms.rule("failed", throttle=0)
    await alarms.fail()
    await alarms.round()
    elsewhere = Caller(name="s", namespace="there")
    body = msgspec.convert({"job_type": "echo"}, SubmitBody)
    await alarms.services.submit.one(body, b"", elsewhere)
    worker = await alarms.services.workers.register(RegisterBody(name="w"), elsewhere)
    asked = msgspec.convert({"free": {"slot": 1}}, ExchangeBody)
    (job,) = (await alarms.services.workers.exchange(worker.worker_id, asked, elsewhere)).jobs
    done = ExchangeBody(reports=[report(job, "success")])
    await alarms.services.workers.exchange(worker.worker_id, done, elsewhere)
    await alarms.round(1)
    await alarms.round(1)
    assert (await alarms.incident()).status == "open"


async def test_a_node_that_has_not_met_a_lane_learns_it(alarms: Alarms, tmp_path: Path, receiver: Receiver) -> None:
    path = str(tmp_path / "jobs.db")
    for turn in range(2):
        store = Meddling(path)
        await store.open()
        node = Alarms(store, receiver)
        await node.services.definitions.refresh()
        if turn == 0:
            await node.open()
            await node.rule("late", after="1s")
            await node.rule("failed", "other")
            await node.submit()
        else:
            await node.alerts.check(node.clock.now() + 60 * SECOND)
            assert [each.subject for each in await node.incidents()] == ["default/echo"]
        node.services.channels.close()
        await store.close()


async def test_of_a_job_that_is_gone_meanwhile_nothing_is_told(alarms: Alarms) -> None:
    await alarms.rule(["late", "queue_age", "no_worker", "overrun"], after="1s")
    await alarms.submit()
    running = await alarms.submit("other")
    assert [job.job_id for job in await alarms.take(await alarms.worker(job_types=["other"]))] == [running]

    async def nothing(_: object) -> dict[object, object]:
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarms.store, "load", nothing)
        await alarms.alerts.check(alarms.clock.now() + 60 * SECOND)
    assert await alarms.incidents() == []


async def test_what_waits_in_another_namespace_is_no_concern_of_a_rule(alarms: Alarms) -> None:
    await alarms.rule(["late", "queue_age", "no_worker", "overrun"], after="1s")
    elsewhere = Caller(name="s", namespace="there")
    channel = ChannelBody(name="ops", url=alarms.receiver.url)
    await alarms.services.channels.create(channel, elsewhere)
    body = msgspec.convert({"name": "r", "on": "late", "after": "1s", "channels": ["ops"]}, RuleBody)
    await alarms.services.alert_rules.create(body, elsewhere)
    await alarms.services.submit.one(SubmitBody(job_type="echo"), b"", elsewhere)
    await alarms.round(10)
    assert await alarms.incidents() == []
    (seen,), _ = await alarms.alerts.page(limit=9, cursor=None, caller=elsewhere)
    assert seen.kind == "late"


async def test_the_oldest_of_several_kinds_is_the_age_of_their_queue(alarms: Alarms) -> None:
    await alarms.rule("queue_age", after="1s")
    await alarms.submit("b")
    alarms.clock.pass_seconds(5)
    await alarms.submit("a")
    await alarms.round(5)
    assert "The oldest job waits for 10s." in words(alarms)


async def test_without_a_channel_nobody_looks_for_notices(world: World) -> None:
    assert await world.services.notices.send_due() == 0
    assert world.store.calls["take_notices"] == 0


async def test_completed_jobs_are_read_only_until_one_has_mended_what_is_open(alarms: Alarms) -> None:
    await alarms.rule("failed")
    await alarms.fail()
    await alarms.follow()
    assert alarms.alerts.wanted() == mask_of(["failed", "completed"])
    await alarms.complete()
    await alarms.follow()
    assert alarms.alerts.wanted() == mask_of(["failed"])
    await alarms.fail()
    await alarms.follow()
    assert alarms.alerts.wanted() == mask_of(["failed", "completed"])
    assert (await alarms.incident()).count == 2


async def test_jobs_that_stay_late_are_loaded_once_in_a_while(alarms: Alarms) -> None:
    await alarms.rule("late", after="1s")
    await alarms.submit()
    await alarms.alerts.check(alarms.clock.now() + 2 * SECOND)
    before = alarms.store.calls["load"]
    for seconds in range(3, 20):
        await alarms.alerts.check(alarms.clock.now() + seconds * SECOND)
    assert alarms.store.calls["load"] == before
    await alarms.alerts.check(alarms.clock.now() + 40 * SECOND)
    assert alarms.store.calls["load"] == before + 1


async def test_of_very_many_late_jobs_a_part_is_looked_at(alarms: Alarms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alert_checks, "MOST", 3)
    await alarms.rule("late", after="1s")
    for _ in range(5):
        await alarms.submit()
    await alarms.round(2)
    assert "At least 3 jobs should have started" in words(alarms)
