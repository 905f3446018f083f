"""Make runs of due times: load, decide, save. Any number of nodes may try; the schedule's version lets one of them win,
and the run's name, made from schedule and due time, is there once."""

from collections.abc import Collection, Sequence

import msgspec

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.duration import Micros
from foliot.domain.feed import Happening
from foliot.domain.firing import Outcome, fire, settle, to_replace
from foliot.domain.ids import IdMaker, JobKey, ScheduleKey
from foliot.domain.schedule import Schedule, Standing, Verdict, run_name
from foliot.service.announce import announce_new
from foliot.service.control import Control
from foliot.service.definition import read_readable, renewed
from foliot.service.group import persist
from foliot.service.job_fields import lane_of, new_job, parse_job, set_limits
from foliot.service.rates import Rate
from foliot.service.sealing import Sealer
from foliot.service.wake import Wake
from foliot.store.base import NewJob, Step, Store
from foliot.telemetry import tracing
from foliot.wire import SubmitBody, encode, to_time

ROUNDS = 20
WAITING_CHUNK = 500


class Firing:
    def __init__(
        self, store: Store, clock: Clock, ids: IdMaker, wake: Wake, control: Control, rate: Rate, sealer: Sealer
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._clock = clock
        self._ids = ids
        self._wake = wake
        self._control = control
        self._rate = rate

    async def fire(self, standings: Sequence[Standing]) -> set[ScheduleKey]:
        """Decide on all that is due of these schedules, each as it was read earlier. Those that are still due come
        back: they had changed since, or the store's clock says that it is not time yet."""
        now = self._clock.now()
        left, again = await self._fire(standings, now, fresh=False)
        while again:  # decided too carefully, or more is due than fits in one step
            more, again = await self._fire(list((await self._store.standings(list(again))).values()), now, fresh=True)
            left |= more
        return left

    async def settle(self, keys: Collection[ScheduleKey]) -> None:
        """Let due times that wait have their run, as far as there is room; tell the runs that are to make room."""
        for _ in range(ROUNDS):
            if not keys:
                return
            standings = await self._store.standings(sorted(keys))
            decided = {key: settle(standing, self._clock.now()) for key, standing in standings.items()}
            took = await self.save([outcome for outcome in decided.values() if outcome is not None])
            for standing in standings.values():
                if stuck := to_replace(standing):
                    await self._control.cancel_all(stuck)
            keys = [key for key, outcome in decided.items() if outcome is not None and key not in took]

    async def settle_forgotten(self) -> None:
        """Look for due times that wait, of which no hint came."""
        after = 0
        while keys := await self._store.waiting_schedules(WAITING_CHUNK, after=after):
            await self.settle(keys)
            after = keys[-1]

    async def save(
        self, outcomes: Sequence[Outcome], *, punctual: bool = False, tell: bool = False
    ) -> set[ScheduleKey]:
        """Carry out decisions, and tell who waits for what they bring; with `tell` also the other nodes, which learn by
        themselves when a schedule they know fires. With `punctual` none takes effect before the store's clock has
        reached all of its due times. The schedules of those that took effect."""
        if not outcomes:
            return set()
        now = self._clock.now()
        steps = await self._steps(outcomes, now, punctual)
        took = await persist(lambda _again: self._store.save_schedules(steps))
        for step in steps:
            if step.schedule.id in took:
                self._rate.add_of([new.job.lane_id for new in step.jobs])
                self._announce(step, tell)
        return took

    async def _steps(self, outcomes: Sequence[Outcome], now: Micros, punctual: bool) -> list[Step]:
        """Decisions with their jobs; what these need of the store is asked for once for all of them."""
        templates: dict[ScheduleKey, SubmitBody] = {}
        unread: dict[ScheduleKey, str] = {}  # payloads that do not open: the runs have them, and end with the reason
        for one in outcomes:
            if one.starts:
                key = one.schedule.id
                body, sealed = read_readable(self._sealer, one.schedule)
                templates[key] = SubmitBody(**msgspec.structs.asdict(body.job))
                if sealed is not None:
                    unread[key] = sealed
        lanes = {
            one.schedule.id: lane_of(templates[one.schedule.id], one.schedule.namespace)
            for one in outcomes
            if one.starts
        }
        wanted = list(dict.fromkeys(lanes.values()))
        numbers = dict(zip(wanted, await self._store.lane_ids(wanted), strict=True))
        bodies: dict[str, list[SubmitBody]] = {}
        for key, lane in lanes.items():
            bodies.setdefault(lane.namespace, []).append(templates[key])
        limits = {name: await set_limits(self._store, those, name) for name, those in bodies.items()}

        def jobs(outcome: Outcome) -> list[NewJob]:
            if not outcome.starts:
                return []
            schedule, lane = outcome.schedule, lanes[outcome.schedule.id]
            caller = Caller(name=schedule.owner, namespace=schedule.namespace)
            tracer = tracing.active()
            made = []
            for start, key in zip(outcome.starts, self._ids.take(len(outcome.starts), now), strict=True):
                body = msgspec.structs.replace(
                    templates[schedule.id], job_id=run_name(schedule.name, start.due), schedule_time=to_time(start.at)
                )
                trace = None if tracer is None else tracer.fire(schedule=schedule.name, job_type=lane.job_type)
                job = parse_job(
                    body, JobKey(key), lane, numbers[lane], caller, now, schedule_id=schedule.name, trace=trace
                )
                new = new_job(body, job, now, limits=limits[lane.namespace], sealer=self._sealer)
                if schedule.id in unread:
                    kept = msgspec.structs.replace(job, payload=unread[schedule.id])
                    new = msgspec.structs.replace(new, job=kept)
                made.append(new)
            return made

        return [
            Step(
                schedule=renewed(self._sealer, one.schedule),
                runs=one.runs,
                jobs=jobs(one),
                not_before=_last_due(one) if punctual else 0,
                happenings=_missed(one),
            )
            for one in outcomes
        ]

    async def _fire(
        self, standings: Sequence[Standing], now: Micros, *, fresh: bool
    ) -> tuple[set[ScheduleKey], set[ScheduleKey]]:
        """Those that are still due, and those to be decided again at once from a fresh reading."""
        outcomes: list[Outcome] = []
        again: set[ScheduleKey] = set()
        for standing in standings:
            outcome = fire(standing, now)
            if outcome is not None and (fresh or not outcome.tight):
                outcomes.append(outcome)
            elif outcome is not None:
                again.add(standing.schedule.id)
        took = await self.save(outcomes, punctual=True)
        again |= {outcome.schedule.id for outcome in outcomes if outcome.schedule.id in took and _more(outcome, now)}
        return {outcome.schedule.id for outcome in outcomes} - took, again

    def _announce(self, step: Step, tell: bool) -> None:
        announce_new(self._wake, step.jobs)
        schedule = step.schedule
        if not schedule.paused and schedule.next_due is not None:
            self._wake.fire(schedule.next_due, schedule.id, tell=tell)
        if any(run.verdict is None for run in step.runs):
            self._wake.freed([schedule.id])  # the run it waits for may have ended while this was decided


def _missed(outcome: Outcome) -> list[Happening]:
    """What is told of due times that have no run because nobody was there in time."""
    schedule = outcome.schedule
    return [
        Happening(
            kind="schedule.missed",
            subject=schedule.name,
            namespace=schedule.namespace,
            data=encode(
                {
                    "schedule_id": schedule.name,
                    "due_time": to_time(run.due),
                    "until": to_time(run.until),
                    "runs": run.count,
                    "verdict": run.promised.name.lower(),
                    "reason": run.reason,
                }
            ).decode(),
        )
        for run in outcome.runs
        if run.verdict in (Verdict.MISSED, Verdict.EXPIRED)
    ]


def _last_due(outcome: Outcome) -> Micros:
    return max((run.until for run in outcome.runs), default=0)


def _more(outcome: Outcome, now: Micros) -> bool:
    due = outcome.schedule.next_due
    return due is not None and due <= now


def next_run(schedule: Schedule) -> Micros | None:
    """The next due time that will be looked at; None while it is paused."""
    return None if schedule.paused else schedule.next_due
