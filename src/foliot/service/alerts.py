"""Incidents: opened, gone on with and ended by what happens and by conditions that hold; and what people do with them.

Only the node on watch writes what it sees. People who look after an incident, and nodes that send its notices, write
too: each save is a compare-and-set, and whoever was slower reads again.
"""

from collections.abc import Callable, Sequence

import msgspec

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.alert import (
    CONDITIONS,
    JOB_RULE,
    Kind,
    Rule,
    Signal,
    Trouble,
    acknowledge,
    end,
    is_exhausted,
    is_forgotten,
    is_over,
    silence,
)
from foliot.domain.duration import DAY, Micros, parse_duration
from foliot.domain.errors import BadInput, Conflict, NotFound
from foliot.domain.feed import mask_of
from foliot.domain.ids import IdMaker, parse, show
from foliot.domain.job import Job
from foliot.service.alert_checks import Checks, is_of_queue
from foliot.service.alert_desk import INCIDENT, MENDED_BY_JOBS, Desk, Key, read_trouble, show_incident, with_trouble
from foliot.service.alert_rules import RuleBook
from foliot.service.alert_telling import read_notify
from foliot.service.definitions import Definitions
from foliot.service.event import Event
from foliot.service.roster import Roster
from foliot.service.view import shown_id
from foliot.store.base import Incident, Store
from foliot.wire import IncidentInfo, SilenceBody

LONGEST_SILENCE = 31 * DAY
ROUNDS = 20

_HAPPENINGS: dict[str, Kind] = {
    "schedule.missed": "missed",
    "worker.lost": "worker_lost",
    "node.lost": "node_lost",
    "webhook.disabled": "webhook_disabled",
}
_decode = msgspec.json.Decoder(dict).decode


