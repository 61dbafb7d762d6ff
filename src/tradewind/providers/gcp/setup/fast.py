"""Networks for GPUDirect between machines of one leg, as plain data.

By Google's documentation ("Networking and GPU machines", "RDMA network profiles"): A3 High has four
cards for its GPUs and A3 Mega eight, each in a usual network of its own with large packets. A3
Ultra and A4 have eight that speak RDMA, each in a subnetwork of one RoCE network, which is of one
zone and knows no firewall rules: whatever is in it may talk. Besides they have two cards for
everything else, which must be in different networks.

The ranges of one machine's cards must not overlap, so each network has a second number of its own:
10.78 to 10.85 those of cards for GPUs, 10.86 that of second cards, 10.87 each RoCE network, of
which a machine sees one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.providers.gcp.machines.types import RDMA_CARDS, TCPX_CARDS, TCPXO_CARDS
from tradewind.providers.gcp.setup.nets import Network, Ranges, Subnet, free, inside

CARDS = {"tcpx": TCPX_CARDS, "tcpxo": TCPXO_CARDS}
RDMA = "rdma"
GPU_MTU = 8244
"""Of networks for GPUDirect-TCPX and -TCPXO, as all of Google's examples have it."""
LARGE_MTU = 8896
"""The most there is, and what Google advises for A3 Ultra and A4."""
_GPU, _SECOND, _ROCE = "gpu", "second", "rdma"
_PROFILE = "-vpc-roce"
_FIRST_GPU, _OF_SECOND, _OF_ROCE = 78, 86, 87


class Wanted(Struct, frozen=True, kw_only=True):
    cards: int = 0
    """For so many cards with gVNIC there is a network, in all regions."""
    zones: tuple[str, ...] = ()
    """That have a RoCE network."""

    def __or__(self, other: Wanted) -> Wanted:
        return Wanted(
            cards=max(self.cards, other.cards),
            zones=tuple(sorted({*self.zones, *other.zones})),
        )


class Asked(Struct, frozen=True, kw_only=True):
    """What `--gpudirect` says."""

    cards: int = 0
    rdma: bool = False
    zones: tuple[str, ...] = ()
    """Of RDMA; none are named: all that have it."""


def asked(text: str) -> Asked:
    kind, _, rest = text.partition(":")
    zones = tuple(dict.fromkeys(rest.split(","))) if rest else ()
    well = kind == RDMA or (kind in CARDS and ":" not in text)
    if text and (not well or (":" in text and not all(map(_is_zone, zones or ("",))))):
        raise InvalidValue(
            f"--gpudirect {text} is none that there is",
            hint="tcpx (A3 High), tcpxo (A3 Mega and A3 High), or rdma (A3 Ultra, A4): in all zones"
            " that have it, or in those named, as in rdma:us-central1-b,europe-west1-b",
        )
    return Asked(cards=CARDS.get(kind, 0), rdma=kind == RDMA, zones=zones)


def _is_zone(text: str) -> bool:
    return re.fullmatch(r"[a-z]+-[a-z]+\d+-[a-z]", text) is not None


def checked_zones(zones: Sequence[str], regions: Sequence[str]) -> None:
    """Each in a region in which machines may be."""
    for zone in zones:
        if region_of(zone) not in regions:
            raise InvalidValue(
                f"{zone} is in none of the regions that are set up: {', '.join(regions)}",
                hint=f"--region {region_of(zone)}",
            )


def region_of(zone: str) -> str:
    return zone.rpartition("-")[0]


def is_one(called: str, name: str) -> bool:
    """Whether a network is called as one of these."""
    rest = name.removeprefix(f"{called}-")
    return rest != name and re.fullmatch(rf"{_GPU}-\d|{_SECOND}|{_ROCE}-.+", rest) is not None


def there(called: str, names: Iterable[str]) -> Wanted:
    """What was wanted before, by the names of networks that are there: all of that, where making it
    was cut off."""
    found = Wanted()
    for name in names:
        rest = name.removeprefix(f"{called}-")
        if rest.startswith(f"{_GPU}-"):
            few = int(rest.rpartition("-")[2]) <= TCPX_CARDS
            found |= Wanted(cards=TCPX_CARDS if few else TCPXO_CARDS)
        elif rest.startswith(f"{_ROCE}-"):
            found |= Wanted(zones=(rest.removeprefix(f"{_ROCE}-"),))
    return found


def zones_with(profiles: Iterable[str]) -> set[str]:
    """Those that have RoCE networks, by the names of network profiles."""
    return {name.removesuffix(_PROFILE) for name in profiles if name.endswith(_PROFILE)}


def networks(
    called: str, marked: str, wanted: Wanted, regions: Sequence[str], ranges: Ranges
) -> tuple[Network, ...]:
    made = [
        _usual(called, marked, f"{_GPU}-{number}", _FIRST_GPU + number - 1, regions, ranges)
        for number in range(1, wanted.cards + 1)
    ]
    if wanted.zones:
        where = tuple(dict.fromkeys(map(region_of, wanted.zones)))
        made.append(_usual(called, marked, _SECOND, _OF_SECOND, where, ranges))
    return (*made, *(_roce(called, marked, zone, ranges) for zone in wanted.zones))


def _usual(
    called: str, marked: str, suffix: str, second: int, regions: Sequence[str], ranges: Ranges
) -> Network:
    name = f"{called}-{suffix}"
    taken = {region: told for (region, each), told in ranges.items() if each == name}
    for region in regions:
        taken.setdefault(region, free(taken, f"10.{second}."))
    subnets = tuple(
        Subnet(name=name, region=region, range=told, description=marked, private_access=False)
        for region, told in taken.items()
    )
    return Network(
        name=name,
        suffix=suffix,
        description=marked,
        mtu=LARGE_MTU if suffix == _SECOND else GPU_MTU,
        subnets=subnets,
        firewalls=(inside(name, subnets, "machines reach each other, and no one else does"),),
    )


def _roce(called: str, marked: str, zone: str, ranges: Ranges) -> Network:
    suffix, region = f"{_ROCE}-{zone}", region_of(zone)
    name = f"{called}-{suffix}"
    subnets = tuple(
        Subnet(
            name=f"{name}-{card}",
            region=region,
            range=ranges.get((region, f"{name}-{card}")) or f"10.{_OF_ROCE}.{16 * card}.0/20",
            description=marked,
            private_access=False,
        )
        for card in range(RDMA_CARDS)
    )
    return Network(
        name=name,
        suffix=suffix,
        description=marked,
        mtu=LARGE_MTU,
        profile=f"{zone}{_PROFILE}",
        subnets=subnets,
        firewalls=(),
    )


def record(made: Sequence[Network], regions: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """As footprint.fast_subnets has it."""
    found: dict[str, list[str]] = {}
    for network in made:
        if network.suffix == _SECOND:
            continue
        if not network.profile:
            for subnet in network.subnets:
                found.setdefault(subnet.region, []).append(subnet.name)
            continue
        zone = network.suffix.removeprefix(f"{_ROCE}-")
        own = [subnet.name for subnet in network.subnets]
        second = network.name.removesuffix(network.suffix) + _SECOND
        found[zone] = [second, *own]
    return {
        place: tuple(names)
        for place, names in sorted(found.items())
        if place in regions or region_of(place) in regions
    }
