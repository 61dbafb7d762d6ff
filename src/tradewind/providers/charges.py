"""What a cloud charges for beside the machine, by the rate card: its disk, its address, and what it
asks of the store. Micro-dollars. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tradewind.model.ratecard import Found, Place, RateCard
from tradewind.model.run import Spec
from tradewind.model.usage import Rates

_MONTH_H = 30 * 24
_SPARE = 1.5


def disk_gb(spec: Spec, nodes: int, system_gb: int) -> int:
    """For the checkpoints that a machine keeps beside those in the store, the one that is being
    written among them, and `system_gb` for all else."""
    kept = spec.checkpoint_bytes / max(nodes, 1) * (spec.checkpoint_keep + 1)
    return round(_SPARE * kept / 1e9) + -(-spec.disk_bytes // 10**9) + system_gb


def disk_hour(card: RateCard, place: Place, gb: int, kind: str = "") -> int:
    """`kind`: as the cloud calls it, where it has several."""
    usd = card.find("block_storage", *place, item=kind).usd
    return round(gb * usd * 1_000_000 / _MONTH_H)


def address_hour(card: RateCard, place: Place) -> int:
    return card.find("public_address", *place).micros


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