class Alerts:
    def __init__(self, store: Store, clock: Clock, ids: IdMaker, definitions: Definitions, roster: Roster) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._book = RuleBook(definitions)
        self._checks = Checks(store, self._book, roster)
        self._open: dict[Key, Incident] = {}
        self._unmended: set[Key] = set()  # those that a later job mends
        self._known = False  # whether what is open was ever read
        self.on_notice: list[Callable[[], None]] = []

    def wanted(self) -> int:
        """Which statuses the watch has to read."""
        statuses = ["failed"] if self._book.tells("failed", "exhausted") else []
        kinds = {subject.partition(":")[0] for _, _, subject in self._unmended}
        if kinds & {"failed", "exhausted"}:
            statuses.append("completed")
        if "missed" in kinds:
            statuses.append("running")
        return mask_of(statuses)

    def on_events(self, events: Sequence[Event]) -> list[Incident]:
        """What the events change, to be saved with how far was read; then to be told by `saved`."""
        desk = Desk(self._open, self._unmended)
        for event in events:
            for rule, signal in self._signals(event):
                desk.fold(rule, signal)
            self._mend(desk, event)
        return desk.incidents(self._ids, self._clock.now())

    def saved(self, incidents: Sequence[Incident]) -> None:
        """These are kept now."""
        for incident in incidents:
            key = (incident.namespace, incident.rule, incident.subject)
            self._open.pop(key, None)
            self._unmended.discard(key)
            if incident.resolved is None:
                self._learn(incident)
        if any(incident.notify_at is not None for incident in incidents):
            for listener in self.on_notice:
                listener()

    async def check(self, now: Micros) -> None:
        """Look at the conditions, end what is over, and keep what has changed. Where somebody else was faster, the next
        look sees it."""
        if not self._book.rules and not self._open and self._known and not self._book.tells("late"):
            return
        await self.refresh()
        looked = await self._checks.look(now)
        desk = Desk(self._open, self._unmended)
        held: set[Key] = set()
        for rule, signal in looked.told:
            desk.fold(rule, signal)
            held.add((rule.namespace, rule.name, signal.subject))
        for key in list(self._open):
            trouble = desk.trouble(key)
            if key not in held and trouble.kind in looked.kinds:
                desk.mend(key, now)
            if not key[1].startswith(JOB_RULE) and self._book.find(key[0], key[1]) is None:
                desk.end(key, now, quiet=True)
            elif is_over(desk.trouble(key), now):
                desk.end(key, now)
            elif trouble.kind not in CONDITIONS and is_forgotten(trouble, now):
                desk.end(key, now, quiet=True)
        incidents = desk.incidents(self._ids, now)
        if incidents and await self._store.save_incidents(incidents):
            self.saved(incidents)

    async def refresh(self) -> None:
        """Read what is open anew."""
        incidents = await self._store.open_incidents()
        self._open, self._unmended, self._known = {}, set(), True
        for incident in incidents:
            self._learn(incident)

    def _learn(self, incident: Incident) -> None:
        key = (incident.namespace, incident.rule, incident.subject)
        self._open[key] = incident
        trouble = read_trouble(incident.body)
        if trouble.kind in MENDED_BY_JOBS and trouble.mended is None:
            self._unmended.add(key)

    async def page(self, *, limit: int, cursor: str | None, caller: Caller) -> tuple[list[IncidentInfo], str | None]:
        """Newest first, and where the next page begins."""
        caller.check_whole("the list of incidents")
        before = None if cursor is None else parse(INCIDENT, cursor)
        if cursor is not None and before is None:
            raise BadInput.at("cursor", "is not one that a page gave; begin without it")
        found = await self._store.incidents(caller.namespace, limit=limit + 1, before=before)
        page = found[:limit]
        return [show_incident(each) for each in page], show(INCIDENT, page[-1].id) if len(found) > limit else None

    async def read(self, incident_id: str, caller: Caller) -> IncidentInfo:
        caller.check_whole("an incident")
        return show_incident(await self._find(incident_id, caller))

    async def acknowledge(self, incident_id: str, caller: Caller) -> IncidentInfo:
        return await self._change(incident_id, lambda known, now: acknowledge(known, caller.name, now), caller)

    async def silence(self, incident_id: str, body: SilenceBody, caller: Caller) -> IncidentInfo:
        length = parse_duration(body.duration, "for")
        if length > LONGEST_SILENCE:
            raise BadInput.at("for", "at most 31 days")
        return await self._change(incident_id, lambda known, now: silence(known, now + length), caller)

    async def resolve(self, incident_id: str, caller: Caller) -> IncidentInfo:
        """Somebody says that it is over. Where it is not, it opens again."""
        return await self._change(incident_id, lambda known, now: end(known, now, by=caller.name), caller)

    async def _change(
        self, incident_id: str, change: Callable[[Trouble, Micros], Trouble], caller: Caller
    ) -> IncidentInfo:
        caller.check_whole("an incident")
        for _ in range(ROUNDS):
            known = await self._find(incident_id, caller)
            if known.resolved is not None:
                raise Conflict(f"incident {incident_id!r} is over already")
            changed = with_trouble(known, change(read_trouble(known.body), self._clock.now()))
            if await self._store.save_incidents([changed]):
                self.saved([changed])
                return show_incident(changed)
        raise Conflict(f"incident {incident_id!r} changes faster than it can be changed; try again")

    async def _find(self, incident_id: str, caller: Caller) -> Incident:
        number = parse(INCIDENT, incident_id)
        found = None if number is None else await self._store.incident(caller.namespace, number)
        if found is None:
            raise NotFound(f"there is no incident {incident_id!r}; it may be past the time that history is kept")
        return found

    def _signals(self, event: Event) -> list[tuple[Rule, Signal]]:
        if event.happening is not None:
            kind = _HAPPENINGS.get(event.kind)
            return [] if kind is None else self._of_happening(event, kind)
        if event.status != "failed" or event.record is None:
            return []
        job = event.record.job
        kinds: tuple[Kind, ...] = ("failed", "exhausted") if is_exhausted(event.record) else ("failed",)
        return [
            (rule, _failure(kind, event, job)) for rule in self._rules_for(job) for kind in kinds if kind in rule.on
        ]

    def _rules_for(self, job: Job) -> list[Rule]:
        """Those that are about a job: what it says itself takes the place of what its queue says."""
        rules = [
            rule
            for rule in self._book.rules
            if rule.namespace == job.lane.namespace
            and rule.match.takes(job)
            and (job.notify is None or not is_of_queue(rule))
        ]
        own = None if job.notify is None else read_notify(job.notify)
        return [*rules, own.as_rule(job.lane.namespace)] if own is not None and own.on else rules

    def _of_happening(self, event: Event, kind: Kind) -> list[tuple[Rule, Signal]]:
        assert event.happening is not None
        told = _decode(event.happening.data)
        signal = Signal(
            kind=kind,
            group=event.subject,
            time=event.time,
            count=told.get("runs", 1) if kind == "missed" else 1,
            detail=_happening_words(kind, told),
        )
        return [
            (rule, signal)
            for rule in self._book.rules
            if rule.tells(kind, event.namespace) and rule.match.schedule_id in (None, event.subject)
        ]

    def _mend(self, desk: Desk, event: Event) -> None:
        """A later job of the same kind has completed, a later run of the schedule has started."""
        if event.record is None or event.status not in ("completed", "running"):
            return
        job = event.record.job
        for key in list(desk.unmended):
            namespace, name, subject = key
            kind, _, group = subject.partition(":")
            if namespace != job.lane.namespace:
                continue
            if event.status == "running":
                same = kind == "missed" and group == job.schedule_id
            else:
                rule = self._book.find(namespace, name)
                same = (
                    kind in ("failed", "exhausted")
                    and group == f"{job.lane.queue}/{job.lane.job_type}"
                    and (rule is None or rule.match.takes(job))
                )
            if same:
                desk.mend(key, event.time)


def _failure(kind: Kind, event: Event, job: Job) -> Signal:
    reason = None if event.entry is None else event.entry.reason
    return Signal(
        kind=kind,
        group=f"{job.lane.queue}/{job.lane.job_type}",
        time=event.time,
        jobs=(shown_id(job),),
        detail=f"The last one: {shown_id(job)}, {reason}." if reason else "",
    )


def _happening_words(kind: Kind, told: dict[str, object]) -> str:
    match kind:
        case "missed":
            return f"{told.get('runs')} due times from {told.get('due_time')} to {told.get('until')} have no run."
        case "worker_lost":
            return f"{told.get('name')}, last seen {told.get('last_seen')}; it held {told.get('holds')} jobs."
        case "node_lost":
            return f"{told.get('name')}, last seen {told.get('last_seen')}."
    return f"Its reason: {told.get('reason')}; it fails since {told.get('failing_since')}."
