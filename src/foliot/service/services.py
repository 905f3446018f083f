"""All services of a node, put together over one store."""

from foliot.alerts import Sender
from foliot.clock import Clock
from foliot.domain.duration import DAY, Micros
from foliot.domain.ids import IdMaker
from foliot.outbound import AllowList
from foliot.service.access import Access, Identity
from foliot.service.alert_channels import Channels
from foliot.service.alert_notices import Notices
from foliot.service.alert_rules import AlertRules
from foliot.service.alert_telling import Telling
from foliot.service.alerts import Alerts
from foliot.service.audit import Audit
from foliot.service.control import Control
from foliot.service.definitions import Definitions
from foliot.service.deliveries import Deliveries
from foliot.service.dispatch import Dispatch
from foliot.service.explain import Explain
from foliot.service.feed import Feed
from foliot.service.firing import Firing
from foliot.service.forecast import Forecasts
from foliot.service.gate import Gate
from foliot.service.graphs import Graphs
from foliot.service.health import Health
from foliot.service.keys import KeyRing
from foliot.service.lateness import Lateness
from foliot.service.limits import Limits
from foliot.service.metrics import Metrics
from foliot.service.preview import Preview
from foliot.service.query import Query
from foliot.service.queues import Queues
from foliot.service.quota import Quota
from foliot.service.rates import Rate
from foliot.service.recover import Recover
from foliot.service.report import Reports
from foliot.service.roster import Roster
from foliot.service.schedules import Schedules
from foliot.service.sealing import Sealer
from foliot.service.submit import Submit
from foliot.service.wake import Wake
from foliot.service.webhooks import Webhooks
from foliot.service.workers import Workers
from foliot.store.base import Store


class Services:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: IdMaker,
        wake: Wake,
        *,
        lease: Micros,
        heartbeat: Micros,
        sealer: Sealer | None = None,
        identity: Identity | None = None,
        events_kept: Micros = 3 * DAY,
        allowed: AllowList | None = None,  # what may be called besides public addresses
    ) -> None:
        sealer = sealer or Sealer()
        submitted, started, ended = Rate(clock), Rate(clock), Rate(clock)
        self.health = Health(store)
        self.access = Access(store, clock, identity)
        self.keys = KeyRing(store, clock, self.access)
        self.audit = Audit(store, clock)
        self.quota = Quota(store, clock)
        self.definitions = Definitions(store, wake)
        telling = Telling(clock, self.definitions)
        self.submit = Submit(store, clock, ids, wake, submitted, sealer, self.quota, telling)
        roster = Roster(store, clock)
        self.gate = Gate(store, clock, wake)
        self.lateness = Lateness(store, clock, ids.node)
        self.metrics = Metrics(store, clock, self.lateness, ids.node, submitted=submitted, started=started)
        wake.on_timings.append(self.lateness.take)
        self.webhooks = Webhooks(store, clock, ids, wake, self.definitions, sealer, allowed or AllowList())
        self.deliveries = Deliveries(store, clock, wake, self.definitions, self.webhooks, sealer)
        self.alert_rules = AlertRules(clock, self.definitions)
        self.channels = Channels(clock, self.definitions, sealer, Sender(allowed or AllowList()))
        self.alerts = Alerts(store, clock, ids, self.definitions, roster)
        self.notices = Notices(store, clock, self.channels, self.alerts)
        self.feed = Feed(store, clock, sealer, wake, kept=events_kept)
        self.query = Query(
            store, clock, wake, roster, sealer, self.gate, submitted=submitted, started=started, ended=ended
        )
        self.control = Control(store, clock, wake, self.gate, sealer, telling)
        self.firing = Firing(store, clock, ids, wake, self.control, submitted, sealer)
        self.schedules = Schedules(store, clock, ids, self.firing, self.control, sealer, telling)
        self.preview = Preview(clock)
        self.graphs = Graphs(store, self.query, sealer)
        self.limits = Limits(store, clock, wake)
        self.queues = Queues(store, clock, wake, self.gate, telling)
        self.explain = Explain(store, clock, self.query, sealer)
        self.forecasts = Forecasts(store, clock)
        self.dispatch = Dispatch(store, clock, ids, wake, self.gate, started)
        self.reports = Reports(store, clock, ids, wake, ended, sealer)
        self.recover = Recover(store, clock, wake, self.gate, ended)
        self.workers = Workers(
            store,
            clock,
            ids,
            wake,
            self.dispatch,
            self.reports,
            self.recover,
            self.graphs,
            sealer,
            lease=lease,
            heartbeat=heartbeat,
        )

    def close(self) -> None:
        """Answer all who wait: the node is about to stop."""
        self.dispatch.close()
        self.workers.close()
        self.query.close()
        self.feed.close()

    async def drain(self) -> None:
        """Wait until what was taken in is written."""
        await self.dispatch.drain()
        await self.access.close()
        await self.feed.drain()
        self.channels.close()
        for group in (self.submit.group, self.reports.lines, self.reports.ends, self.audit.group):
            await group.drain()
        await self.lateness.close()
