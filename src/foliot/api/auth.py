"""Who is calling, by the key that came with the request."""

import hmac
from typing import Literal

from foliot.domain.access import ADMIN, Caller
from foliot.domain.errors import NotAuthenticated

Permission = Literal["none", "read", "submit", "control", "work"]

_SCHEME = b"bearer "


class Keys:
    """The keys that are let in. There is one today, and it may do everything."""

    def __init__(self, admin_key: str) -> None:
        if not admin_key:
            raise ValueError("an empty admin key would let everybody in")
        self._admin_key = admin_key.encode()

    def caller(self, authorization: bytes | None, permission: Permission) -> Caller:
        """The caller behind an `Authorization` header, if it may do what `permission` names. Raises `NotAuthenticated`.

        The comparison takes as long for a nearly right key as for a wrong one.
        """
        if permission == "none":
            return ADMIN
        if authorization is None:
            raise NotAuthenticated("Send a key: Authorization: Bearer <key>")
        if authorization[: len(_SCHEME)].lower() != _SCHEME:
            raise NotAuthenticated("Only keys are taken: Authorization: Bearer <key>")
        if not hmac.compare_digest(authorization[len(_SCHEME) :].strip(), self._admin_key):
            raise NotAuthenticated("This key is not known")
        return ADMIN
