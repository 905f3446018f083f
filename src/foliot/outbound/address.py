"""Which addresses are public, and what the others are.

The table is our own and not `ipaddress.is_global`: that one differs between releases of Python, calls tunnels public,
and knows no cloud.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal

Address = IPv4Address | IPv6Address
Kind = Literal[
    "unspecified", "loopback", "private", "shared", "link-local", "metadata", "multicast", "reserved", "tunnel"
]

# The first that holds an address names it: what is narrow comes before what is wide.
_KINDS: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (
        "metadata",
        (
            "169.254.169.254/32",  # most clouds
            "169.254.170.2/32",  # containers of AWS
            "169.254.170.23/32",
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure: public by its number, answered by the machine's host
            "192.0.0.192/32",  # Oracle
            "fd00:ec2::254/128",  # AWS
            "fd00:ec2::23/128",
            "fd20:ce::254/128",  # Google
        ),
    ),
    ("unspecified", ("0.0.0.0/8", "::/128")),  # Linux takes them for this machine
    ("loopback", ("127.0.0.0/8", "::1/128")),
    ("private", ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10")),
    ("shared", ("100.64.0.0/10",)),  # carrier-grade NAT
    ("link-local", ("169.254.0.0/16", "fe80::/10")),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    (
        "tunnel",
        (
            "192.88.99.0/24",  # relays of 6to4
            "2002::/16",  # 6to4
            "2001::/32",  # Teredo
            "64:ff9b:1::/48",  # NAT64 of one network, with an IPv4 address in it at a place that only that one knows
            "::/96",  # IPv4 addresses in the oldest form
            "::ffff:0:0:0/96",  # translated ones
        ),
    ),
    (
        "reserved",
        (
            "192.0.0.0/24",  # protocols
            "192.0.2.0/24",  # documentation
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "240.0.0.0/4",
            "2001::/23",  # protocols
            "2001:db8::/32",  # documentation
            "3fff::/20",
        ),
    ),
)
_NETWORKS = tuple((kind, tuple(map(ip_network, texts))) for kind, texts in _KINDS)
_GLOBAL_UNICAST = ip_network("2000::/3")
_NAT64 = ip_network("64:ff9b::/96")

WORDS: dict[Kind, str] = {
    "unspecified": "an unspecified address",
    "loopback": "a loopback address",
    "private": "a private address",
    "shared": "an address of carrier-grade NAT",
    "link-local": "a link-local address",
    "metadata": "an address for the metadata of a cloud",
    "multicast": "a multicast address",
    "reserved": "a reserved address",
    "tunnel": "an address of a tunnel",
}


def kind_of(address: Address) -> Kind | None:
    """What keeps an address from being called without the operator's word; None for a public one."""
    address = real(address)
    for kind, networks in _NETWORKS:
        if any(address in network for network in networks):
            return kind
    if isinstance(address, IPv6Address):
        if address not in _GLOBAL_UNICAST:
            return "reserved"
        return _inside_isatap(address)
    return None


def real(address: Address) -> Address:
    """The IPv4 address where one is only written as IPv6: mapped, or behind the well-known prefix of NAT64, by which
    a machine without IPv4 reaches the public one."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def read_address(text: str) -> Address | None:
    """None for what is not an address in its one usual form: whoever connects would look it up once more."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def _inside_isatap(address: IPv6Address) -> Kind | None:
    """ISATAP hides an IPv4 address in the second half of any prefix."""
    if int(address) >> 32 & 0xFDFF_FFFF == 0x0000_5EFE:
        return kind_of(IPv4Address(int(address) & 0xFFFF_FFFF)) and "tunnel"
    return None
