"""The store in one SQLite file, for one process.

One thread owns the connection that writes: whatever is queued while a commit is under way forms the next transaction,
each call under its own savepoint, and callers are answered once it is on the disk. A second connection on its own
thread only reads, so that a list never waits for a commit, nor a commit for a list. A lock file keeps a second process
away. With the path `:memory:` nothing is kept and there is only the first connection.

What may fail: the disk (`StoreFull`, `Unavailable`), and a value that SQLite has no room for (`Unstorable`); then
nothing of that call is kept, and the calls beside it are.
"""

from foliot.store.base import Reader
from foliot.store.sqlite.access import SqliteAccess
from foliot.store.sqlite.dispatch import SqliteDispatch
from foliot.store.sqlite.feed import SqliteFeed
from foliot.store.sqlite.graph import SqliteGraph
from foliot.store.sqlite.jobs import SqliteJobs
from foliot.store.sqlite.lifecycle import SqliteLifecycle
from foliot.store.sqlite.limits import SqliteLimits
from foliot.store.sqlite.queues import SqliteQueues
from foliot.store.sqlite.schedules import SqliteSchedules
from foliot.store.sqlite.watch import SqliteWatch
from foliot.store.sqlite.workers import SqliteWorkers


class SqliteStore(
    SqliteJobs,
    SqliteDispatch,
    SqliteGraph,
    SqliteLimits,
    SqliteQueues,
    SqliteSchedules,
    SqliteWorkers,
    SqliteAccess,
    SqliteWatch,
    SqliteFeed,
    SqliteLifecycle,
):
    """`Store` on SQLite: `SqliteStore("foliot.db")`; with `recording=False` it keeps no record of what happens."""

    def reader(self, namespace: str) -> Reader:
        """The store itself: SQLite has no fence within a file."""
        return self


__all__ = ["SqliteStore"]
