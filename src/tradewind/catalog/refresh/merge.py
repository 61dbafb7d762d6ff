"""Puts what a source lists into the rows we have. Pure.

A listing speaks for the rows of its type in its region and zone; `any` and an empty zone speak for
every one that we have. A price that it does not give stays as it was. When a source lists all that
its provider sells, a price of its markets that was not listed is gone; what lost its last price is
counted as delisted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
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
    before: dict[tuple[int, str], tuple[Row, int | None]] = {}  # what each renewed price was
    added = 0
    listed = list(listings)
    # A narrow listing makes the rows for which a wide one then speaks …
    for listing in sorted(listed, key=_width):
        same = by_type.setdefault((listing.instance_type, listing.accelerator), [])
        if not listing.only_known and not any(_speaks_of(listing, row) for row in same):
            new = _new(listing, source, accelerators)
            same.append(new)
            merged.append(new)
            added += 1
    # … and the wide ones speak first: what is said of one zone overrules what is said of all.
    for listing in sorted(listed, key=_width, reverse=True):
        same = by_type[listing.instance_type, listing.accelerator]
        for row in [row for row in same if _speaks_of(listing, row)]:
            for name in _HARDWARE:
                if row.get(name) is None:
                    row[name] = getattr(listing, name)
            for group in _GROUPS:
                micros = getattr(listing, group)
                if micros is None:
                    continue
                before.setdefault((id(row), group), (row, row.get(group)))
                row[group] = micros
                row[f"{group}_as_of"] = today.isoformat()
                row[f"{group}_source"] = source.describes
    # Most lists are of machines with accelerators; they say nothing of the others.
    cpu_too = any(not listing.accelerator for listing in listed)
    answerable = [r for r in merged if source.complete and (cpu_too or r["accelerator"])]
    gone = [row for row in answerable if _forget(row, source, before.keys())]
    kept = [row for row in merged if not any(row is lost for lost in gone)] if gone else merged
    moved = sum(row[group] != was for (_, group), (row, was) in before.items())
    return kept, Change(len(before), moved, added, len(gone))


def _width(listing: Listing) -> int:
    """0 for one zone, 1 for a region, 2 for everywhere."""
    return 2 if listing.region == "any" else int(not listing.zone)


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


def _forget(row: Row, source: Source, renewed: Set[tuple[int, str]]) -> bool:
    """Takes away the prices that the source should have listed; True if none is left by that."""
    lost = False
    for market in source.markets:
        for group in GROUPS_OF[market]:
            if row.get(group) is not None and (id(row), group) not in renewed:
                row[group], lost = None, True
    return lost and all(row.get(group) is None for group in PRICE_GROUPS)
