"""What nodes ask of a store to know who is who: keys, sessions, namespaces, quotas, the audit log."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from foliot.domain.access import Caller
from foliot.domain.audit import AuditEntry
from foliot.domain.credential import ApiKey
from foliot.domain.duration import Micros
from foliot.domain.rate import RateLimit
from foliot.domain.tenancy import Namespace


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who is logged in with a browser, or is about to be (`once`: a link or a state that is good for one use).
    Found by the hash of what the browser shows. `data` is what the one who made it wants back."""

    hash: bytes
    caller: Caller
    until: Micros
    once: bool = False
    data: str = ""


class AccessStore(Protocol):
    async def add_key(self, key: ApiKey) -> bool:
        """False, and nothing is kept, where its id is taken, or its name is that of a key of the namespace that is not
        revoked."""
        ...

    async def api_keys(self, key_ids: Sequence[str]) -> dict[str, ApiKey]:
        """Keys by id; unknown ones are left out."""
        ...

    async def list_keys(self, namespace: str | None, *, limit: int, after: str = "") -> list[ApiKey]:
        """Keys by id, of one namespace or of all, those after `after`."""
        ...

    async def change_key(self, key: ApiKey) -> bool:
        """Let hashes, `old_until`, `expires` and `revoked` be as in `key`; False where there is none of that id, or it
        is revoked. What was revoked stays so."""
        ...

    async def touch_keys(self, used: Mapping[str, Micros]) -> None:
        """Note when keys were last used; never earlier than is noted."""
        ...

    async def add_session(self, session: Session) -> None: ...

    async def session(self, shown: bytes, now: Micros) -> Session | None:
        """The one with this hash, where it is not over; one that is good `once` is taken away with it, by whoever comes
        first."""
        ...

    async def end_session(self, shown: bytes) -> None: ...

    async def end_sessions_of(self, key_id: str) -> None:
        """End all that came from an API key."""
        ...

    async def put_namespace(self, namespace: Namespace, *, expected: int | None) -> Namespace | None:
        """Make it, or change its quotas; as it is then. None where it stands at another version than `expected` (0: it
        must be new; None: whatever)."""
        ...

    async def namespaces(self, names: Sequence[str] | None = None) -> list[Namespace]:
        """All, or these, by name. One called `default` is always there."""
        ...

    async def remove_namespace(self, name: str) -> bool:
        """Take it away where it has no lane, no schedule, no definition and no key that is not revoked; whether that
        was so."""
        ...

    async def spend(self, meter: str, rate: RateLimit, count: int) -> tuple[int, Micros]:
        """Take up to `count` starts of a rate that all nodes share under this name, by the store's clock; how many were
        given, and when the next can be."""
        ...

    async def live_jobs(self, namespace: str, most: int) -> int:
        """How many jobs have not ended, counted up to `most`."""
        ...

    async def append_audit(self, entries: Sequence[AuditEntry]) -> list[AuditEntry]:
        """Add entries to the chain, all of one call next to each other; as they were kept."""
        ...

    async def audit(
        self, namespace: str | None, *, limit: int, before: int | None = None, after: int | None = None
    ) -> list[AuditEntry]:
        """Entries of one namespace or of all: newest first, those before number `before`; or, where `after` is given,
        oldest first from there on."""
        ...

    async def forget_access(self, before: Micros, now: Micros) -> int:
        """Take away sessions that are over and meters nobody uses; audit entries stay."""
        ...
