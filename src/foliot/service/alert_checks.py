"""What should have happened and did not: conditions that rules ask for, looked at each second by the node on watch.

Each look costs a few reads through indexes, and none where no rule asks for it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from foliot.domain.alert import Kind, Match, Rule, Signal
from foliot.domain.duration import SECOND, Micros, write_duration
from foliot.domain.ids import JobKey
from foliot.domain.job import Job, Lane
from foliot.domain.objective import Burn, Objective
from foliot.service.alert_levels import Levels
from foliot.service.alert_rules import RuleBook
from foliot.service.alert_telling import read_notify
from foliot.service.roster import Roster
from foliot.service.view import shown_id
from foliot.store.base import Store, Waiter

MOST = 200  # jobs of one lane that are looked at, and attempts that run too long
MOST_JOBS = 2000  # of all lanes together, but one of each at least
LOADED = 100  # at once, since their payloads may be large
SLOW_EVERY = 30 * SECOND  # for what changes slowly

Told = tuple[Rule, Signal]


class Looked(msgspec.Struct, frozen=True):
    """What holds now, and which kinds were looked at: what is not among it holds no longer."""

    told: Sequence[Told]
    kinds: frozenset[Kind]


class Checks:
    def __init__(self, store: Store, book: RuleBook, roster: Roster) -> None:
        self._store = store
        self._book = book
        self._roster = roster
        self._levels = Levels(store)
        self._slow_at: Micros = 0
        self._known: dict[int, Job] = {}  # without their payloads; forgotten now and then, since they may change

    async def look(self, now: Micros) -> Looked:
        slow = now >= self._slow_at
        if slow:
            self._slow_at = now + SLOW_EVERY
            self._known.clear()
        told = [*await self._waiting(now), *await self._overruns(now)]
        kinds: set[Kind] = {"late", "queue_age", "no_worker", "overrun"}
        if slow:
            told += [*await self._facts(now), *await self._objectives(now)]
            kinds |= {"store", "slo"}
        return Looked(told, frozenset(kinds))

    async def _waiting(self, now: Micros) -> list[Told]:
        if not self._book.tells("late", "queue_age", "no_worker"):
            return []
        lanes = await self._lanes()
        asked = {lane_id: after for lane_id, lane in lanes.items() if (after := self._soonest(lane)) is not None}
        if not asked:
            return []
        most = max(1, min(MOST, MOST_JOBS // len(asked)))
        waiters = await self._store.waiters(sorted(asked), now - min(asked.values()), most)
        jobs = await self._jobs(waiter.id for waiter in waiters)
        told: list[Told] = []
        for rule in self._book.rules:
            if rule.after is not None:
                found = [each for each in waiters if each.due <= now - rule.after and each.id in jobs]
                told += self._late(rule, found, jobs, now, most)
                told += self._old(rule, found, jobs, now)
                told += await self._unserved(rule, found, jobs, now)
        return told + self._own_late(waiters, jobs, now, most)

    async def _lanes(self) -> Mapping[int, Lane]:
        """Those with jobs that lack only a worker, a place in their queue or a token."""
        occupied = {lane_id for lane_id, status, count in await self._store.depths() if status == "queued" and count}
        return {lane_id: lane for lane_id in occupied if (lane := self._store.lane(lane_id)) is not None}

    def _soonest(self, lane: Lane) -> Micros | None:
        """After how long a wait in the lane concerns somebody."""
        times = [
            rule.after
            for rule in self._book.rules
            if rule.after is not None
            and rule.namespace == lane.namespace
            and rule.match.takes_lane(lane)
            and any(kind in rule.on for kind in ("late", "queue_age", "no_worker"))
        ]
        own = self._book.own(lane)
        if own is not None and own.late_after is not None:
            times.append(own.late_after)
        return min(times, default=None)

    def _late(
        self, rule: Rule, waiters: Iterable[Waiter], jobs: Mapping[int, Job], now: Micros, most: int
    ) -> list[Told]:
        if "late" not in rule.on:
            return []
        groups: dict[str, list[Waiter]] = defaultdict(list)
        for waiter in waiters:
            job = jobs[waiter.id]
            if _concerns(rule, job):
                groups[_group(job.lane)].append(waiter)
        return [(rule, _late_signal(group, found, jobs, now, most)) for group, found in groups.items()]

    def _own_late(self, waiters: Iterable[Waiter], jobs: Mapping[int, Job], now: Micros, most: int) -> list[Told]:
        """Of jobs that say themselves whom to tell."""
        groups: dict[tuple[str, str, str], list[Waiter]] = defaultdict(list)
        rules: dict[str, Rule] = {}
        for waiter in waiters:
            job = jobs.get(waiter.id)
            notify = None if job is None or job.notify is None else read_notify(job.notify)
            if job is None or notify is None or notify.late_after is None or waiter.due > now - notify.late_after:
                continue
            rule = notify.as_rule(job.lane.namespace)
            rules.setdefault(rule.name, rule)
            groups[job.lane.namespace, rule.name, _group(job.lane)].append(waiter)
        return [
            (
                msgspec.structs.replace(rules[name], namespace=namespace),
                _late_signal(group, found, jobs, now, most),
            )
            for (namespace, name, group), found in groups.items()
        ]

    def _old(self, rule: Rule, waiters: Iterable[Waiter], jobs: Mapping[int, Job], now: Micros) -> list[Told]:
        if "queue_age" not in rule.on:
            return []
        oldest: dict[str, Waiter] = {}
        for waiter in waiters:
            lane = jobs[waiter.id].lane
            if lane.namespace == rule.namespace and rule.match.takes_lane(lane):
                known = oldest.get(lane.queue)
                oldest[lane.queue] = waiter if known is None or waiter.due < known.due else known
        return [
            (
                rule,
                Signal(
                    kind="queue_age",
                    group=queue,
                    time=now,
                    jobs=(shown_id(jobs[waiter.id]),),
                    detail=f"The oldest job waits for {_length(now - waiter.due)}.",
                ),
            )
            for queue, waiter in oldest.items()
        ]

    async def _unserved(
        self, rule: Rule, waiters: Iterable[Waiter], jobs: Mapping[int, Job], now: Micros
    ) -> list[Told]:
        if "no_worker" not in rule.on:
            return []
        groups: dict[str, list[Waiter]] = defaultdict(list)
        served: dict[Lane, bool] = {}
        for waiter in waiters:
            lane = jobs[waiter.id].lane
            if lane.namespace != rule.namespace or not rule.match.takes_lane(lane):
                continue
            if lane not in served:
                served[lane] = await self._roster.offers(lane)
            if not served[lane]:
                groups[_group(lane)].append(waiter)
        return [
            (
                rule,
                Signal(
                    kind="no_worker",
                    group=group,
                    time=now,
                    count=len(found),
                    jobs=_shown(found, jobs),
                    detail=f"{_many(len(found))} {'waits' if len(found) == 1 else 'wait'}, and no living worker takes "
                    f"them; the first was due {_length(now - min(each.due for each in found))} ago.",
                ),
            )
            for group, found in groups.items()
        ]

    async def _overruns(self, now: Micros) -> list[Told]:
        rules = [rule for rule in self._book.rules if "overrun" in rule.on and rule.after is not None]
        if not rules:
            return []
        found = await self._store.overruns(now - min(rule.after or 0 for rule in rules), MOST)
        jobs = await self._jobs(key for key, _, _ in found)
        told: list[Told] = []
        for rule in rules:
            groups: dict[str, list[tuple[Job, Micros]]] = defaultdict(list)
            for key, _, since in found:
                job = jobs.get(key)
                if job is not None and since <= now - (rule.after or 0) and _concerns(rule, job):
                    groups[_group(job.lane)].append((job, since))
            for group, running in groups.items():
                first = min(since for _, since in running)
                signal = Signal(
                    kind="overrun",
                    group=group,
                    time=now,
                    count=len(running),
                    jobs=[shown_id(job) for job, _ in running],
                    detail=f"{_many(len(running))} {'runs' if len(running) == 1 else 'run'} for longer than "
                    f"{write_duration(rule.after or 0)}; the first for {_length(now - first)}.",
                )
                told.append((rule, signal))
        return told

    async def _facts(self, now: Micros) -> list[Told]:
        rules = [rule for rule in self._book.rules if "store" in rule.on]
        if not rules:
            return []
        facts = [fact for fact in await self._store.facts() if fact.trouble]
        return [
            (rule, Signal(kind="store", group=fact.name, time=now, detail=fact.trouble))
            for rule in rules
            for fact in facts
        ]

    async def _objectives(self, now: Micros) -> list[Told]:
        told: list[Told] = []
        for (namespace, queue), objective in self._book.objectives.items():
            rules = [r for r in self._book.rules if r.tells("slo", namespace) and r.match.queue in (None, queue)]
            if not rules:
                continue
            found = await self._levels.burn((namespace, queue), objective, now)
            if found.window is not None:
                signal = Signal(kind="slo", group=queue, time=now, detail=_burn_words(objective, found))
                told += [(rule, signal) for rule in rules]
        return told

    async def _jobs(self, keys: Iterable[int]) -> dict[int, Job]:
        wanted = list(keys)
        new = [JobKey(key) for key in wanted if key not in self._known]
        for start in range(0, len(new), LOADED):
            for key, record in (await self._store.load(new[start : start + LOADED])).items():
                self._known[key] = msgspec.structs.replace(record.job, payload="")
        return {key: self._known[key] for key in wanted if key in self._known}


def _concerns(rule: Rule, job: Job) -> bool:
    """Whether a rule is about a job; a job that says itself whom to tell is left out of its queue's."""
    return (
        job.lane.namespace == rule.namespace and rule.match.takes(job) and (job.notify is None or not is_of_queue(rule))
    )


