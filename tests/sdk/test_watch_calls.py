"""Alert rules, incidents, channels and webhooks as methods of the client, against a real node."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec import UNSET

from foliot import Client, Foliot
from foliot.sdk.apply import plan
from foliot.sdk.failures import BadInput, Conflict, NotFound, Stale
from foliot.wire import SubmitBody
from foliot.wire.alerts import MatchBody, NotifyBody, ObjectiveBody
from foliot.wire.webhooks import WebhookMatch
from tests.sdk.served_node import KEY, ServedNode


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    served = ServedNode(Path(tmp_path_factory.mktemp("node")))
    served.start()
    yield served
    served.stop()


@pytest.fixture
def client(node: ServedNode) -> Iterator[Client]:
    with Client(node.url, KEY) as client:
        yield client


@pytest.fixture
def ops(client: Client) -> Iterator[str]:
    yield client.create_channel("ops", "json://example.com/notify").name
    client.delete_channel("ops")


def test_a_channel_is_written_and_never_read(client: Client, ops: str) -> None:
    with pytest.raises(Conflict):
        client.create_channel(ops, "json://example.com/other")
    changed = client.change_channel(ops, "xml://user:hush@example.com/")
    assert "hush" not in repr(changed) + repr(client.channel(ops)) + repr(client.channels())
    with pytest.raises(Stale):
        client.change_channel(ops, "json://example.com/", if_match=changed.version - 1)
    with pytest.raises(NotFound):
        client.channel("nobody")


def test_a_rule_is_made_changed_and_deleted(client: Client, ops: str) -> None:
    made = client.create_alert("late", "late", [ops], match={"queue": "mail"}, after=timedelta(seconds=30))
    assert (made.on, made.match, made.after, made.channels) == (["late"], MatchBody(queue="mail"), 30.0, [ops])
    assert [rule.name for rule in client.alerts()] == ["late"]
    changed = client.change_alert("late", on=["late", "failed"], throttle="1h", match=None, if_match=made.version)
    assert (changed.on, changed.throttle, changed.match, changed.after) == (["late", "failed"], 3600, MatchBody(), 30.0)
    with pytest.raises(Stale):
        client.change_alert("late", throttle=60, if_match=made.version)
    with pytest.raises(ValueError, match="match"):
        client.create_alert("odd", "failed", [ops], match={"colour": "red"})
    client.delete_alert("late")
    with pytest.raises(NotFound):
        client.alert("late")


def test_there_are_no_incidents_where_nothing_is_wrong(client: Client) -> None:
    assert client.incidents() == list(client.all_incidents(page_size=1)) == []
    with pytest.raises(NotFound):
        client.incident("i_0000000000000001")


def test_a_webhook_is_made_changed_switched_and_deleted(client: Client) -> None:
    made = client.create_webhook("https://example.com/hook", ["job.failed"], match={"tag": "x"}, give_up_after="1h")
    assert made.secret.startswith("whsec_")
    assert (made.match, made.give_up_after) == (WebhookMatch(tag="x"), 3600)
    assert [each.webhook_id for each in client.all_webhooks(page_size=1)] == [made.webhook_id]
    assert client.webhooks()[0] == client.webhook(made.webhook_id)
    changed = client.change_webhook(made.webhook_id, events=["job.*"], match={}, if_match=made.version)
    assert (changed.events, changed.match, changed.url) == (["job.*"], WebhookMatch(), made.url)
    assert not client.disable_webhook(made.webhook_id).enabled
    with pytest.raises(Conflict):
        client.test_webhook(made.webhook_id)
    assert client.enable_webhook(made.webhook_id).enabled
    assert client.rotate_webhook(made.webhook_id, overlap=timedelta(hours=2)).secret != made.secret
    assert client.deliveries(made.webhook_id, state="failed") == list(client.all_deliveries(made.webhook_id)) == []
    assert client.redeliver_failed(made.webhook_id).redelivered == 0
    with pytest.raises(BadInput):
        client.create_webhook("http://127.0.0.1/", ["*"])
    client.delete_webhook(made.webhook_id)
    with pytest.raises(NotFound):
        client.webhook(made.webhook_id)


def test_a_queue_says_whom_to_tell_and_how_many_start_in_time(client: Client, ops: str) -> None:
    objective = {"target": 0.99, "within": timedelta(seconds=1)}
    notify = {"on": ["late"], "late_after": timedelta(minutes=1), "channels": [ops]}
    queue = client.set_queue("mail", notify=notify, objective=objective)
    assert queue.notify is not None
    assert (queue.notify.on, queue.notify.late_after, queue.notify.channels) == (["late"], 60, [ops])
    assert queue.objective is not None
    assert (queue.objective.target, queue.objective.within, queue.objective.over) == (0.99, 1, 604800)
    assert client.set_queue("mail", weight=2).objective == queue.objective
    assert client.set_queue("mail", notify=None, objective=None).notify is None
    for wrong in ({"on": ["boredom"]}, {"late_after": "1m"}):
        with pytest.raises(ValueError, match="notify"):
            client.set_queue("mail", notify=wrong)
    with pytest.raises(ValueError, match="objective"):
        client.set_queue("mail", objective={"target": 2, "within": "1s"})
    body = client.set_queue("mail", notify=NotifyBody(on=[]), objective=ObjectiveBody(target=0.9, within=2))
    assert body.notify is not None


def test_a_job_function_says_whom_to_tell(node: ServedNode, client: Client, ops: str) -> None:
    with Foliot(node.url, KEY) as app:

        @app.job(notify={"on": ["failed"], "channels": [ops]})
        def charge() -> None: ...

        info = charge.submit(delay=3600).info()
        assert info.notify is not None
        assert (info.notify.on, info.notify.channels) == (["failed"], [ops])
        with pytest.raises(ValueError, match="notify"):
            charge.options(notify={"on": "failed"})
        with pytest.raises(ValueError, match=r"notify\.late_after"):
            charge.options(notify={"on": ["late"], "late_after": "soon"})
    assert client.get(client.submit(SubmitBody(job_type="note", delay=3600))).notify is None
    assert SubmitBody(job_type="note").notify is UNSET


def test_a_declared_schedule_says_whom_to_tell_and_is_the_same_the_next_time(
    node: ServedNode, client: Client, ops: str
) -> None:
    app = Foliot(node.url, KEY)
    notify = {"on": ["failed", "late"], "late_after": "2m", "channels": [ops]}

    @app.schedule(every="1h", notify=notify)
    def tidy() -> None: ...

    with app:
        client.create_schedule(*app.schedules)
        there = client.schedule("tidy")
        assert b'"notify"' in bytes(there.job)
        assert [(each.action, each.fields) for each in plan(app.schedules, [there])] == [("same", {})]
    client.delete_schedule("tidy")
