"""API keys and namespaces: made, listed, rotated, revoked; what a namespace may use."""

import msgspec
from msgspec import UNSET

from foliot.clock import Clock
from foliot.domain.access import Caller
from foliot.domain.credential import ApiKey, hash_of, new_key_id, new_secret, show_key
from foliot.domain.duration import DAY, parse_duration
from foliot.domain.errors import BadInput, Conflict, Forbidden, NotFound, Stale
from foliot.domain.job import NAMESPACE
from foliot.domain.tenancy import Namespace, Quotas
from foliot.service.access import Access
from foliot.store.base import Store
from foliot.wire import (
    KeyBody,
    KeyInfo,
    NamespaceBody,
    NamespaceInfo,
    NewKey,
    QuotasBody,
    RotateBody,
    to_micros,
    to_time,
)

LONGEST_OVERLAP = 30 * DAY
ROUNDS = 20


class KeyRing:
    def __init__(self, store: Store, clock: Clock, access: Access) -> None:
        self._store = store
        self._clock = clock
        self._access = access

    async def create(self, body: KeyBody, caller: Caller) -> NewKey:
        caller.check_whole("a key")
        namespace = self._namespace(body.namespace, caller)
        if not await self._store.namespaces([namespace]):
            raise BadInput.at("namespace", f"there is no namespace {namespace!r}; make it first")
        now = self._clock.now()
        expires = None if body.expires is None else to_micros(body.expires)
        if expires is not None and expires <= now:
            raise BadInput.at("expires", "is over already; give a time that is to come, or leave it out")
        secret = new_secret()
        key = ApiKey(
            key_id=new_key_id(),
            namespace=namespace,
            name=body.name,
            role=body.role,
            queues=tuple(body.queues),
            job_types=tuple(body.job_types),
            hash=hash_of(secret),
            created=now,
            created_by=caller.name,
            expires=expires,
        )
        if not await self._store.add_key(key):
            raise Conflict(
                f"there is a key {body.name!r} in {namespace!r} already; rotate or revoke it, or choose another name"
            )
        return _with_secret(key, secret)

    async def page(self, *, limit: int, cursor: str | None, caller: Caller) -> tuple[list[KeyInfo], str | None]:
        """By id: of the caller's namespace, or of all for the node's own admin key."""
        caller.check_whole("the list of keys")
        found = await self._store.list_keys(
            None if caller.root else caller.namespace, limit=limit + 1, after=cursor or ""
        )
        page = found[:limit]
        return [_show(key) for key in page], page[-1].key_id if len(found) > limit else None

    async def read(self, key_id: str, caller: Caller) -> KeyInfo:
        return _show(await self._find(key_id, caller))

    async def rotate(self, key_id: str, body: RotateBody, caller: Caller) -> NewKey:
        """A new secret under the same id; the old one stays good for the overlap."""
        overlap = parse_duration(body.overlap, "overlap")
        if not 0 <= overlap <= LONGEST_OVERLAP:
            raise BadInput.at("overlap", "must be from 0 to 30 days")
        key = await self._find(key_id, caller)
        secret = new_secret()
        rotated = msgspec.structs.replace(
            key, hash=hash_of(secret), old_hash=key.hash, old_until=self._clock.now() + overlap
        )
        await self._change(rotated)
        return _with_secret(rotated, secret)

    async def revoke(self, key_id: str, caller: Caller) -> KeyInfo:
        """Good no more: here at once, on every node within seconds. Its sessions end with it."""
        key = await self._find(key_id, caller)
        if key.revoked is None:
            key = msgspec.structs.replace(key, revoked=self._clock.now())
            await self._change(key)
            await self._store.end_sessions_of(key_id)
        return _show(key)

    async def create_namespace(self, body: NamespaceBody, caller: Caller) -> NamespaceInfo:
        _check_root(caller)
        wanted = Namespace(name=body.name, quotas=_quotas(Quotas(), body), created=self._clock.now())
        saved = await self._store.put_namespace(wanted, expected=0)
        if saved is None:
            raise Conflict(f"there is a namespace {body.name!r} already")
        return _show_namespace(saved)

    async def namespaces(self, caller: Caller) -> list[NamespaceInfo]:
        found = await self._store.namespaces(None if caller.root else [caller.namespace])
        return [_show_namespace(each) for each in found]

    async def namespace(self, name: str, caller: Caller) -> NamespaceInfo:
        return _show_namespace(await self._find_namespace(name, caller))

    async def set_quotas(self, name: str, body: QuotasBody, *, if_match: int | None, caller: Caller) -> NamespaceInfo:
        _check_root(caller)
        for _ in range(ROUNDS):
            known = await self._find_namespace(name, caller)
            if if_match is not None and if_match != known.version:
                raise Stale(
                    f"namespace {name!r} is at version {known.version}, not {if_match}; read it again and decide anew"
                )
            changed = msgspec.structs.replace(known, quotas=_quotas(known.quotas, body))
            saved = await self._store.put_namespace(changed, expected=known.version)
            if saved is not None:
                return _show_namespace(saved)
        raise Conflict(f"namespace {name!r} changes faster than it can be changed; try again")

    async def delete_namespace(self, name: str, caller: Caller) -> None:
        """Only one that is empty: no jobs were ever in it, no schedule is there and no key is good."""
        _check_root(caller)
        await self._find_namespace(name, caller)
        if name == NAMESPACE or not await self._store.remove_namespace(name):
            raise Conflict(
                f"namespace {name!r} is in use; revoke its keys, delete its schedules, webhooks, alerts first"
            )

    def _namespace(self, asked: str | None, caller: Caller) -> str:
        if asked is None or asked == caller.namespace:
            return caller.namespace
        _check_root(caller)
        return asked

    async def _find(self, key_id: str, caller: Caller) -> ApiKey:
        caller.check_whole("a key")
        key = (await self._store.api_keys([key_id])).get(key_id)
        if key is None or not (caller.root or key.namespace == caller.namespace):
            raise NotFound(f"there is no key {key_id!r}")
        return key

    async def _find_namespace(self, name: str, caller: Caller) -> Namespace:
        found = await self._store.namespaces([name]) if caller.root or name == caller.namespace else []
        if not found:
            raise NotFound(f"there is no namespace {name!r}")
        return found[0]

    async def _change(self, key: ApiKey) -> None:
        changed = await self._store.change_key(key)
        self._access.forget_key(key.key_id)
        if not changed:
            raise Conflict(f"the key {key.name!r} was revoked; make a new one")


