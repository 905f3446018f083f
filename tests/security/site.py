"""The whole API over real services and a clock that the test moves, with keys of every kind and objects to go after."""

from collections.abc import Mapping
from typing import Any

from foliot.api import create_app
from foliot.domain.access import Role
from foliot.domain.alert import Trouble
from foliot.domain.ids import show
from foliot.store.base import Incident
from foliot.wire import BASE_PATH, encode
from tests.api.client import KEY, AsgiClient, Response
from tests.api.worker import Worker
from tests.service.conftest import ManualClock
from tests.service.meddling import Meddling
from tests.service.network import Network
from tests.service.told import carry

HOME = "here"
MARK = "planted-7d1f"  # in every text of the home namespace that is not an id


class Site:
    """A node's API with two namespaces beside `default`: `here`, which has objects of every kind, and `there`."""

    def __init__(self, store: Meddling) -> None:
        self.world = Network(store, ManualClock())
        self.clock = self.world.clock
        self.app = create_app(self.world.services, admin_key=KEY)
        self.root = self.client(KEY)
        self.names: dict[str, str] = {}
        self._made = 0

    def client(self, key: str | None, *, source: str = "192.0.2.1") -> AsgiClient:
        async def app(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
            await self.app({**scope, "client": (source, 40000)}, receive, send)

        return AsgiClient(app, key)

    async def make_key(self, role: Role, namespace: str = HOME, **fields: Any) -> dict[str, Any]:
        self._made += 1
        body = {"name": f"{role}-{self._made}", "role": role, "namespace": namespace} | fields
        made: dict[str, Any] = expect(await self.root.post(f"{BASE_PATH}/api-keys", body), 201)
        return made

    async def caller(self, role: Role, namespace: str = HOME, **fields: Any) -> AsgiClient:
        return self.client((await self.make_key(role, namespace, **fields))["key"])

    async def browser(self, role: Role, namespace: str = HOME) -> tuple[dict[str, str], str]:
        """The headers that a browser which is logged in sends, and the token that its changes must carry."""
        link = expect(await (await self.caller(role, namespace)).post(f"{BASE_PATH}/login-links"), 201)
        return await self.let_in(link["url"])

    async def let_in(self, url: str) -> tuple[dict[str, str], str]:
        answer = await self.client(None).get("/login?" + url.split("?")[1])
        assert answer.status == 200, answer.body
        headers = {"cookie": answer.headers["set-cookie"].split(";")[0]}
        session = expect(await self.client(None).get(f"{BASE_PATH}/session", headers=headers), 200)
        return headers, session["csrf_token"]

    async def open(self) -> None:
        for name in (HOME, "there"):
            expect(await self.root.post(f"{BASE_PATH}/namespaces", {"name": name}), 201)

    async def furnish(self) -> None:
        """Objects of every kind in the home namespace; `names` are those that stand in paths."""
        home = await self.caller("admin")
        job = {"job_type": "kind", "queue": "line", "payload": {"note": MARK}, "tags": [MARK], "owner": MARK}
        await _submit(home, job | {"job_id": "the-ended"})
        worker = await Worker.register(home, name=MARK, queues=["line"], job_types=["kind"], labels={"zone": MARK})
        (taken,) = await worker.take()
        await worker.log(taken, MARK)
        await worker.report(taken, "fatal_failure", error=MARK)
        await _submit(home, job | {"job_id": "the-held", "concurrency": {"key": "account", "limit": 1}})
        await _submit(home, job | {"job_id": "the-queued", "concurrency": {"key": "account", "limit": 1}})
        await _submit(home, job | {"job_id": "the-child", "depends_on": ["the-queued"]})
        await _submit(home, job | {"job_id": "the-later", "delay": "1d"})
        plan = {"schedule_id": "plan", "cron": "0 9 * * *", "job": job}
        expect(await home.post(f"{BASE_PATH}/schedules", plan), 201)
        expect(await home.post(f"{BASE_PATH}/queues/line/pause"), 200)
        expect(await home.post(f"{BASE_PATH}/job-types/kind/pause"), 200)
        webhook_id, delivery_id = await self._make_webhook(home)
        key = await self.make_key("viewer")
        channel = {"name": "the-channel", "url": f"json://127.0.0.1:1/{MARK}"}
        expect(await home.post(f"{BASE_PATH}/channels", channel), 201)
        rule = {"name": "the-rule", "on": "failed", "match": {"tag": MARK}, "channels": ["the-channel"]}
        expect(await home.post(f"{BASE_PATH}/alerts", rule), 201)
        self.names = {
            "job_id": "the-later",
            "schedule_id": "plan",
            "worker_id": worker.worker_id,
            "queue": "line",
            "job_type": "kind",
            "key": "account",
            "key_id": key["key_id"],
            "namespace": HOME,
            "channel": "the-channel",
            "rule": "the-rule",
            "incident_id": await self._make_incident(),
            "webhook_id": webhook_id,
            "delivery_id": delivery_id,
        }

    async def _make_webhook(self, home: AsgiClient) -> tuple[str, str]:
        """A webhook with something on its way to it."""
        body = {"url": f"https://receiver.example.org/{MARK}", "events": ["job.scheduled"], "match": {"tag": MARK}}
        webhook = expect(await home.post(f"{BASE_PATH}/webhooks", body), 201)["webhook_id"]
        await carry(self.world.store, self.world.services.webhooks, self.clock.now())
        (delivery,) = expect(await home.get(f"{BASE_PATH}/webhooks/{webhook}/deliveries"), 200)
        return webhook, delivery["delivery_id"]

    async def _make_incident(self) -> str:
        now = self.clock.now()
        trouble = Trouble(kind="failed", group="line/kind", first=now, last=now, detail=MARK, channels=("the-channel",))
        incident = Incident(
            id=7, namespace=HOME, rule="the-rule", subject="failed:line/kind", body=encode(trouble).decode(), opened=now
        )
        assert await self.world.store.save_incidents([incident])
        return show("i_", 7)


async def _submit(client: AsgiClient, body: object) -> None:
    expect(await client.post(f"{BASE_PATH}/jobs", body), 201)


def expect(answer: Response, status: int) -> Any:
    assert answer.status == status, (answer.status, answer.body)
    return answer.json() if answer.body else None
