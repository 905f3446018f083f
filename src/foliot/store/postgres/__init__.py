"""The store on PostgreSQL, for many nodes over one database.

Each file is one part of the contract in `foliot.store.base`: `submissions` and `intake` keep new jobs, `changes` moves
them, `dispatch` hands them to workers, `graph` lets children go on when parents end, `limits` lets no more at once than
a concurrency key has tokens, `jobs` and `lists` read them, `schedules` makes them when they are due, `workers`, `days`
(partitions) and `lifecycle` are the rest. All of them stand on `connections`, which also says what a failure means:
before a commit was sent nothing happened; after it the fate is unknown and the same call again finds out.
`marks` keeps claims fast while old snapshots keep dead rows alive.

Every method is one transaction, and one statement where it can be. Locks are taken in one order: schedules by id, then
names and unique keys, then concurrency keys by number, then narrow rows by place and id, then runs under way, then
edges. A transaction that loses all the same (a deadlock) is repeated.
"""

from foliot.store.postgres.changes import Changes
from foliot.store.postgres.dispatch import Dispatch
from foliot.store.postgres.graph import Graph
from foliot.store.postgres.lifecycle import Lifecycle
from foliot.store.postgres.limits import Limits
from foliot.store.postgres.lists import Lists
from foliot.store.postgres.schedules import Schedules
from foliot.store.postgres.schema import migrate
from foliot.store.postgres.submissions import Submissions
from foliot.store.postgres.workers import Workers

__all__ = ["PostgresStore", "migrate"]


class PostgresStore(Submissions, Changes, Schedules, Graph, Limits, Lists, Dispatch, Workers, Lifecycle):
    """Everything that nodes ask of a store, on one database."""