def _check_root(caller: Caller) -> None:
    if not caller.root:
        raise Forbidden("only the node's own admin key reaches beyond its namespace")


def _quotas(known: Quotas, body: QuotasBody) -> Quotas:
    given = {
        name: value for name, value in msgspec.structs.asdict(body).items() if name != "name" and value is not UNSET
    }
    return msgspec.structs.replace(known, **given)


def _show(key: ApiKey) -> KeyInfo:
    return KeyInfo(
        key_id=key.key_id,
        name=key.name,
        role=key.role,
        namespace=key.namespace,
        queues=list(key.queues),
        job_types=list(key.job_types),
        created_time=to_time(key.created),
        created_by=key.created_by,
        expires=None if key.expires is None else to_time(key.expires),
        last_used=None if key.last_used is None else to_time(key.last_used),
        revoked=None if key.revoked is None else to_time(key.revoked),
    )


def _with_secret(key: ApiKey, secret: str) -> NewKey:
    return NewKey(**msgspec.structs.asdict(_show(key)), key=show_key(key.key_id, secret))


def _show_namespace(namespace: Namespace) -> NamespaceInfo:
    return NamespaceInfo(
        name=namespace.name,
        submits_per_second=namespace.quotas.submits_per_second,
        payload_bytes_per_second=namespace.quotas.payload_bytes_per_second,
        live_jobs=namespace.quotas.live_jobs,
        created_time=to_time(namespace.created),
        version=namespace.version,
    )
