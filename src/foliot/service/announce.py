"""What follows once changes are kept: hints for whoever waits for their outcome."""

from collections.abc import Sequence

from foliot.domain.changes import Change, Requeue
from foliot.domain.job import Ready
from foliot.service.wake import Wake
from foliot.store.base import NewJob, Saved


def announce(wake: Wake, changes: Sequence[Change], saved: Saved) -> None:
    """Hints for those of the changes that took effect."""
    ready: set[int] = set()
    took = [change for change in changes if change.id in saved.done]
    for change in took:
        if isinstance(change, Requeue):
            row = change.row
            if isinstance(row, Ready):
                ready.add(row.lane_id)
            elif not row.hold and not row.parents:
                wake.due(row.due, row.id)
            if row.deadline is not None:
                wake.deadline(row.deadline)
    if ready:
        wake.ready(ready)
    if saved.freed:
        wake.freed(saved.freed)
    wake.logged([change.id for change in took])


def announce_new(wake: Wake, jobs: Sequence[NewJob]) -> None:
    """Hints for new jobs."""
    ready: set[int] = set()
    for job in jobs:
        if isinstance(job.row, Ready):
            ready.add(job.row.lane_id)
        else:
            wake.due(job.row.due, job.job.id)
        if job.row.deadline is not None:
            wake.deadline(job.row.deadline)
    if ready:
        wake.ready(ready)
