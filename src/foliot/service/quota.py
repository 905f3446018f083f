"""What a namespace may use: submits a second, bytes of payload a second, live jobs. A node takes of a shared rate in
small amounts and hands them out by itself, so that the store is asked a few times a second and never per submit."""

from foliot.clock import Clock
from foliot.domain.duration import SECOND, Micros
from foliot.domain.errors import TooMany
from foliot.domain.rate import RateLimit
from foliot.domain.tenancy import Namespace
from foliot.store.base import Store

LOOK_EVERY = 5 * SECOND
SHARES = 20  # a node takes a twentieth of a second at a time
BLOCK = 1024  # bytes of payload are counted in blocks, so that the rate's beats stay long enough


class Meter:
    """One rate of one namespace, as far as this node has taken of it."""

    def __init__(self, store: Store, name: str, limit: int) -> None:
        self._store = store
        self._name = name
        self.limit = limit
        self._rate = RateLimit(limit=limit, per=SECOND, burst=limit)
        self._taken = 0

    async def spend(self, count: int, what: str) -> None:
        """Raises `TooMany`, and nothing is spent."""
        missing = count - self._taken
        if missing > 0:
            given, _ = await self._store.spend(self._name, self._rate, max(missing, self.limit // SHARES))
            self._taken += given
            if self._taken < count:  # what was taken is kept, so that the next try comes further
                wait = -(-(count - self._taken) // self.limit)
                raise TooMany(f"this namespace may {what}; wait a moment and send it again", retry_after=wait)
        self._taken -= count


class Quota:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._namespaces: dict[str, Namespace] = {}
        self._live: dict[str, int] = {}
        self._meters: dict[tuple[str, str], Meter] = {}
        self._look_at: Micros = 0

    async def check(self, namespace: str, jobs: int, size: int) -> None:
        """Raises `TooMany` where the namespace may not hand in so many jobs with so many bytes of payload now."""
        now = self._clock.now()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY
            await self._look()
        known = self._namespaces.get(namespace)
        if known is None:
            return
        quotas = known.quotas
        if quotas.live_jobs is not None and self._live.get(namespace, 0) + jobs > quotas.live_jobs:
            raise TooMany(
                f"this namespace may have {quotas.live_jobs:,} jobs that have not ended; wait until some have",
                retry_after=LOOK_EVERY // SECOND,
            )
        if quotas.submits_per_second is not None:
            meter = self._meter(namespace, "submits", quotas.submits_per_second)
            await meter.spend(jobs, f"submit {quotas.submits_per_second:,} jobs a second")
        if quotas.payload_bytes_per_second is not None:
            blocks = max(1, quotas.payload_bytes_per_second // BLOCK)
            meter = self._meter(namespace, "bytes", blocks)
            what = f"hand in {quotas.payload_bytes_per_second:,} bytes of payload a second"
            await meter.spend(-(-size // BLOCK), what)
        if namespace in self._live:
            self._live[namespace] += jobs

    async def _look(self) -> None:
        """Learn quotas anew, and how many live jobs there are where that counts."""
        found = await self._store.namespaces()
        self._namespaces = {each.name: each for each in found}
        self._live = {
            each.name: await self._store.live_jobs(each.name, each.quotas.live_jobs + 1)
            for each in found
            if each.quotas.live_jobs is not None
        }

    def _meter(self, namespace: str, kind: str, limit: int) -> Meter:
        meter = self._meters.get((namespace, kind))
        if meter is None or meter.limit != limit:
            meter = self._meters[namespace, kind] = Meter(self._store, f"{kind}:{namespace}", limit)
        return meter
