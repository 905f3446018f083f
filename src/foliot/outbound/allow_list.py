"""What the operator lets jobs call besides public addresses: networks, hosts, each for all ports or for one."""

import re
from ipaddress import IPv4Network, IPv6Network, ip_network

from msgspec import Struct
from yarl import URL

from foliot.outbound.address import Address, Kind, kind_of, real

# A name says nothing on where it leads tomorrow. What one opens is a service of the operator's own networks; the rest
# has to be listed by its address.
OPENED_BY_NAME: frozenset[Kind] = frozenset({"loopback", "private", "shared"})

_PORT = re.compile(r"^(?P<rest>\[[^\]]*\]|[^:\[\]]*):(?P<port>[0-9]{1,5})\Z")
_NAME = re.compile(r"^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?\Z")


class BadEntry(ValueError):
    """An entry that says nothing; the message tells what would."""


class Entry(Struct, frozen=True, kw_only=True):
    """Either a network or a host, on one port or on all."""

    network: IPv4Network | IPv6Network | None = None
    host: str | None = None
    port: int | None = None


class AllowList(Struct, frozen=True):
    """Empty: public addresses only."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def parse(cls, text: str) -> "AllowList":
        """Entries with commas between. Raises `BadEntry`."""
        return cls(tuple(_parse(word) for word in map(str.strip, text.split(",")) if word))

    def permits(self, host: str, address: Address, port: int) -> bool:
        """Whether a connection to `address` may be made for a request to `host`."""
        kind = kind_of(address)
        if kind is None:
            return True
        host = plain_name(host)
        return any(
            entry.port in (None, port)
            and (
                _holds(entry.network, address)
                if entry.network is not None
                else entry.host == host and kind in OPENED_BY_NAME
            )
            for entry in self.entries
        )


def plain_name(host: str) -> str:
    """One form for all spellings of a name."""
    return host.rstrip(".").lower()


def _holds(network: IPv4Network | IPv6Network, address: Address) -> bool:
    return address in network or real(address) in network


def _parse(word: str) -> Entry:
    found = _PORT.match(word)
    text = found["rest"] if found else word
    port = int(found["port"]) if found else None
    if port is not None and not 1 <= port <= 65535:
        raise BadEntry(f"{word!r} has no port between 1 and 65535")
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    try:
        return Entry(network=ip_network(text), port=port)
    except ValueError as error:
        if "host bits" in str(error):
            raise BadEntry(f"{word!r} is an address inside a network; write {ip_network(text, strict=False)}") from None
    try:
        host = plain_name(URL.build(scheme="http", host=text).raw_host or "")
    except ValueError:
        host = ""
    if not _NAME.match(host) or host.replace(".", "").isdigit():
        raise BadEntry(f"{word!r} is no network, host or host:port, as in 10.0.0.0/8,intranet.example.org,localhost:80")
    return Entry(host=host, port=port)
