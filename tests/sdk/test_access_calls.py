"""Keys, namespaces, the audit log and who is calling, over the client, against a real node."""

import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.error import HTTPError

import pytest

from foliot import AsyncClient, Client, Foliot
from foliot.domain.credential import parse_key
from foliot.sdk.failures import BadInput, Conflict, Forbidden, NotAuthenticated, NotFound, Stale, Unreachable
from foliot.sdk.transport import Answer, HttpTransport
from foliot.wire import FilterBody, SubmitBody
from tests.sdk.cutting_proxy import CuttingProxy
from tests.sdk.served_node import KEY, ServedNode

FAR = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def client(app: Foliot) -> Client:
    return app.client


def test_a_key_is_shown_once_and_lets_its_holder_do_what_its_role_may(client: Client, node: ServedNode) -> None:
    made = client.create_key("ci", "submitter", queues=["builds"], job_types=["build"], expires=FAR)
    assert parse_key(made.key) is not None
    found = client.key(made.key_id)
    assert (found.name, found.role, found.namespace, found.created_by) == ("ci", "submitter", "default", "admin")
    assert (found.queues, found.job_types, found.expires) == (["builds"], ["build"], FAR)
    assert not hasattr(found, "key")
    with Client(node.url, made.key) as holder:
        me = holder.whoami()
        assert (me.name, me.role, me.queues, me.job_types) == ("ci", "submitter", ["builds"], ["build"])
        assert me.permissions == ["known", "read", "submit"]
        holder.submit(SubmitBody(job_type="build", queue="builds"))
        for forbidden in (
            lambda: holder.submit(SubmitBody(job_type="build")),
            lambda: holder.pause_queue("builds"),
            lambda: holder.keys(),
            lambda: holder.create_key("more", "admin"),
        ):
            with pytest.raises(Forbidden):
                forbidden()


def test_keys_are_listed_page_by_page(client: Client) -> None:
    made = sorted(client.create_key(f"key-{number}", "viewer").key_id for number in range(3))
    listed = client.keys()
    assert [each.key_id for each in listed] == made
    assert client.keys(limit=2) == listed[:2]
    _, cursor = client.key_page(limit=2)
    assert [each.key_id for each in client.key_page(limit=2, cursor=cursor)[0]] == made[2:]
    assert [each.key_id for each in client.all_keys(page_size=1)] == made


def test_after_a_rotation_both_secrets_are_good_for_the_overlap(client: Client, node: ServedNode) -> None:
    made = client.create_key("ci", "viewer")
    rotated = client.rotate_key(made.key_id, overlap=timedelta(hours=1))
    assert (rotated.key_id, rotated.name) == (made.key_id, "ci")
    assert rotated.key != made.key
    for key in (made.key, rotated.key):
        with Client(node.url, key) as holder:
            assert holder.whoami().name == "ci"
    last = client.rotate_key(made.key_id, overlap=0)
    for key in (made.key, rotated.key):
        with Client(node.url, key) as holder, pytest.raises(NotAuthenticated):
            holder.whoami()
    with Client(node.url, last.key) as holder:
        assert holder.whoami().name == "ci"
    with pytest.raises(BadInput, match="overlap"):
        client.rotate_key(made.key_id, overlap="31d")


def test_a_rotation_whose_answer_is_lost_is_not_done_twice(
    client: Client, node: ServedNode, proxy: CuttingProxy
) -> None:
    made = client.create_key("ci", "viewer")
    with Client(proxy.url, KEY) as unlucky:
        proxy.cuts = 1
        with pytest.raises(Unreachable) as caught:
            unlucky.rotate_key(made.key_id)
    assert caught.value.sent
    assert node.count(f"POST /api/v1/api-keys/{made.key_id}/rotate") == 1
    with Client(node.url, made.key) as holder:  # a second one would have ended it
        assert holder.whoami().name == "ci"


def test_a_revoked_key_is_refused_at_once_and_its_name_is_free_again(client: Client, node: ServedNode) -> None:
    made = client.create_key("ci", "viewer")
    with pytest.raises(Conflict, match="ci"):
        client.create_key("ci", "viewer")
    with Client(node.url, made.key) as holder:
        holder.whoami()
        assert client.revoke_key(made.key_id).revoked is not None
        with pytest.raises(NotAuthenticated, match="revoked"):
            holder.whoami()
    assert client.create_key("ci", "admin").key_id != made.key_id
    with pytest.raises(Conflict, match="revoked"):
        client.rotate_key(made.key_id)
    for call in (client.key, client.rotate_key, client.revoke_key):
        with pytest.raises(NotFound):
            call("nosuchkeyatall00")


