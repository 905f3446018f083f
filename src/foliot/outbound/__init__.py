"""Calls to addresses that somebody else has chosen: those of `http` jobs, those of webhooks.

Whoever may name an address could reach what only this machine can reach: services on its loopback, the private network
around it, the metadata of its cloud. So a connection is made only to public addresses and to what the operator has
listed. The check is made on the address itself, where the socket for it is made: after every look-up, whatever the
spelling, again for each redirect, with nothing between the check and the connection that could change.

Proxies of the environment are not used, and no cookie is kept. What comes back is bounded: bytes, also those of a
compressed answer, headers, redirects and time.
"""

from foliot.outbound.allow_list import AllowList, BadEntry
from foliot.outbound.client import Answer, OutboundClient
from foliot.outbound.errors import AddressNotAllowed, BadAddress, NoAnswer, OutboundError, RedirectRefused
from foliot.outbound.plain import check_plain
from foliot.outbound.retry_after import retry_after

__all__ = [
    "AddressNotAllowed",
    "AllowList",
    "Answer",
    "BadAddress",
    "BadEntry",
    "NoAnswer",
    "OutboundClient",
    "OutboundError",
    "RedirectRefused",
    "check_plain",
    "retry_after",
]
