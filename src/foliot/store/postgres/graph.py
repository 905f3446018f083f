"""Carrying the ends of parents on to their children, and what graphs look like.

Who takes a row of `releases` owns that parent's edges until its commit: it marks some as done and counts them per
child, so that two parents which ended together count twice. A child is decided by the state table, like everything.
"""

from collections.abc import Mapping, Sequence

from foliot.domain import events
from foliot.domain.changes import End, Place, Requeue
from foliot.domain.duration import Micros
from foliot.domain.graph import BROKEN_BY, Edge, On, holds
from foliot.domain.ids import JOB, JobKey, show
from foliot.domain.job import Ready, State, Waiting
from foliot.domain.rank import Turn
from foliot.domain.retry import DEFAULT as NO_RETRY
from foliot.domain.states import transition
from foliot.store.base import Due, Released, Upstream
from foliot.store.postgres.changes import Moves
from foliot.store.postgres.connections import Connection, columns
from foliot.store.postgres.parents import Parents
from foliot.store.postgres.part import SQL, Part
from foliot.store.postgres.rows import row_of

_Edges = dict[JobKey, list[tuple[JobKey, On, State]]]  # child → its parents that ended


class Graph(Part):
    async def release(self, limit: int, now: Micros) -> Released:
        try:
            released, places = await self._transact(lambda connection: _release(connection, limit, now))
        except BaseException:
            self._marks.reset()
            raise
        self._marks.lower(places)
        return released

    async def edges(self, keys: Sequence[JobKey], limit: int) -> list[Edge]:
        rows = await self._connections.read(SQL["edges"], sorted(set(keys)), limit)
        return [Edge(parent, child, On(on), done) for parent, child, on, done in rows]

    async def upstream(self, keys: Sequence[JobKey], longest: int) -> dict[JobKey, list[Upstream]]:
        found: dict[JobKey, list[Upstream]] = {}
        rows = await self._connections.read(SQL["upstream"], sorted(set(keys)), longest)
        for child, parent, name, state, result, too_long in rows:
            shown = show(JOB, parent) if name is None else name
            told = Upstream(id=parent, name=shown, state=State(state), result=result, too_long=too_long)
            found.setdefault(child, []).append(told)
        return found


async def _release(connection: Connection, limit: int, now: Micros) -> tuple[Released, list[tuple[int, Turn]]]:
    """What was done, and where ready rows were written."""
    ended, places = await _take(connection, limit)
    if not ended:
        return Released(), places
    share = max(1, limit // len(ended))  # so that a parent of thousands does not hold up the others
    parents = sorted((parent, reached) for parent, (reached, _) in ended.items())
    children: _Edges = {}
    finished, unfinished = set(ended), []
    for parent, child, on, count in await connection.fetch(SQL["tell_children"], *columns(parents, 2), share):
        if count is None:
            children.setdefault(child, []).append((parent, On(on), ended[parent][1]))
        elif count >= share:
            finished.discard(parent)
            unfinished.append((parent, child))
    rows, ends, moves, fewer = await _decide(connection, children, now)
    outcome = Moves(now)
    if ends:
        await outcome.end(connection, Place.WAITING, ends)
    if moves:
        await outcome.requeue(connection, Place.WAITING, moves)
    await outcome.record(connection)
    for count, keys in sorted(fewer.items()):
        await connection.execute(SQL["count_parents"], sorted(keys), count)
    if unfinished:
        await connection.executemany(SQL["go_on_with_releases"], sorted(unfinished))
    if finished:
        await connection.execute(SQL["finish_releases"], sorted(finished))
    released = Released(
        lanes={row.lane_id for row in rows if isinstance(row, Ready)},
        due=[Due(row.due, row.id) for row in rows if isinstance(row, Waiting) and not row.hold and not row.for_key],
        limits=outcome.limits,
        cancelled={end.id for end in ends},
        freed=outcome.freed,
        more=bool(unfinished) or outcome.parents_ended or len(ended) >= limit,
    )
    return released, places + [(row.lane_id, (row.rank, row.id)) for row in rows if isinstance(row, Ready)]


async def _take(
    connection: Connection, limit: int
) -> tuple[dict[JobKey, tuple[JobKey, State]], list[tuple[int, Turn]]]:
    """Ended parents: up to which child they have been told, and how they ended. One that runs once more is left to its
    next end; its place is told, where it is ready."""
    rows = await connection.fetch(SQL["take_releases"], limit)
    ended = {parent: (reached, State(state)) for parent, reached, _, there, state in rows if there}
    others = {parent: (reached, State(state)) for parent, reached, state, there, _ in rows if not there}
    found = Parents()
    if others:
        await found.note(connection, others)
        if found.live:
            await connection.execute(SQL["finish_releases"], sorted(found.live))
        for parent, (reached, state) in others.items():
            if parent not in found.live:
                ended[parent] = (reached, State(found.ended.get(parent, state)))
    return ended, found.places


async def _lock(connection: Connection, children: set[JobKey]) -> list[Waiting]:
    """Those of them that are blocked. One that somebody replaced (a pause) while we waited for its row is seen by a
    later statement, so that they are looked for until none is left."""
    locked: list[Waiting] = []
    while children:
        for key, *values in await connection.fetch(SQL["lock_blocked"], sorted(children)):
            row = row_of(key, values)
            assert isinstance(row, Waiting)
            locked.append(row)
            children.discard(key)
        if children:
            children = {row[0] for row in await connection.fetch(SQL["still_blocked"], sorted(children))}
    return locked


async def _decide(
    connection: Connection, children: _Edges, now: Micros
) -> tuple[list[Waiting | Ready], list[End], list[Requeue], Mapping[int, list[JobKey]]]:
    """The rows that go on, the changes of those and of the ones that are cancelled, and who has how many parents
    less."""
    rows: list[Waiting | Ready] = []
    ends: list[End] = []
    moves: list[Requeue] = []
    fewer: dict[int, list[JobKey]] = {}
    for row in await _lock(connection, set(children)):
        key, told = row.id, sorted(children[row.id])
        broken = [state for _, on, state in told if not holds(on, state)]
        if not broken and len(told) < row.parents:
            fewer.setdefault(len(told), []).append(key)
            continue
        event = events.ParentEndedOtherwise(reason=BROKEN_BY[broken[0]]) if broken else events.ParentsDone()
        match transition(row, event, now, retry=NO_RETRY):
            case End() as end:
                ends.append(end)
            case Requeue() as move:
                moves.append(move)
                rows.append(move.row)
            case other:
                raise AssertionError(other)
    return rows, ends, moves, fewer