def is_of_queue(rule: Rule) -> bool:
    """Whether it is what a queue says of its jobs, not a rule that somebody made."""
    return rule.name == f"queue:{rule.match.queue}" and rule.match == Match(queue=rule.match.queue)


def _late_signal(group: str, waiters: Sequence[Waiter], jobs: Mapping[int, Job], now: Micros, most: int) -> Signal:
    first = min(waiter.due for waiter in waiters)
    least = "At least " if len(waiters) >= most else ""
    return Signal(
        kind="late",
        group=group,
        time=now,
        count=len(waiters),
        jobs=_shown(waiters, jobs),
        detail=f"{least}{_many(len(waiters))} should have started and {'has' if len(waiters) == 1 else 'have'} not; "
        f"the first was due {_length(now - first)} ago.",
    )


def _shown(waiters: Sequence[Waiter], jobs: Mapping[int, Job]) -> list[str]:
    return [shown_id(jobs[waiter.id]) for waiter in sorted(waiters, key=lambda each: each.due)[:10]]


def _group(lane: Lane) -> str:
    return f"{lane.queue}/{lane.job_type}"


def _many(count: int) -> str:
    return "1 job" if count == 1 else f"{count} jobs"


def _length(length: Micros) -> str:
    return write_duration(max(0, length) // SECOND * SECOND)


def _burn_words(objective: Objective, found: Burn) -> str:
    window = write_duration(found.window or 0)
    return (
        f"{objective.target:.5g} of the jobs are to start within {write_duration(objective.within)}; over the last "
        f"{window} the budget for those that do not is used {found.rate:.1f} times as fast as it may be. "
        f"{max(0.0, found.left):.0%} of it is left for {write_duration(objective.over)}."
    )
