"""The program that runs jobs. It speaks HTTP to a node and never touches the store.

    node ─▶ exchange ─▶ runner ─▶ attempt (on the loop, in a thread or process) ─▶ outcome ─▶ outbox ─▶ exchange ─▶ node

Guaranteed: what ended is kept in the outbox until a node has acknowledged it; the lines of an attempt arrive before
its end; a blocked event loop does not lose the lease (`heartbeat` has its own thread and connection); a worker that
reached no node for 90 % of its lease stops what it runs, so that a job which another worker got does not go on here.
What may fail: a thread that does not look at `context.cancelled` can only be left alone; it is reported as ended and
its slot is given to another.

Names are loaded when first asked for: a job's own process imports from this room and must start fast.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foliot.worker.program import run_worker
    from foliot.worker.worker import Worker

__all__ = ["Worker", "run_worker"]


def __getattr__(name: str) -> Any:
    if name == "Worker":
        from foliot.worker.worker import Worker

        return Worker
    if name == "run_worker":
        from foliot.worker.program import run_worker

        return run_worker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
