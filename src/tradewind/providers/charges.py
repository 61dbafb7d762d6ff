"""What a cloud charges for beside the machine, by the rate card: its disk, its address, and what it
asks of the store. Micro-dollars. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec.structs import replace

from tradewind.model import beside
from tradewind.model.beside import Beside, BesideOf
from tradewind.model.ratecard import Found, Place, RateCard
from tradewind.model.run import Spec, Way
from tradewind.model.usage import Rates
from tradewind.providers import registry

SYSTEM_GB = 150
"""Of a machine's disk: an image with drivers and PyTorch takes half of it at most, packages and
caches the rest."""


def disk_hour(card: RateCard, place: Place, gb: int, kind: str = "") -> int:
    """`kind`: as the cloud calls it, where it has several."""
    return int(beside.disk_hour(gb, card.find("block_storage", *place, item=kind).usd) + 0.5)


def address_hour(card: RateCard, place: Place) -> int:
    return card.find("public_address", *place).micros


def with_beside(card: RateCard, spec: Spec, way: Way, extra: Beside) -> Way:
    """A way at what its machines cost with their disk and address."""
    place = way.provider, way.region
    gb = disk = address = 0
    if extra.disk_gb:
        kept = spec.checkpoint_bytes, spec.checkpoint_keep
        gb = int(beside.disk_gb(*kept, max(way.nodes, 1), extra.disk_gb))
        gb += -(-spec.disk_bytes // 10**9)
        disk = disk_hour(card, place, gb, extra.disk)
    if share := extra.addresses / extra.workers:
        address = int(share * address_hour(card, place))
    return replace(
        way,
        disk_gb=gb,
        disk_price=disk,
        address_price=address,
        price=way.price + disk + address,
    )


@lru_cache(maxsize=8)
def usual(card: RateCard) -> BesideOf:
    """What is charged for machines as a rule, before anything is set up for them. Where nothing is
    rented by us, what the card has a price of is taken to be charged for, at the usual amount."""

    known: dict[tuple[str, str, str], Beside] = {}  # asked for thousands of places

    def beside_of(provider: str, region: str, instance_type: str, market: str) -> Beside:
        asked = provider, instance_type, market
        if asked not in known:
            if provider in registry.RENTED:
                cloud = registry.rentable(provider)
                known[asked] = cloud.beside(None, region, instance_type, market)
            else:
                known[asked] = Beside(
                    disk_gb=SYSTEM_GB if card.has("block_storage", provider) else 0,
                    addresses=1.0 if card.has("public_address", provider) else 0.0,
                )
        return known[asked]

    return beside_of


def store(card: RateCard, machines: Place, bucket: Place, kept_s: int) -> Rates:
    """For machines in one place, of a bucket in another. `kept_s`: for so long the bucket keeps
    what was removed or replaced."""
    return Rates(
        writes=card.find("requests_write", *bucket).micros,
        reads=card.find("requests_read", *bucket).micros,
        gb_in=_traffic(card, machines, bucket),
        gb_out=_traffic(card, bucket, machines),
        gb_month=card.find("object_storage", *bucket).micros,
        kept_s=kept_s,
    )


def outside(card: RateCard, bucket: Place, kept_s: int) -> Rates:
    """For a computer that is at no cloud."""
    return Rates(
        writes=card.find("requests_write", *bucket).micros,
        reads=card.find("requests_read", *bucket).micros,
        gb_out=card.find("egress_internet", *bucket).micros,
        gb_month=card.find("object_storage", *bucket).micros,
        kept_s=kept_s,
    )


def assumptions(
    card: RateCard, machines: Iterable[Place], bucket: Place, *, disks: Sequence[str] = ("",)
) -> list[str]:
    """In words, each price of those that nobody has told us for that region. `disks`: their kinds;
    none: they are in the price of a machine."""
    used: list[Found | None] = [
        card.find(category, *bucket)
        for category in ("object_storage", "requests_write", "requests_read")
    ]
    for place in machines:
        used += [card.find("block_storage", *place, item=kind) for kind in disks]
        used += [card.traffic(place, bucket), card.traffic(bucket, place)]
    return list(dict.fromkeys(found.assumed for found in used if found and found.assumed))


def _traffic(card: RateCard, start: Place, end: Place) -> int:
    found = card.traffic(start, end)
    return found.micros if found else 0
