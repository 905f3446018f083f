"""What follows once changes are kept: hints for whoever waits for their outcome."""

from collections.abc import Sequence

from foliot.domain.changes import Change, Requeue
from foliot.domain.job import Ready, Waiting
from foliot.service.wake import Wake
from foliot.store.base import NewJob, Released, Saved


def announce(wake: Wake, changes: Sequence[Change], saved: Saved) -> None:
    """Hints for those of the changes that took effect."""
    took = [change for change in changes if change.id in saved.done]
    _announce_rows(wake, [change.row for change in took if isinstance(change, Requeue)])
    if saved.freed:
        wake.freed(saved.freed)
    if saved.limits:
        wake.tokens(saved.limits)
    if saved.queues:
        wake.place(saved.queues)
    if saved.parents_ended:
        wake.release()
    if saved.timings:
        wake.timings(saved.timings)
    wake.logged([change.id for change in took])
    if took:
        wake.change()


def announce_new(wake: Wake, jobs: Sequence[NewJob], *, parents_ended: bool = False) -> None:
    """Hints for new jobs."""
    _announce_rows(wake, [job.row for job in jobs])
    if parents_ended:
        wake.release()
    if jobs:
        wake.change()


def announce_released(wake: Wake, released: Released) -> None:
    """Hints for what the ends of parents brought."""
    if released.lanes:
        wake.ready(released.lanes)
    for due in released.due:
        wake.due(due.time, due.id)
    if released.limits:
        wake.tokens(released.limits)
    if released.freed:
        wake.freed(released.freed)
    if released.cancelled:
        wake.logged(released.cancelled)
    if released.lanes or released.due or released.limits or released.cancelled:
        wake.change()


def _announce_rows(wake: Wake, rows: Sequence[Waiting | Ready]) -> None:
    ready: set[int] = set()
    limits: set[int] = set()
    for row in rows:
        if isinstance(row, Ready):
            ready.add(row.lane_id)
        elif row.for_key and row.limit_id is not None:
            limits.add(row.limit_id)
        elif not row.hold and not row.parents:
            wake.due(row.due, row.id)
        if row.deadline is not None:
            wake.deadline(row.deadline)
    if ready:
        wake.ready(ready)
    if limits:
        wake.tokens(limits)
