"""Concurrency keys: how many at once, who holds a token, who waits for one."""

from collections.abc import Collection, Sequence

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.errors import NotFound
from foliot.domain.job import Record
from foliot.service.group import persist
from foliot.service.view import shown_id
from foliot.service.wake import Wake
from foliot.store.base import Limit, LimitStore, Reader, Store
from foliot.wire import LimitBody, LimitInfo

NAMES_SHOWN = 100
CROWDED_CHUNK = 500


class Limits:
    def __init__(self, store: Store, clock: Clock, wake: Wake) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake

    async def page(self, *, limit: int, cursor: str | None, caller: Caller) -> tuple[list[LimitInfo], str | None]:
        """Keys by name, and where the next page begins."""
        caller.check_whole("the list of concurrency keys")
        reader = self._store.reader(caller.namespace)
        found = await reader.limits(caller.namespace, limit=limit + 1, after=cursor or "", names=NAMES_SHOWN)
        page = found[:limit]
        return await _show(reader, page), page[-1].key if len(found) > limit else None

    async def read(self, key: str, caller: Caller) -> LimitInfo:
        caller.check_whole("a concurrency key")
        reader = self._store.reader(caller.namespace)
        found = await reader.limits(caller.namespace, keys=[key], names=NAMES_SHOWN)
        if not found:
            raise NotFound(f"there is no concurrency key {key!r}; it comes into being with its first job, or a PUT")
        return (await _show(reader, found))[0]

    async def set(self, key: str, body: LimitBody, caller: Caller) -> LimitInfo:
        """From now on so many at once: those that wait are let in where it is more; where it is less nobody is thrown
        out."""
        caller.check_whole("a concurrency key")
        await self.give_tokens(await self._store.set_limits([(caller.namespace, key, body.limit)]))
        return await self.read(key, caller)

    async def give_tokens(self, limit_ids: Collection[int]) -> None:
        """Let those that wait have what is free."""
        moved = await persist(lambda _again: self._store.give_tokens(sorted(limit_ids), self._clock.now()))
        if moved:
            self._wake.ready({lane_id for _, lane_id in moved})

    async def give_forgotten(self) -> None:
        """Look for those that wait, of which no hint came."""
        after = 0
        while keys := await self._store.crowded_limits(CROWDED_CHUNK, after=after):
            await self.give_tokens(keys)
            after = keys[-1]


async def limits_of(
    store: LimitStore | Reader, records: Sequence[Record], *, names: int = 0
) -> dict[tuple[str, str], Limit]:
    """The concurrency keys of these jobs, by namespace and key, with up to `names` holders and waiters each; most jobs
    have none and cost nothing."""
    wanted: dict[str, set[str]] = {}
    for record in records:
        if record.job.limit_key is not None:
            wanted.setdefault(record.job.lane.namespace, set()).add(record.job.limit_key)
    return {
        (namespace, limit.key): limit
        for namespace, keys in wanted.items()
        for limit in await store.limits(namespace, keys=sorted(keys), limit=len(keys), names=names)
    }


async def _show(reader: Reader, limits: list[Limit]) -> list[LimitInfo]:
    keys = [key for limit in limits for key in (*limit.holders, *limit.waiters)]
    records = await reader.load(keys) if keys else {}
    names = {key: shown_id(record.job) for key, record in records.items()}
    return [
        LimitInfo(
            key=limit.key,
            limit=limit.most,
            held=limit.held,
            waiting=limit.waiting,
            holders=[names[key] for key in limit.holders if key in names],
            waiters=[names[key] for key in limit.waiters if key in names],
        )
        for limit in limits
    ]
