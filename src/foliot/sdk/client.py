"""The blocking side of `AsyncClient`, for programs without an event loop."""

from typing import Self

from foliot.sdk.async_client import AsyncClient
from foliot.sdk.facade import Facade, blocking, blocking_iterator
from foliot.sdk.home_transport import HomeTransport
from foliot.sdk.loop_thread import LoopThread
from foliot.sdk.requester import PATIENCE_SECONDS
from foliot.sdk.tls import Trust
from foliot.sdk.transport import HttpTransport, Transport

__all__ = ["AsyncClient", "Client"]


class Client(Facade[AsyncClient]):
    """Every method waits for the one of the same name; `client.aio` is the awaitable side, for any event loop."""

    def __init__(
        self,
        url: str = "http://127.0.0.1:7070",
        key: str | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
        trust: Trust | None = None,
    ) -> None:
        thread = LoopThread()
        home = HomeTransport(thread, lambda: _connect(url, trust))
        super().__init__(AsyncClient(url, key, patience=patience, transport=home), thread)

    @classmethod
    def over(cls, aio: AsyncClient, thread: LoopThread) -> Self:
        """The blocking side of a client that is there already, carried out on that thread."""
        made = cls.__new__(cls)
        Facade.__init__(made, aio, thread)
        return made

    @property
    def url(self) -> str:
        return self.aio.url

    submit = blocking(AsyncClient.submit)
    submit_many = blocking(AsyncClient.submit_many)
    hand_in = blocking(AsyncClient.hand_in)
    hand_in_many = blocking(AsyncClient.hand_in_many)
    get = blocking(AsyncClient.get)
    page = blocking(AsyncClient.page)
    list = blocking_iterator(AsyncClient.list)
    update = blocking(AsyncClient.update)
    cancel = blocking(AsyncClient.cancel)
    pause = blocking(AsyncClient.pause)
    resume = blocking(AsyncClient.resume)
    run = blocking(AsyncClient.run)
    retry = blocking(AsyncClient.retry)
    change_many = blocking(AsyncClient.change_many)
    cancel_many = blocking(AsyncClient.cancel_many)
    pause_many = blocking(AsyncClient.pause_many)
    resume_many = blocking(AsyncClient.resume_many)
    retry_many = blocking(AsyncClient.retry_many)
    graph = blocking(AsyncClient.graph)
    why = blocking(AsyncClient.why)
    limits = blocking(AsyncClient.limits)
    limit_page = blocking(AsyncClient.limit_page)
    all_limits = blocking_iterator(AsyncClient.all_limits)
    limit = blocking(AsyncClient.limit)
    set_limit = blocking(AsyncClient.set_limit)
    queues = blocking(AsyncClient.queues)
    queue_page = blocking(AsyncClient.queue_page)
    all_queues = blocking_iterator(AsyncClient.all_queues)
    queue = blocking(AsyncClient.queue)
    set_queue = blocking(AsyncClient.set_queue)
    pause_queue = blocking(AsyncClient.pause_queue)
    resume_queue = blocking(AsyncClient.resume_queue)
    paused_types = blocking(AsyncClient.paused_types)
    pause_type = blocking(AsyncClient.pause_type)
    resume_type = blocking(AsyncClient.resume_type)
    executions = blocking(AsyncClient.executions)
    logs = blocking(AsyncClient.logs)
    follow_logs = blocking_iterator(AsyncClient.follow_logs)
    result = blocking(AsyncClient.result)
    wait = blocking(AsyncClient.wait)
    wait_all = blocking(AsyncClient.wait_all)
    outcome = blocking(AsyncClient.outcome)
    events = blocking_iterator(AsyncClient.events)
    create_schedule = blocking(AsyncClient.create_schedule)
    schedule = blocking(AsyncClient.schedule)
    schedules = blocking(AsyncClient.schedules)
    schedule_page = blocking(AsyncClient.schedule_page)
    all_schedules = blocking_iterator(AsyncClient.all_schedules)
    change_schedule = blocking(AsyncClient.change_schedule)
    delete_schedule = blocking(AsyncClient.delete_schedule)
    pause_schedule = blocking(AsyncClient.pause_schedule)
    resume_schedule = blocking(AsyncClient.resume_schedule)
    trigger_schedule = blocking(AsyncClient.trigger_schedule)
    backfill_schedule = blocking(AsyncClient.backfill_schedule)
    runs = blocking(AsyncClient.runs)
    run_page = blocking(AsyncClient.run_page)
    all_runs = blocking_iterator(AsyncClient.all_runs)
    preview = blocking(AsyncClient.preview)
    forecast = blocking(AsyncClient.forecast)
    workers = blocking(AsyncClient.workers)
    drain_worker = blocking(AsyncClient.drain_worker)
    nodes = blocking(AsyncClient.nodes)
    stats = blocking(AsyncClient.stats)
    lateness = blocking(AsyncClient.lateness)
    depth = blocking(AsyncClient.depth)
    create_key = blocking(AsyncClient.create_key)
    keys = blocking(AsyncClient.keys)
    key_page = blocking(AsyncClient.key_page)
    all_keys = blocking_iterator(AsyncClient.all_keys)
    key = blocking(AsyncClient.key)
    rotate_key = blocking(AsyncClient.rotate_key)
    revoke_key = blocking(AsyncClient.revoke_key)
    create_namespace = blocking(AsyncClient.create_namespace)
    namespaces = blocking(AsyncClient.namespaces)
    namespace = blocking(AsyncClient.namespace)
    set_quotas = blocking(AsyncClient.set_quotas)
    delete_namespace = blocking(AsyncClient.delete_namespace)
    audit = blocking(AsyncClient.audit)
    audit_page = blocking(AsyncClient.audit_page)
    all_audit = blocking_iterator(AsyncClient.all_audit)
    check_audit = blocking(AsyncClient.check_audit)
    whoami = blocking(AsyncClient.whoami)
    login_link = blocking(AsyncClient.login_link)
    alerts = blocking(AsyncClient.alerts)
    alert = blocking(AsyncClient.alert)
    create_alert = blocking(AsyncClient.create_alert)
    change_alert = blocking(AsyncClient.change_alert)
    delete_alert = blocking(AsyncClient.delete_alert)
    incidents = blocking(AsyncClient.incidents)
    incident_page = blocking(AsyncClient.incident_page)
    all_incidents = blocking_iterator(AsyncClient.all_incidents)
    incident = blocking(AsyncClient.incident)
    acknowledge_incident = blocking(AsyncClient.acknowledge_incident)
    silence_incident = blocking(AsyncClient.silence_incident)
    resolve_incident = blocking(AsyncClient.resolve_incident)
    channels = blocking(AsyncClient.channels)
    channel = blocking(AsyncClient.channel)
    create_channel = blocking(AsyncClient.create_channel)
    change_channel = blocking(AsyncClient.change_channel)
    delete_channel = blocking(AsyncClient.delete_channel)
    test_channel = blocking(AsyncClient.test_channel)
    webhooks = blocking(AsyncClient.webhooks)
    webhook_page = blocking(AsyncClient.webhook_page)
    all_webhooks = blocking_iterator(AsyncClient.all_webhooks)
    webhook = blocking(AsyncClient.webhook)
    create_webhook = blocking(AsyncClient.create_webhook)
    change_webhook = blocking(AsyncClient.change_webhook)
    delete_webhook = blocking(AsyncClient.delete_webhook)
    enable_webhook = blocking(AsyncClient.enable_webhook)
    disable_webhook = blocking(AsyncClient.disable_webhook)
    rotate_webhook = blocking(AsyncClient.rotate_webhook)
    test_webhook = blocking(AsyncClient.test_webhook)
    deliveries = blocking(AsyncClient.deliveries)
    delivery_page = blocking(AsyncClient.delivery_page)
    all_deliveries = blocking_iterator(AsyncClient.all_deliveries)
    redeliver = blocking(AsyncClient.redeliver)
    redeliver_failed = blocking(AsyncClient.redeliver_failed)
    request = blocking(AsyncClient.request)

    def close(self) -> None:
        if self.thread.running:
            self.thread.run(self.aio.close)
            self.thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


async def _connect(url: str, trust: Trust | None) -> Transport:
    return HttpTransport(url, trust)
