"""What follows once changes are kept: hints for whoever waits for their outcome."""

from collections.abc import Sequence

from foliot.domain.changes import Change, Requeue
from foliot.domain.job import Ready
from foliot.service.wake import Wake


def announce(wake: Wake, changes: Sequence[Change]) -> None:
    """Hints for changes that took effect."""
    ready: set[int] = set()
    for change in changes:
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
    wake.logged([change.id for change in changes])
