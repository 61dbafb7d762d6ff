"""Puts what a source lists into the rows we have. Pure.

A listing speaks for the rows of its type in its region and zone; `any` and an empty zone speak for
every one that we have. A price that it does not give stays as it was. When a source lists all that
its provider sells, a price of its markets that was not listed is gone; what lost its last price is
counted as delisted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from tradewind.catalog.refresh.base import Listing, Source
from tradewind.catalog.table import GROUPS_OF, NUMBERS, PRICE_GROUPS, Row
from tradewind.model import Accelerator

_HARDWARE = tuple(name for name in NUMBERS if name != "accelerator_count")
_GROUPS = ("on_demand", "spot", "reserved_1y", "reserved_3y")


@dataclass(frozen=True, slots=True)
class Change:
    """What a refresh did to one provider's rows."""

    renewed: int  # prices looked at again
    changed: int  # of those, prices that moved
    added: int  # offers that are new
    delisted: int  # offers sold no more


def merge(
    rows: list[Row],
    listings: Iterable[Listing],
    source: Source,
    accelerators: Mapping[str, Accelerator],
    today: date,
) -> tuple[list[Row], Change]:
    """The provider's rows with `listings` worked in. `rows` holds only that provider's."""
    merged = [dict(row) for row in rows]
    by_type: dict[tuple[str, str], list[Row]] = {}
    for row in merged:
        by_type.setdefault((row["instance_type"], row["accelerator"]), []).append(row)
    touched: set[tuple[int, str]] = set()
    changed = added = 0
    # Wide listings first: what is said of one zone overrules what is said of all.
    for listing in sorted(listings, key=lambda it: (it.region != "any", bool(it.zone))):
        same = by_type.setdefault((listing.instance_type, listing.accelerator), [])
        meant = [row for row in same if _speaks_of(listing, row)]
        if not meant:
            meant = [_new(listing, source, accelerators)]
            same += meant
            merged += meant
            added += 1
        for row in meant:
            for name in _HARDWARE:
                if row.get(name) is None:
                    row[name] = getattr(listing, name)
            for group in _GROUPS:
                micros = getattr(listing, group)
                if micros is None:
                    continue
                changed += row.get(group) != micros
                touched.add((id(row), group))
                row[group] = micros
                row[f"{group}_as_of"] = today.isoformat()
                row[f"{group}_source"] = source.describes
    if source.complete:
        for row in merged:
            _forget(row, source, touched)
    kept = [row for row in merged if any(row.get(group) is not None for group in PRICE_GROUPS)]
    return kept, Change(len(touched), changed, added, len(merged) - len(kept))


def _speaks_of(listing: Listing, row: Row) -> bool:
    return listing.region in ("any", row["region"]) and listing.zone in ("", row["zone"])


def _new(listing: Listing, source: Source, accelerators: Mapping[str, Accelerator]) -> Row:
    row: Row = {
        "provider": source.provider,
        "region": listing.region,
        "zone": listing.zone,
        "instance_type": listing.instance_type,
        "accelerator": listing.accelerator,
        "accelerator_count": listing.accelerator_count,
    }
    row |= {name: getattr(listing, name) for name in _HARDWARE}
    if row["accelerator_memory_gb"] is None and listing.accelerator in accelerators:
        row["accelerator_memory_gb"] = accelerators[listing.accelerator].memory_gb
    return row


def _forget(row: Row, source: Source, touched: set[tuple[int, str]]) -> None:
    for market in source.markets:
        for group in GROUPS_OF[market]:
            if (id(row), group) not in touched:
                row[group] = None
