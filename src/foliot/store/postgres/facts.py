"""How the server is doing, as far as an ordinary user of it may know, and from which figures on that is trouble."""

from collections.abc import Sequence
from typing import Final

from foliot.store.base import Fact

NARROW: Final = ("leases", "open_runs", "ready", "releases", "waiting")
"""The tables that every job comes to and leaves: a row left behind by each is normal until the next vacuum."""

# More dead rows than others, of many, where no vacuum has been for some minutes; without that, only where they are so
# many that vacuums, which come about once a minute, evidently do not keep up with a busy queue.
DEAD_SHARE: Final = 0.5
DEAD_ROWS: Final = 100_000
VACUUM_SECONDS: Final = 300
TOO_MANY_DEAD_ROWS: Final = 2_000_000

SNAPSHOT_SECONDS: Final = 600  # a transaction that is open for longer keeps dead rows alive, and claims slow
CONNECTIONS_SHARE: Final = 0.9  # of those that ordinary users may have
LAG_SECONDS: Final = 60


def dead_rows(tables: Sequence[tuple[str, int, int, float]]) -> list[Fact]:
    """Of the table with the most. Each is given with its live and dead rows and the seconds since its last vacuum."""
    if not tables:
        return []
    name, live, dead, age = max(tables, key=lambda table: table[2])
    share = dead / (live + dead) if dead else 0.0
    trouble = ""
    if share > DEAD_SHARE and (dead > TOO_MANY_DEAD_ROWS or (dead > DEAD_ROWS and age > VACUUM_SECONDS)):
        trouble = (
            f"{dead} of {live + dead} rows of the table {name} are dead and slow claims down: end long transactions "
            "and look whether autovacuum runs."
        )
    return [Fact(name="dead_rows", value=dead), Fact(name="dead_rows_share", value=share, trouble=trouble)]


def server_health(oldest_snapshot: float | None, connections: float, lag: float | None) -> list[Fact]:
    """Seconds of the oldest snapshot that others hold (None: none), the share of connections that is taken, seconds
    that the slowest standby is behind (None: there is none)."""
    age = max(oldest_snapshot or 0.0, 0.0)
    facts = [
        Fact(
            name="oldest_snapshot_seconds",
            value=age,
            trouble=f"A transaction is open for {age:.0f} seconds and keeps dead rows from being removed: end it."
            if age > SNAPSHOT_SECONDS
            else "",
        ),
        Fact(
            name="connections_share",
            value=connections,
            trouble=f"{connections:.0%} of the server's connections are taken: raise max_connections or use fewer."
            if connections > CONNECTIONS_SHARE
            else "",
        ),
    ]
    if lag is not None:
        trouble = (
            f"A standby is {lag:.0f} seconds behind: look at its log and its network." if lag > LAG_SECONDS else ""
        )
        facts.append(Fact(name="replication_lag_seconds", value=lag, trouble=trouble))
    return facts
