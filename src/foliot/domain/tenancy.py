"""Namespaces and what each may use."""

import msgspec

from foliot.domain.duration import Micros


class Quotas(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """None is no limit. Jobs and bytes of payload a second hold across all nodes; `live_jobs`, those that have not
    ended, is looked at every few seconds and may be passed by what comes in between."""

    submits_per_second: int | None = None
    payload_bytes_per_second: int | None = None
    live_jobs: int | None = None


NO_QUOTAS = Quotas()


class Namespace(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    quotas: Quotas = NO_QUOTAS
    created: Micros
    version: int = 1
