"""What can be told of an address before anybody calls it, so that a plain mistake is told to who makes it."""

import socket
from ipaddress import IPv4Address

from foliot.outbound.address import Address, read_address
from foliot.outbound.allow_list import AllowList, plain_name
from foliot.outbound.client import read_url, refusal

_LOOPBACK = IPv4Address("127.0.0.1")


def check_plain(url: str, allowed: AllowList) -> None:
    """Raises `BadAddress` where nobody could call it, `AddressNotAllowed` where its host is written as an address (or
    is this machine) to which nobody may. Names are looked up only when they are called, and are checked then."""
    target = read_url(url)
    host, port = target.raw_host or "", target.port or 0
    address = _written(host)
    if address is not None and not allowed.permits(host, address, port):
        raise refusal(host, address, port)


def _written(host: str) -> Address | None:
    """The address that a host is, in any of the forms that the system takes for one, without looking anything up."""
    name = plain_name(host)
    if name == "localhost" or name.endswith(".localhost"):
        return _LOOPBACK
    address = read_address(name)
    if address is None:
        try:
            address = IPv4Address(socket.inet_aton(name))
        except OSError:
            return None
    return address
