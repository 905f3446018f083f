"""The calls on keys, namespaces and the audit log, and those that tell who is calling, as methods of the client.

Making a key, giving one a new secret and making a namespace are not repeated after a lost answer. A second secret would
put the one that callers still use out of force before its time; and what was made, but not shown, is made anew under
another name or after it was revoked.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime, timedelta
from urllib.parse import quote

from msgspec import UNSET, UnsetType

from foliot.sdk.options import DurationLike
from foliot.sdk.requester import Requester
from foliot.wire import (
    AuditCheck,
    AuditInfo,
    KeyBody,
    KeyInfo,
    LoginLink,
    NamespaceBody,
    NamespaceInfo,
    NewKey,
    QuotasBody,
    RotateBody,
    SessionInfo,
)
from foliot.wire.access import RoleWord

PAGE_SIZE = 200

Quota = int | UnsetType | None


class AccessCalls(Requester):
    """A client's part for access."""

    async def create_key(
        self,
        name: str,
        role: RoleWord,
        *,
        namespace: str | None = None,
        queues: Sequence[str] = (),
        job_types: Sequence[str] = (),
        expires: datetime | None = None,
    ) -> NewKey:
        """Makes an API key, for the caller's namespace unless another is named, narrowed to `queues` and `job_types`
        where they are given. Its `key` is in this answer and never again. Not repeated after a lost answer."""
        body = KeyBody(
            name=name,
            role=role,
            namespace=namespace,
            queues=list(queues),
            job_types=list(job_types),
            expires=expires,
        )
        return await self._ask(NewKey, "POST", "/api-keys", body, again=False)

    async def keys(self, *, limit: int = 50) -> list[KeyInfo]:
        """API keys by id, up to `limit` (at most 1000), revoked ones too. `all_keys` goes through all of them."""
        return (await self.key_page(limit=limit))[0]

    async def key_page(self, *, limit: int = 50, cursor: str | None = None) -> tuple[list[KeyInfo], str | None]:
        """One page of keys, by id, and the cursor of the next one."""
        return await self._page(KeyInfo, "/api-keys", limit=limit, cursor=cursor)

    def all_keys(self, *, limit: int | None = None, page_size: int = PAGE_SIZE) -> AsyncIterator[KeyInfo]:
        """The keys by id, page by page as they are wanted; at most `limit`."""
        return self._pages(KeyInfo, "/api-keys", limit=limit, page_size=page_size)

    async def key(self, key_id: str) -> KeyInfo:
        """One API key, all but its secret."""
        return await self._ask(KeyInfo, "GET", _key(key_id))

    async def rotate_key(self, key_id: str, *, overlap: DurationLike = "24h") -> NewKey:
        """Gives a key a new secret, shown in this answer and never again. The one that was good so far stays good for
        `overlap` (at most 30 days); one from a rotation before that ends now. Not repeated after a lost answer."""
        given = overlap.total_seconds() if isinstance(overlap, timedelta) else overlap
        return await self._ask(NewKey, "POST", _key(key_id, "rotate"), RotateBody(overlap=given), again=False)

    async def revoke_key(self, key_id: str) -> KeyInfo:
        """Ends a key for good, on every node within 5 seconds, with the browser sessions that came from it."""
        return await self._ask(KeyInfo, "DELETE", _key(key_id))

    async def create_namespace(
        self,
        name: str,
        *,
        submits_per_second: Quota = UNSET,
        payload_bytes_per_second: Quota = UNSET,
        live_jobs: Quota = UNSET,
    ) -> NamespaceInfo:
        """Makes a namespace; what is not given is not limited. Not repeated after a lost answer."""
        body = NamespaceBody(
            name=name,
            submits_per_second=submits_per_second,
            payload_bytes_per_second=payload_bytes_per_second,
            live_jobs=live_jobs,
        )
        return await self._ask(NamespaceInfo, "POST", "/namespaces", body, again=False)

    async def namespaces(self) -> list[NamespaceInfo]:
        """All namespaces with their quotas for the node's own admin key, else the caller's own."""
        return await self._ask(list[NamespaceInfo], "GET", "/namespaces")

    async def namespace(self, name: str) -> NamespaceInfo:
        return await self._ask(NamespaceInfo, "GET", _namespace(name))

    async def set_quotas(
        self,
        namespace: str,
        *,
        submits_per_second: Quota = UNSET,
        payload_bytes_per_second: Quota = UNSET,
        live_jobs: Quota = UNSET,
        if_match: int | None = None,
    ) -> NamespaceInfo:
        """Sets what a namespace may use: the quotas given, None meaning no limit. Nodes know it within 5 seconds. With
        `if_match` only the version that was read; Stale where there is a newer one."""
        body = QuotasBody(
            submits_per_second=submits_per_second,
            payload_bytes_per_second=payload_bytes_per_second,
            live_jobs=live_jobs,
        )
        return await self._ask(NamespaceInfo, "PUT", _namespace(namespace), body, if_match=if_match)

    async def delete_namespace(self, name: str) -> None:
        """Deletes a namespace that is empty; Conflict where it is in use. NotFound where there is none: after a lost
        answer, too."""
        await self.request("DELETE", _namespace(name))

    async def audit(self, *, limit: int = 50) -> list[AuditInfo]:
        """The newest entries of the audit log, up to `limit` (at most 1000). `all_audit` goes through all of them."""
        return (await self.audit_page(limit=limit))[0]

    async def audit_page(self, *, limit: int = 50, cursor: str | None = None) -> tuple[list[AuditInfo], str | None]:
        """One page of the audit log, newest first, and the cursor of the next one."""
        return await self._page(AuditInfo, "/audit", limit=limit, cursor=cursor)

    def all_audit(self, *, limit: int | None = None, page_size: int = PAGE_SIZE) -> AsyncIterator[AuditInfo]:
        """The audit log, newest first, page by page as they are wanted; at most `limit` entries. What is added
        meanwhile is not among them."""
        return self._pages(AuditInfo, "/audit", limit=limit, page_size=page_size)

    async def check_audit(self) -> AuditCheck:
        """Goes through the chain of the whole audit log; `broken_at` is None where it is whole."""
        return await self._ask(AuditCheck, "GET", "/audit/check")

    async def whoami(self) -> SessionInfo:
        """Who is calling, by the key that is shown, and what that caller may do."""
        return await self._ask(SessionInfo, "GET", "/session")

    async def login_link(self) -> LoginLink:
        """A link that lets one browser in, once, as this caller."""
        return await self._ask(LoginLink, "POST", "/login-links")


def _key(key_id: str, *more: str) -> str:
    return "/".join(("/api-keys", quote(key_id, safe=""), *more))


def _namespace(name: str) -> str:
    return f"/namespaces/{quote(name, safe='')}"
