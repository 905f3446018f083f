"""All services of a node, put together over one store."""

from foliot.clock import Clock
from foliot.domain.duration import Micros
from foliot.domain.ids import IdMaker
from foliot.service.control import Control
from foliot.service.dispatch import Dispatch
from foliot.service.explain import Explain
from foliot.service.firing import Firing
from foliot.service.forecast import Forecasts
from foliot.service.graphs import Graphs
from foliot.service.limits import Limits
from foliot.service.preview import Preview
from foliot.service.query import Query
from foliot.service.rates import Rate
from foliot.service.recover import Recover
from foliot.service.report import Reports
from foliot.service.roster import Roster
from foliot.service.schedules import Schedules
from foliot.service.submit import Submit
from foliot.service.wake import Wake
from foliot.service.workers import Workers
from foliot.store.base import Store


class Services:
    def __init__(
        self, store: Store, clock: Clock, ids: IdMaker, wake: Wake, *, lease: Micros, heartbeat: Micros
    ) -> None:
        submitted, started, ended = Rate(clock), Rate(clock), Rate(clock)
        self._store = store
        self.submit = Submit(store, clock, ids, wake, submitted)
        self.query = Query(store, clock, wake, Roster(store, clock), submitted=submitted, started=started, ended=ended)
        self.control = Control(store, clock, wake)
        self.firing = Firing(store, clock, ids, wake, self.control, submitted)
        self.schedules = Schedules(store, clock, ids, self.firing, self.control)
        self.preview = Preview(clock)
        self.graphs = Graphs(store, self.query)
        self.limits = Limits(store, clock, wake)
        self.explain = Explain(store, clock, self.query)
        self.forecasts = Forecasts(store, clock)
        self.dispatch = Dispatch(store, clock, ids, wake, started)
        self.reports = Reports(store, clock, ids, wake, ended)
        self.recover = Recover(store, clock, wake, ended)
        self.workers = Workers(
            store,
            clock,
            ids,
            wake,
            self.dispatch,
            self.reports,
            self.recover,
            self.graphs,
            lease=lease,
            heartbeat=heartbeat,
        )

    async def ready(self) -> None:
        """Raises `Unavailable` where the store does not answer."""
        await self._store.nodes()

    def close(self) -> None:
        """Answer all who wait: the node is about to stop."""
        self.dispatch.close()
        self.workers.close()
        self.query.close()

    async def drain(self) -> None:
        """Wait until what was taken in is written."""
        await self.dispatch.drain()
        for group in (self.submit.group, self.reports.lines, self.reports.ends):
            await group.drain()
