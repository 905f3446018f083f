"""Alert rules, and what queues and jobs say of themselves instead: as users define them, as the watch reads them."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.alert import THROTTLE, TIMED, Kind, Match, Notify, Rule
from foliot.domain.duration import parse_duration, show_duration
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound, Stale
from foliot.domain.job import Lane
from foliot.domain.objective import Objective
from foliot.service.alert_telling import check_channels, parse_length, read_telling
from foliot.service.definitions import Definitions
from foliot.store.base import Definition
from foliot.wire import (
    MatchBody,
    RuleBody,
    RuleFields,
    RuleInfo,
    encode,
    to_time,
)

MOST = 200  # of one kind in one namespace
RESERVED = "incidents"  # stands in a path where a rule's name would
OF_THE_NODE: frozenset[Kind] = frozenset({"node_lost", "store"})
ROUNDS = 20

_OF_JOBS = frozenset({"queue", "job_type", "schedule_id", "tag"})
_MATCHES: Mapping[Kind, frozenset[str]] = {
    "failed": _OF_JOBS,
    "exhausted": _OF_JOBS,
    "late": _OF_JOBS,
    "overrun": _OF_JOBS,
    "missed": frozenset({"schedule_id"}),
    "queue_age": frozenset({"queue"}),
    "no_worker": frozenset({"queue", "job_type"}),
    "worker_lost": frozenset(),
    "node_lost": frozenset(),
    "store": frozenset(),
    "slo": frozenset({"queue"}),
    "webhook_disabled": frozenset(),
}


_read_rule = msgspec.json.Decoder(Rule).decode


class RuleBook:
    """All rules that hold, read once for each edition of what users have defined."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._edition = -1
        self._rules: Sequence[Rule] = ()
        self._objectives: Mapping[tuple[str, str], Objective] = {}
        self._own: Mapping[tuple[str, str, str], Notify] = {}

    @property
    def rules(self) -> Sequence[Rule]:
        """Those that users define, and those of queues."""
        self._learn()
        return self._rules

    @property
    def objectives(self) -> Mapping[tuple[str, str], Objective]:
        """By namespace and queue."""
        self._learn()
        return self._objectives

    def own(self, lane: Lane) -> Notify | None:
        """What jobs of the lane may say of themselves; None where none does."""
        self._learn()
        return self._own.get((lane.namespace, lane.queue, lane.job_type))

    def tells(self, *kinds: Kind) -> bool:
        """Whether anybody is to be told of any of these."""
        self._learn()
        told = {kind for rule in self._rules for kind in rule.on}
        told |= {kind for notify in self._own.values() for kind in notify.on}
        return not told.isdisjoint(kinds)

    def find(self, namespace: str, name: str) -> Rule | None:
        return next((rule for rule in self.rules if (rule.namespace, rule.name) == (namespace, name)), None)

    def _learn(self) -> None:
        if self._edition == self._definitions.edition:
            return
        self._edition = self._definitions.edition
        rules = [_read_rule(definition.body) for definition in self._definitions.of("alert")]
        objectives: dict[tuple[str, str], Objective] = {}
        own: dict[tuple[str, str, str], Notify] = {}
        for definition in self._definitions.of("queue"):
            telling = read_telling(definition.body)
            queue, slash, job_type = definition.name.partition("/")
            if telling.objective is not None:
                objectives[definition.namespace, queue] = telling.objective
            if telling.notify is not None and slash:
                own[definition.namespace, queue, job_type] = telling.notify
            elif telling.notify is not None:
                rules.append(telling.notify.as_rule(definition.namespace, queue))
        self._rules, self._objectives, self._own = rules, objectives, own


