"""Networks as setup describes them, as plain data."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tradewind.base.errors import InvalidValue

INSIDE = "10.77."
"""What addresses of all subnetworks of a store's own network begin with."""
_MOST_SUBNETS = 16

Ranges = Mapping[tuple[str, str], str]
"""Of subnetworks that are there already, by region and name."""


class Subnet(Struct, frozen=True, kw_only=True):
    name: str
    region: str
    range: str
    description: str
    private_access: bool = True
    """From it Google's APIs are reached without an external address."""


class Firewall(Struct, frozen=True, kw_only=True):
    """Who is let in. All else is refused, as Google does by itself."""

    name: str
    sources: tuple[str, ...]
    protocol: str
    ports: tuple[str, ...]
    description: str
    words: str
    """What it is for, in a few words."""


class Network(Struct, frozen=True, kw_only=True):
    """With no subnetwork but these, and nobody in it but machines of the store."""

    name: str
    description: str
    subnets: tuple[Subnet, ...]
    firewalls: tuple[Firewall, ...]
    suffix: str = ""
    """Of its name, behind what all names of a store begin with; "": the store's own."""
    mtu: int = 0
    """0: as Google makes them."""
    profile: str = ""
    """The network profile that makes it another kind of network; "": the usual kind."""


def inside(name: str, subnets: tuple[Subnet, ...], words: str) -> Firewall:
    """Of a network, for its own subnetworks."""
    return Firewall(
        name=f"{name}-inside",
        sources=tuple(sorted(subnet.range for subnet in subnets)),
        protocol="all",
        ports=(),
        description=subnets[0].description,
        words=words,
    )


def free(taken: Mapping[str, str], start: str) -> str:
    """A range that begins with `start`, and that no region has yet."""
    for place in range(_MOST_SUBNETS):
        found = f"{start}{16 * place}.0/20"
        if found not in taken.values():
            return found
    raise InvalidValue(
        f"a store has machines in {_MOST_SUBNETS} regions at most",
        hint="take a second store for the others",
    )
