"""Passes hints between nodes: ours to the others, coalesced so that there is at most one message in 20 ms; theirs to
our listeners. A message is the sender's number and `r:1,2` (lanes), `d:TIME` (a job), `f:TIME` (a schedule),
`s:WORKER,…`, `p:1,2` (queues with a place), `q:` (rules of queues and of those who watch) and `e:` (there are new
events), joined by spaces. Words of another version are
stepped over."""

import asyncio
from collections.abc import Collection

from foliot.domain.duration import Micros
from foliot.domain.ids import JobKey, ScheduleKey, WorkerKey
from foliot.node.peers import Peers
from foliot.node.running import Running
from foliot.service.dispatch import Dispatch
from foliot.service.wake import Wake
from foliot.store.base import Store

APART = 0.02
MOST_NAMES = 200  # NOTIFY takes 8,000 bytes


class Relay(Running):
    """Tells the other nodes."""

    def __init__(self, store: Store, wake: Wake, peers: Peers) -> None:
        super().__init__()
        self._store = store
        self._peers = peers
        self._lanes: set[int] = set()
        self._workers: set[WorkerKey] = set()
        self._places: set[int] = set()
        self._rules = False
        self._events = False
        self._due: Micros | None = None
        self._fire: Micros | None = None
        self._news = asyncio.Event()
        self._news.set()  # a first, empty message: the others learn at once that this node lives
        wake.on_ready.append(self._ready)
        wake.on_due.append(self._due_at)
        wake.on_fire.append(self._fire_at)
        wake.on_stop.append(self._stop_worker)
        wake.on_place.append(self._place)
        wake.on_rules.append(self._rules_changed)
        wake.on_change.append(self._changed)

    def _ready(self, lanes: Collection[int], tell: bool) -> None:
        if tell and not self._peers.alone:
            self._lanes.update(lanes)
            self._news.set()

    def _due_at(self, time: Micros, _key: JobKey | None, tell: bool) -> None:
        if tell and not self._peers.alone:
            self._due = time if self._due is None else min(self._due, time)
            self._news.set()

    def _fire_at(self, time: Micros, _key: ScheduleKey | None, tell: bool) -> None:
        if tell and not self._peers.alone:
            self._fire = time if self._fire is None else min(self._fire, time)
            self._news.set()

    def _stop_worker(self, worker: WorkerKey, tell: bool) -> None:
        if tell and not self._peers.alone:
            self._workers.add(worker)
            self._news.set()

    def _place(self, queue_ids: Collection[int], tell: bool) -> None:
        if tell and not self._peers.alone:
            self._places.update(queue_ids)
            self._news.set()

    def _rules_changed(self, tell: bool) -> None:
        if tell and not self._peers.alone:
            self._rules = True
            self._news.set()

    def _changed(self, tell: bool) -> None:
        if tell and not self._peers.alone:
            self._events = True
            self._news.set()

    async def round(self) -> None:
        await self._news.wait()
        self._news.clear()
        words = []
        if self._lanes:
            words.append(f"r:{','.join(map(str, sorted(self._lanes)[:MOST_NAMES]))}")
        if self._due is not None:
            words.append(f"d:{self._due}")
        if self._fire is not None:
            words.append(f"f:{self._fire}")
        if self._workers:
            words.append(f"s:{','.join(map(str, sorted(self._workers)[:MOST_NAMES]))}")
        if self._places:
            words.append(f"p:{','.join(map(str, sorted(self._places)[:MOST_NAMES]))}")
        if self._rules:
            words.append("q:")
        if self._events:
            words.append("e:")
        self._lanes, self._workers, self._due, self._fire = set(), set(), None, None
        self._places, self._rules, self._events = set(), False, False
        await self._store.notify(f"{self._peers.own} {' '.join(words)}")
        await asyncio.sleep(APART)


class Listener(Running):
    """Hears the other nodes."""

    def __init__(self, store: Store, wake: Wake, dispatch: Dispatch, peers: Peers) -> None:
        super().__init__()
        self._store = store
        self._wake = wake
        self._dispatch = dispatch
        self._peers = peers

    async def round(self) -> None:
        async for message in self._store.hints():
            if message:
                self._hear(message)
            else:
                await self._dispatch.look()
                self._wake.rules(tell=False)
                self._wake.change(tell=False)
                self._wake.due(0, tell=False)
                self._wake.fire(0, tell=False)
        await asyncio.Event().wait()

    def _hear(self, message: str) -> None:
        sender, *words = message.split()
        if sender == str(self._peers.own):
            return
        self._peers.meet(int(sender))
        for word in words:
            match word.split(":"):
                case ["r", lanes]:
                    self._wake.ready([int(lane) for lane in lanes.split(",")], tell=False)
                case ["d", time]:
                    self._wake.due(int(time), tell=False)
                case ["f", time]:
                    self._wake.fire(int(time), tell=False)
                case ["p", queues]:
                    self._wake.place([int(queue) for queue in queues.split(",")], tell=False)
                case ["q", _]:
                    self._wake.rules(tell=False)
                case ["e", _]:
                    self._wake.change(tell=False)
                case ["s", workers]:
                    for worker in workers.split(","):
                        self._wake.stop(WorkerKey(int(worker)), tell=False)
