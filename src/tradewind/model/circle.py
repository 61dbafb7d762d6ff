"""Who reaches the machines of a service: each other, at the engines' port; and whoever is allowed,
at the front's. What a cloud makes of it, a group with rules, is the provider's (providers/base)."""

from __future__ import annotations

import ipaddress

from msgspec import Struct

from tradewind.base.errors import InvalidValue


class Circle(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    """The service's id. Ids of its machines' runs begin with it and a dash."""
    port: int
    """Of engines: open to machines of the circle, and to nobody else."""
    open_port: int
    """Of fronts."""
    ranges: tuple[str, ...] = ()
    """Addresses from which fronts are reached; none: those of the network that they are in."""

    def __post_init__(self) -> None:
        for each in self.ranges:
            check_range(each)


def check_range(text: str) -> None:
    """Raises in words what is wrong with it."""
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        raise InvalidValue(
            f"{text!r} is no range of addresses: {error}",
            hint="such as 203.0.113.0/24, or 0.0.0.0/0 for everybody",
        ) from None
