"""Who may do what. `MATRIX` is the one table of roles: routes name a permission, and what is allowed, documented and
tested comes from here.

A credential is for one namespace; all that its caller sees and does is in it. It may be narrowed to queues and job
types. Only the node's own admin key reaches beyond its namespace, and only to manage namespaces and keys.
"""

from collections.abc import Mapping
from typing import Final, Literal, get_args

import msgspec

from foliot.domain.errors import Forbidden
from foliot.domain.job import NAMESPACE, Lane

Permission = Literal["none", "known", "read", "submit", "control", "work", "manage"]
Role = Literal["viewer", "submitter", "operator", "admin", "worker"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
PERMISSIONS: Final[Mapping[Permission, str]] = {
    "none": "open to everybody: whether the node is there, and how its API reads",
    "known": "ask who one is, log a browser in and out",
    "read": "see jobs, results, logs, schedules, queues, workers",
    "submit": "hand in jobs and schedules",
    "control": "change, pause, resume, cancel and retry jobs; change schedules, queues, limits; drain workers",
    "work": "be a worker: take jobs and report what became of them",
    "manage": "namespaces, keys, the audit log",
}
MATRIX: Final[Mapping[Role, frozenset[Permission]]] = {
    "viewer": frozenset({"none", "known", "read"}),
    "submitter": frozenset({"none", "known", "read", "submit"}),
    "operator": frozenset({"none", "known", "read", "submit", "control"}),
    "admin": frozenset({"none", "known", "read", "submit", "control", "work", "manage"}),
    "worker": frozenset({"none", "known", "read", "work"}),
}


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a request comes from, by its credential and never by its body. `queues` and `job_types` are all that it
    reaches, empty for every one; `root` is the node's own admin key. `key_id` is the API key's, `subject` who the
    identity provider says it is, whatever the name; `source` the address that the request came from."""

    name: str
    namespace: str = NAMESPACE
    role: Role = "admin"
    queues: tuple[str, ...] = ()
    job_types: tuple[str, ...] = ()
    root: bool = False
    key_id: str | None = None
    subject: str | None = None
    source: str = ""

    def may(self, permission: Permission) -> bool:
        return permission in MATRIX[self.role]

    @property
    def narrowed(self) -> bool:
        """Whether it reaches only a part of its namespace."""
        return bool(self.queues or self.job_types)

    def reaches(self, lane: Lane) -> bool:
        """Whether jobs of the lane are there for it at all."""
        return (
            lane.namespace == self.namespace
            and (not self.queues or lane.queue in self.queues)
            and (not self.job_types or lane.job_type in self.job_types)
        )

    def check_reach(self, lane: Lane) -> None:
        """Raises `Forbidden` where it would make or move a job to a lane that it does not reach."""
        if self.queues and lane.queue not in self.queues:
            raise Forbidden(f"this key reaches only the queues {', '.join(self.queues)}, not {lane.queue}")
        if self.job_types and lane.job_type not in self.job_types:
            raise Forbidden(f"this key reaches only the job types {', '.join(self.job_types)}, not {lane.job_type}")

    def check_whole(self, what: str) -> None:
        """Raises `Forbidden` where something of the whole namespace is asked for and only a part of it is reached."""
        if self.narrowed:
            raise Forbidden(f"this key reaches only some queues or job types; {what} concerns the whole namespace")


ADMIN = Caller(name="admin", root=True)
ANYBODY = Caller(name="", role="viewer")
"""Who has not said yet who they are. What they may call shows nothing of any namespace."""
