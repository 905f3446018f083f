"""Keys, namespaces, the audit log, and who is logged in."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from foliot.wire.base import Body, Duration, JobType, QueueName, Time

RoleWord = Literal["viewer", "submitter", "operator", "admin", "worker"]
NamespaceName = Annotated[
    str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}\Z", description="1–63 of a–z 0–9 -, not - first")
]
KeyLabel = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._@-]{1,64}\Z", description="1–64 of A–Z a–z 0–9 . _ @ -")]


class KeyBody(Body, frozen=True, kw_only=True):
    """A key to make. It reaches the whole namespace unless `queues` or `job_types` are given."""

    name: KeyLabel
    role: RoleWord
    namespace: NamespaceName | None = None
    queues: Annotated[list[QueueName], Meta(max_length=100)] = []
    job_types: Annotated[list[JobType], Meta(max_length=100)] = []
    expires: Time | None = None


class RotateBody(Body, frozen=True, kw_only=True):
    """How long the secret that was good so far stays good."""

    overlap: Duration = "24h"


class KeyInfo(Struct, frozen=True, kw_only=True):
    """A key as read: all but the secret. `key_id` is the part of it that may be known."""

    key_id: str
    name: str
    role: str
    namespace: str
    queues: list[str]
    job_types: list[str]
    created_time: Time
    created_by: str
    expires: Time | None
    last_used: Time | None
    revoked: Time | None


class NewKey(KeyInfo, frozen=True, kw_only=True):
    """With the key itself, which is shown this once."""

    key: str


class QuotasBody(Body, frozen=True, kw_only=True):
    """What a namespace may use; null is no limit."""

    submits_per_second: Annotated[int, Meta(ge=1, le=1_000_000)] | UnsetType | None = UNSET
    payload_bytes_per_second: Annotated[int, Meta(ge=1024, le=1 << 40)] | UnsetType | None = UNSET
    live_jobs: Annotated[int, Meta(ge=1, le=1_000_000_000)] | UnsetType | None = UNSET


class NamespaceBody(QuotasBody, frozen=True, kw_only=True):
    """A namespace to make."""

    name: NamespaceName


class NamespaceInfo(Struct, frozen=True, kw_only=True):
    name: str
    submits_per_second: int | None
    payload_bytes_per_second: int | None
    live_jobs: int | None
    created_time: Time
    version: int


class AuditInfo(Struct, frozen=True, kw_only=True):
    """One entry of the audit log. `hash` is over the entry and the hash before it."""

    seq: int
    time: Time
    namespace: str
    actor: str
    key_id: str | None
    action: str
    object: str
    source: str
    request_id: str
    outcome: str
    hash: str


class AuditCheck(Struct, frozen=True, kw_only=True):
    """Whether the audit log is whole: how many entries were looked at, and where the chain is broken."""

    entries: int
    broken_at: int | None
    last_hash: str


class SessionInfo(Struct, frozen=True, kw_only=True):
    """Who is calling, and what that caller may do. A browser sends `csrf_token` back with every change, as
    X-CSRF-Token."""

    name: str
    namespace: str
    role: str
    permissions: list[str]
    queues: list[str]
    job_types: list[str]
    csrf_token: str | None = None


class LoginLink(Struct, frozen=True, kw_only=True):
    """A link that lets one browser in, once, as the one who asked for it."""

    url: str
    expires: Time
