"""What becomes of due times: started, skipped, kept waiting, caught up or missed. Pure: from a schedule as it stands
and the time, to its next state, the rows of the ledger and the runs to start.

However long a schedule was away, what it missed costs the same: due times that share a fate are one row with a count,
and only due times that become runs are looked at one by one, `STEP` of them at a time.
"""

from collections.abc import Sequence

import msgspec

from foliot.domain.duration import SECOND, Micros
from foliot.domain.ids import JobKey
from foliot.domain.schedule import STANDING_LIMIT, Plan, Run, Schedule, Standing, Verdict
from foliot.domain.timetable.due_times import LATEST, jitter_of, next_after, previous_at_or_before, tally

PUNCTUAL = 60 * SECOND  # a due time that is less late than this was not missed
STEP = 1000  # due times looked at in one decision


class Start(msgspec.Struct, frozen=True):
    """A run to make a job of: its due time, and when it is to start (later by the jitter)."""

    due: Micros
    at: Micros


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A decision. `tight` tells that a due time found no room: made from what was read earlier, it is to be made again
    from a fresh reading, since runs may have ended meanwhile."""

    schedule: Schedule
    runs: Sequence[Run] = ()
    starts: Sequence[Start] = ()
    tight: bool = False


def fire(standing: Standing, now: Micros) -> Outcome | None:
    """Decide on the due times up to `now`; None where there are none. At most about `STEP` become runs: where
    `next_due` still lies at or before `now`, there is more to do."""
    due = standing.schedule.next_due
    if due is None or due > now or standing.schedule.paused:
        return None
    desk = _Desk(standing, now)
    desk.start_waiting()
    next_due: Micros | None = desk.pass_missed(due)
    while next_due is not None and next_due <= now and desk.looked_at < STEP:
        desk.take(next_due, Verdict.RAN)
        next_due = desk.after(next_due)
    return desk.outcome(next_due)


def settle(standing: Standing, now: Micros) -> Outcome | None:
    """Start due times that waited, as far as there is room now; None where none can start and no backfill is over."""
    if standing.schedule.paused:
        return None
    desk = _Desk(standing, now)
    desk.start_waiting()
    outcome = desk.outcome(standing.schedule.next_due)
    over = outcome.schedule.backfill_limit != standing.schedule.backfill_limit
    return outcome if desk.starts or over else None


def to_replace(standing: Standing) -> Sequence[JobKey]:
    """The runs under way that are to make room for the due time that waits."""
    plan, waiting = standing.schedule.plan, standing.waiting
    if standing.schedule.paused or plan.overlap != "replace" or not waiting or _keeps_its_turn(waiting[0], plan):
        return ()
    return standing.under_way[: max(0, len(standing.under_way) - plan.max_concurrency + 1)]


def resume(schedule: Schedule, now: Micros) -> Outcome:
    """Go on after a pause: what was due meanwhile was skipped."""
    desk = _Desk(Standing(schedule=schedule), now)
    next_due = schedule.next_due
    if next_due is not None and next_due <= now:
        desk.note(next_due, now, Verdict.SKIPPED, "paused")
        next_due = desk.after(now)
    return _paused(desk.outcome(next_due), False)


def pause(schedule: Schedule, now: Micros) -> Outcome:
    return _paused(_Desk(Standing(schedule=schedule), now).outcome(schedule.next_due), True)


def trigger(schedule: Schedule, now: Micros) -> Outcome:
    """A run because somebody asked, whatever is under way. It does not count as one of `max_runs`. Its time in the
    ledger is one at which nothing is due."""
    desk = _Desk(Standing(schedule=schedule), now)
    at = now
    while next_after(schedule.plan.timetable, at - 1) == at:
        at += 1
    desk.rows.append(_row(at, Verdict.RAN, now, reason="triggered"))
    desk.starts.append(Start(at, at))
    return desk.outcome(schedule.next_due)


def backfill(schedule: Schedule, dues: Sequence[Micros], limit: int, now: Micros) -> Outcome:
    """Let past due times wait for a run each, at most `limit` of them at once. One that is still to be decided on is
    left to that, so that it does not get two runs; in a pause, where that means skipped, it waits like the others."""
    decided = LATEST if schedule.paused or schedule.next_due is None else schedule.next_due
    rows = [_row(due, None, now, promised=Verdict.BACKFILLED) for due in dues if due < decided]
    changed = msgspec.structs.replace(
        schedule, backfill_limit=limit if rows else schedule.backfill_limit, version=schedule.version + 1
    )
    return Outcome(schedule=changed, runs=rows)


class _Desk:
    """One decision in the making."""

    def __init__(self, standing: Standing, now: Micros) -> None:
        self._schedule = standing.schedule
        self._plan = standing.schedule.plan
        self._timetable = standing.schedule.plan.timetable
        self._now = now
        self._under_way = len(standing.under_way)
        self._backfilling = standing.backfilling
        self._waiting = list(standing.waiting)
        self._queued = sum(map(_is_regular, standing.waiting))
        self._all_shown = len(standing.waiting) < STANDING_LIMIT
        self._backfill_limit = standing.schedule.backfill_limit
        self._runs = standing.schedule.runs
        self._tight = False
        self.rows: list[Run] = []
        self.starts: list[Start] = []
        self.looked_at = 0

    def start_waiting(self) -> None:
        """Give those that waited their run, in their order, while there is room."""
        left = []
        for run in self._waiting:
            if self._room() if _is_regular(run) else self._backfilling < self._backfill_limit:
                self._start(run.due, run.promised)
            else:
                left.append(run)
        if self._all_shown and all(map(_is_regular, left)):
            self._backfill_limit = 0
        self._waiting, self._queued = left, sum(map(_is_regular, left))

    def pass_missed(self, due: Micros) -> Micros | None:
        """Decide on what was missed from `due` on; the first due time after that."""
        late = self._now - PUNCTUAL
        last = previous_at_or_before(self._timetable, late) if due <= late else None
        if last is None or last < due:
            return due
        if self._plan.catch_up == "none":
            self.note(due, last, Verdict.MISSED, None)
            return self.after(last)
        window = self._now - self._plan.catch_up_window
        first_kept = max(due, window)
        if due < window:
            self.note(due, min(window - 1, last), Verdict.EXPIRED, "catch_up_window")
        if last < first_kept:
            return self.after(last)
        if self._plan.catch_up == "all":
            return self._catch_up_all(first_kept, last)
        return self._catch_up_latest(first_kept, last)

    def take(self, due: Micros, verdict: Verdict) -> None:
        """One due time, by the schedule's rule for overlaps."""
        self.looked_at += 1
        if self._room():
            self._runs += 1
            self._start(due, verdict)
            return
        self._tight = True
        if self._plan.overlap == "skip" or (self._plan.overlap == "queue" and self._queued):
            self.rows.append(_row(due, Verdict.SKIPPED, self._now, reason="overlap"))
            return
        if self._plan.overlap == "replace":
            self._let_go()
        self._wait(due, verdict)

    def note(self, first: Micros, last: Micros, verdict: Verdict, reason: str | None) -> None:
        """One row for all due times of a range, if it holds any."""
        found = tally(self._timetable, first - 1, last)
        if found.first is not None and found.last is not None:
            row = _row(found.first, verdict, self._now, reason=reason)
            self.rows.append(msgspec.structs.replace(row, until=found.last, count=found.count, exact=found.exact))

    def after(self, due: Micros) -> Micros | None:
        return next_after(self._timetable, due, runs=self._runs)

    def outcome(self, next_due: Micros | None) -> Outcome:
        changed = msgspec.structs.replace(
            self._schedule,
            next_due=next_due,
            runs=self._runs,
            backfill_limit=self._backfill_limit,
            version=self._schedule.version + 1,
        )
        return Outcome(schedule=changed, runs=self.rows, starts=self.starts, tight=self._tight)

    def _catch_up_all(self, first: Micros, last: Micros) -> Micros | None:
        """Each gets its run: at once where there is room, else it waits, whatever the rule for overlaps."""
        due = self.after(first - 1)
        while due is not None and due <= last and self.looked_at < STEP:
            self.looked_at += 1
            if self._room():
                self._runs += 1
                self._start(due, Verdict.CAUGHT_UP)
            else:
                self._tight = True
                self._wait(due, Verdict.CAUGHT_UP)
            due = self.after(due)
        return due

    def _catch_up_latest(self, first: Micros, last: Micros) -> Micros | None:
        """The last one, unless a newer one is about to run anyway."""
        newer = self.after(last)
        if newer is not None and newer <= self._now:
            self.note(first, last, Verdict.MISSED, "latest")
            return newer
        self.note(first, last - 1, Verdict.MISSED, "latest")
        self.take(last, Verdict.CAUGHT_UP)
        return self.after(last)

    def _room(self) -> bool:
        return self._plan.overlap == "allow" or self._under_way < self._plan.max_concurrency

    def _start(self, due: Micros, verdict: Verdict) -> None:
        if verdict is Verdict.BACKFILLED:
            self._backfilling += 1
        else:
            self._under_way += 1
        self.rows.append(_row(due, verdict, self._now))
        self.starts.append(Start(due, due + jitter_of(self._timetable, self._schedule.name, due)))

    def _wait(self, due: Micros, verdict: Verdict) -> None:
        self._runs += 1
        self._queued += 1
        row = _row(due, None, self._now, promised=verdict)
        self._waiting.append(row)
        self.rows.append(row)

    def _let_go(self) -> None:
        """The newest due time takes the place of the one that waited."""
        gone = [run for run in self._waiting if not _keeps_its_turn(run, self._plan)]
        self._waiting = [run for run in self._waiting if run not in gone]
        self._queued -= len(gone)
        self.rows = [row for row in self.rows if row not in gone]
        self.rows += [_row(run.due, Verdict.SKIPPED, self._now, reason="replaced") for run in gone]
        self._runs -= len(gone)


def _is_regular(run: Run) -> bool:
    return run.promised is not Verdict.BACKFILLED


def _keeps_its_turn(run: Run, plan: Plan) -> bool:
    """Whether a due time that waits gets its run in any case, after those before it; else it is the one that replaces,
    and can be replaced."""
    return run.promised is Verdict.BACKFILLED or (run.promised is Verdict.CAUGHT_UP and plan.catch_up == "all")


def _row(
    due: Micros,
    verdict: Verdict | None,
    now: Micros,
    *,
    promised: Verdict | None = None,
    reason: str | None = None,
) -> Run:
    if promised is None:
        assert verdict is not None
        promised = verdict
    return Run(due=due, until=due, verdict=verdict, promised=promised, reason=reason, decided=now)


def _paused(outcome: Outcome, paused: bool) -> Outcome:
    return msgspec.structs.replace(outcome, schedule=msgspec.structs.replace(outcome.schedule, paused=paused))
