"""Who is calling. Until roles come, every caller with the admin key may do everything in its namespace."""

import msgspec

from foliot.domain.job import NAMESPACE


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a request comes from; the namespace comes from the credential, never from the body."""

    name: str
    namespace: str = NAMESPACE


ADMIN = Caller(name="admin")