def test_a_namespace_has_jobs_and_keys_of_its_own(client: Client, node: ServedNode) -> None:
    assert client.create_namespace("team-a", live_jobs=10).live_jobs == 10
    with pytest.raises(Conflict):
        client.create_namespace("team-a")
    made = client.create_key("boss", "admin", namespace="team-a")
    with Client(node.url, made.key) as boss:
        boss.submit(SubmitBody(job_type="note", job_id="theirs"))
        assert [each.name for each in boss.namespaces()] == ["team-a"]
        assert [each.name for each in boss.all_keys()] == ["boss"]
        with pytest.raises(Forbidden):
            boss.create_key("spy", "viewer", namespace="default")
        with pytest.raises(Forbidden):
            boss.set_quotas("team-a", live_jobs=None)
        with pytest.raises(NotFound):
            boss.namespace("default")
    assert [each.name for each in client.namespaces()] == ["default", "team-a"]
    assert list(client.list(FilterBody())) == []
    with pytest.raises(Conflict, match="in use"):
        client.delete_namespace("team-a")
    client.create_namespace("empty")
    client.delete_namespace("empty")
    with pytest.raises(NotFound):
        client.namespace("empty")


def test_quotas_are_set_one_by_one_and_none_takes_one_away(client: Client) -> None:
    client.create_namespace("team-a", submits_per_second=5)
    found = client.set_quotas("team-a", payload_bytes_per_second=4096, live_jobs=7)
    assert (found.submits_per_second, found.payload_bytes_per_second, found.live_jobs) == (5, 4096, 7)
    back = client.set_quotas("team-a", submits_per_second=None, if_match=found.version)
    assert (back.submits_per_second, back.payload_bytes_per_second, back.live_jobs) == (None, 4096, 7)
    assert client.namespace("team-a") == back
    with pytest.raises(Stale):
        client.set_quotas("team-a", live_jobs=1, if_match=found.version)
    with pytest.raises(BadInput, match="payload_bytes_per_second"):
        client.set_quotas("team-a", payload_bytes_per_second=1)


class Watched:
    """The way to a node, noting what it answers."""

    def __init__(self, url: str) -> None:
        self._through = HttpTransport(url)
        self.statuses: list[int] = []

    async def call(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        answer = await self._through.call(method, path, body, headers)
        self.statuses.append(answer[0])
        return answer

    async def close(self) -> None:
        await self._through.close()


async def test_who_submits_beyond_the_quota_waits_and_gets_all_in(node: ServedNode) -> None:
    watched = Watched(node.url)
    async with AsyncClient(node.url, KEY) as admin:
        await admin.create_namespace("team-a", submits_per_second=1)
        key = (await admin.create_key("boss", "submitter", namespace="team-a")).key
    async with AsyncClient(node.url, key, transport=watched) as client:
        for number in range(3):
            await client.submit(SubmitBody(job_type="note", job_id=f"note-{number}"))
        assert {each.job_id async for each in client.list()} == {"note-0", "note-1", "note-2"}
    assert 429 in watched.statuses
    assert watched.statuses.count(201) == 3


def test_the_audit_log_is_read_page_by_page_and_its_chain_is_whole(client: Client, node: ServedNode) -> None:
    for name in ("a", "b", "c"):
        client.pause_queue(name)
    newest = client.audit()
    assert [(each.actor, each.object, each.outcome) for each in newest] == [
        ("admin", f"queue={name}", "asked") for name in ("c", "b", "a")
    ]
    assert newest[0].action == "POST /api/v1/queues/{queue}/pause"
    assert client.audit(limit=1) == newest[:1]
    _, cursor = client.audit_page(limit=2)
    assert client.audit_page(limit=2, cursor=cursor) == (newest[2:], None)
    assert list(client.all_audit(page_size=1)) == newest
    checked = client.check_audit()
    assert (checked.entries, checked.broken_at, checked.last_hash) == (3, None, newest[0].hash)
    made = client.create_key("boss", "admin")
    with Client(node.url, made.key) as boss, pytest.raises(Forbidden):
        boss.check_audit()


def test_a_login_link_lets_one_browser_in_once_as_the_caller(client: Client, node: ServedNode) -> None:
    made = client.create_key("ada", "viewer")
    with Client(node.url, made.key) as ada:
        link = ada.login_link().url
    assert link.startswith(f"{node.url}/login?code=")
    with urllib.request.urlopen(link) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    asked = urllib.request.Request(f"{node.url}/api/v1/session", headers={"Cookie": cookie})
    with urllib.request.urlopen(asked) as answer:
        assert b'"name":"ada"' in answer.read()
    with pytest.raises(HTTPError) as caught:
        urllib.request.urlopen(link)
    caught.value.close()
    assert caught.value.code == 401


async def test_an_async_client_has_the_same_calls(node: ServedNode) -> None:
    async with AsyncClient(node.url, KEY) as client:
        made = await client.create_key("ci", "viewer")
        assert [each.key_id async for each in client.all_keys()] == [made.key_id]
        assert [each.actor async for each in client.all_audit()] == ["admin"]