class AlertRules:
    """Rules: made, read, changed, deleted."""

    def __init__(self, clock: Clock, definitions: Definitions) -> None:
        self._clock = clock
        self._definitions = definitions

    async def create(self, body: RuleBody, caller: Caller) -> RuleInfo:
        caller.check_whole("an alert rule")
        if body.name == RESERVED:
            raise BadInput.at("name", f"{RESERVED!r} is the list of incidents; choose another")
        if len(self._definitions.of("alert", caller.namespace)) >= MOST:
            raise Conflict(f"there are {MOST} rules already; change or delete one")
        rule = _amended(Rule(namespace=caller.namespace, name=body.name, on=()), body)
        _check_reach(rule, caller)
        await check_channels(self._definitions, rule.namespace, rule.channels, "channels")
        saved = await self._definitions.put(self._definition(rule), expected=0)
        if saved is None:
            raise Conflict(f"there is a rule {body.name!r} already; change it with PUT")
        return _show(saved)

    async def update(self, name: str, body: RuleFields, *, if_match: int | None, caller: Caller) -> RuleInfo:
        """Change the fields given; incidents that are open go on by the new ones."""
        caller.check_whole("an alert rule")
        for _ in range(ROUNDS):
            known = await self._find(name, caller)
            if if_match is not None and if_match != known.version:
                raise Stale(f"rule {name!r} is at version {known.version}, not {if_match}; read it again")
            rule = _amended(_read_rule(known.body), body)
            _check_reach(rule, caller)
            await check_channels(self._definitions, rule.namespace, rule.channels, "channels")
            saved = await self._definitions.put(self._definition(rule), expected=known.version)
            if saved is not None:
                return _show(saved)
        raise Conflict(f"rule {name!r} changes faster than it can be changed; try again")

    async def read(self, name: str, caller: Caller) -> RuleInfo:
        caller.check_whole("an alert rule")
        return _show(await self._find(name, caller))

    async def list(self, caller: Caller) -> list[RuleInfo]:
        caller.check_whole("the list of alert rules")
        await self._definitions.refresh()
        return [_show(each) for each in self._definitions.of("alert", caller.namespace)]

    async def delete(self, name: str, caller: Caller) -> None:
        """Its incidents are over with it, without a word."""
        caller.check_whole("an alert rule")
        if not await self._definitions.remove("alert", caller.namespace, name):
            raise NotFound(f"there is no rule {name!r}")

    async def _find(self, name: str, caller: Caller) -> Definition:
        """As it is now, whichever node changed it last."""
        await self._definitions.refresh()
        found = self._definitions.get("alert", caller.namespace, name)
        if found is None:
            raise NotFound(f"there is no rule {name!r}")
        return found

    def _definition(self, rule: Rule) -> Definition:
        return Definition(
            kind="alert",
            namespace=rule.namespace,
            name=rule.name,
            body=encode(rule).decode(),
            created=self._clock.now(),
        )


def _amended(rule: Rule, body: RuleFields) -> Rule:
    on = rule.on
    if body.on is not UNSET:
        on = (body.on,) if isinstance(body.on, str) else tuple(dict.fromkeys(body.on))
    match = rule.match
    if body.match is not UNSET:
        match = Match() if body.match is None else msgspec.convert(body.match, Match, from_attributes=True)
    after = rule.after
    if body.after is not UNSET:
        after = None if body.after is None else parse_length(body.after, "after")
    throttle = rule.throttle
    if body.throttle is not UNSET:
        throttle = THROTTLE if body.throttle is None else parse_duration(body.throttle, "throttle")
    channels = rule.channels if body.channels is UNSET else tuple(dict.fromkeys(body.channels))
    changed = Rule(
        namespace=rule.namespace,
        name=rule.name,
        on=on,
        match=match,
        after=after,
        channels=channels,
        throttle=throttle,
    )
    _check(changed)
    return changed


def _check(rule: Rule) -> None:
    timed = [kind for kind in rule.on if kind in TIMED]
    if timed and rule.after is None:
        raise BadInput.at("after", f'is required for {timed[0]}: how long, such as "5m"')
    if rule.after is not None and not timed:
        raise BadInput.at("after", f"counts only for {', '.join(sorted(TIMED))}; leave it out")
    for kind in rule.on:
        for field in ("queue", "job_type", "schedule_id", "tag"):
            if getattr(rule.match, field) is not None and field not in _MATCHES[kind]:
                known = ", ".join(sorted(_MATCHES[kind])) or "nothing"
                raise BadInput.at(f"match.{field}", f"{kind} is matched by {known}; give it a rule of its own")


def _check_reach(rule: Rule, caller: Caller) -> None:
    """Nodes and the store are no namespace's own."""
    beyond = [kind for kind in rule.on if kind in OF_THE_NODE]
    if beyond and not caller.root:
        raise Forbidden(f"{beyond[0]} concerns all namespaces; such a rule is for the node's own admin key")


def _show(definition: Definition) -> RuleInfo:
    rule = _read_rule(definition.body)
    return RuleInfo(
        name=rule.name,
        on=list(rule.on),
        match=msgspec.convert(rule.match, MatchBody, from_attributes=True),
        after=None if rule.after is None else show_duration(rule.after),
        channels=list(rule.channels),
        throttle=show_duration(rule.throttle),
        created_time=to_time(definition.created),
        version=definition.version,
    )
