"""Where everything is kept, and the only truth. All SQL is here, as named queries in `sql/postgres` and `sql/sqlite`.

`base` is the contract: a few small protocols, batch-first, each method one transaction, time passed in, conflicts
returned and not raised, safe to repeat. `postgres` serves many nodes, `sqlite` one process. One contract suite runs
on both.

The row protocol: a job's wide row is written once; a live job has exactly one narrow row, in `waiting`, `ready` or
`leases`; every move deletes that row and writes the next in one transaction, and whoever deletes it owns the move.
The end is a row in `history`, which also carries the last attempt; earlier attempts are in `attempts`.

What may fail: the connection (`Unavailable`, with `fate_unknown` where a commit was under way) and the disk
(`StoreFull`).
"""
