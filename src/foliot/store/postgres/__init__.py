"""The store on PostgreSQL, for many nodes over one database.

Each file is one part of the contract in `foliot.store.base`: `submissions` and `intake` keep new jobs, `changes` moves
them, `dispatch` hands them to workers, `graph` lets children go on when parents end, `limits` lets no more at once than
a concurrency key has tokens, `queues` puts them in order and `charges` keeps claims within a queue's limits, `jobs` and
`lists` read them, `schedules` makes them when they are due, `access` knows who is who, `reader` lets callers see their
namespace and no other, `feed` reads the record of what happened, which whoever changes something writes along with it
(`journal`, `writer`), `watch` keeps what those who watch need, `workers`, `days` (partitions), `folding` and
`lifecycle` are the rest. All of them stand on `connections`, which also says what a failure means: before a commit was
sent nothing happened; after it the fate is unknown and the same call again finds out. `marks` keeps claims fast while
old snapshots keep dead rows alive.

Every method is one transaction, and one statement where it can be. Locks are taken in one order: schedules by id, then
names and unique keys, then concurrency keys by number, then leases as a table, then queues by number, then narrow rows
by place and id, then runs under way, then edges. (A claim that only moves a fair queue's time locks the queue last: who
has a queue steps over ready rows that others have.) A transaction that loses all the same (a deadlock) is repeated.
"""

from foliot.store.postgres.access import Access
from foliot.store.postgres.changes import Changes
from foliot.store.postgres.dispatch import Dispatch
from foliot.store.postgres.feed import Feed
from foliot.store.postgres.reader import Readers
from foliot.store.postgres.schema import migrate
from foliot.store.postgres.submissions import Submissions
from foliot.store.postgres.watch import Watch

__all__ = ["PostgresStore", "migrate"]


class PostgresStore(Submissions, Changes, Dispatch, Access, Watch, Feed, Readers):
    """Everything that nodes ask of a store, on one database."""
