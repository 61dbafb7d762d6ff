"""Puts what a source lists into the rows we have. Pure.

A listing speaks for the rows of its type in its region and zone; `any` and an empty zone speak for
every one that we have. A price that it does not give stays as it was. A row that is new takes what
its listing does not tell of the hardware from what we know of the type. When a source lists all
that its provider sells, a price of its markets that was not listed is gone; what lost its last
price is counted as delisted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import date

from tradewind.catalog.refresh.base import Listing, Source
from tradewind.catalog.table import GROUPS_OF, NUMBERS, PRICE_GROUPS, Row
from tradewind.model import Accelerator, InstanceType

_HARDWARE = tuple(name for name in NUMBERS if name != "accelerator_count")
_GROUPS = ("on_demand", "spot", "reserved_1y", "reserved_3y")


@dataclass(frozen=True, slots=True)
class Change:
    """What a refresh did to one provider's rows."""

    renewed: int  # prices looked at again
    changed: int  # of those, prices that moved
    added: int  # offers that are new
    delisted: int  # offers sold no more
    unbelieved: int = 0  # offers that were not listed, but too many at once to be gone


# A provider may stop selling a few things; when most are missing, it is the list that is broken.
_MOST_GONE = 0.5
_FEW = 10


def merge(
    rows: list[Row],
    listings: Iterable[Listing],
    source: Source,
    accelerators: Mapping[str, Accelerator],
    known: Mapping[str, InstanceType],
    today: date,
    *,
    complete: bool | None = None,
) -> tuple[list[Row], Change]:
    """The provider's rows with `listings` worked in. `rows` and `known` are that provider's.

    `complete=False` where the list, this time, is known to have holes."""
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
            new = _new(listing, source, accelerators, known.get(listing.instance_type))
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
    moved = sum(row[group] != was for (_, group), (row, was) in before.items())
    change = Change(len(before), moved, added, 0)
    if not (source.complete if complete is None else complete):
        return merged, change
    return _without_delisted(merged, listed, source, before.keys(), change)


def _without_delisted(
    merged: list[Row],
    listed: Sequence[Listing],
    source: Source,
    renewed: Set[tuple[int, str]],
    change: Change,
) -> tuple[list[Row], Change]:
    # Most lists are of machines with accelerators; they say nothing of the others.
    cpu_too = any(not listing.accelerator for listing in listed)
    answerable = [row for row in merged if cpu_too or row["accelerator"]]
    unlisted = {id(row): _unlisted(row, source, renewed) for row in answerable}
    gone = {
        number
        for number, row in ((id(row), row) for row in answerable)
        if unlisted[number] and unlisted[number] == _priced(row)
    }
    if len(answerable) >= _FEW and len(gone) > _MOST_GONE * len(answerable):
        return merged, replace(change, unbelieved=len(gone))
    for row in answerable:
        row.update(dict.fromkeys(unlisted[id(row)]))
    return [row for row in merged if id(row) not in gone], replace(change, delisted=len(gone))


def _width(listing: Listing) -> int:
    """0 for one zone, 1 for a region, 2 for everywhere."""
    return 2 if listing.region == "any" else int(not listing.zone)


def _speaks_of(listing: Listing, row: Row) -> bool:
    return listing.region in ("any", row["region"]) and listing.zone in ("", row["zone"])


def _new(
    listing: Listing,
    source: Source,
    accelerators: Mapping[str, Accelerator],
    known: InstanceType | None,
) -> Row:
    row: Row = {
        "provider": source.provider,
        "region": listing.region,
        "zone": listing.zone,
        "instance_type": listing.instance_type,
        "accelerator": listing.accelerator,
        "accelerator_count": listing.accelerator_count,
    }
    for name in _HARDWARE:
        told = getattr(listing, name)
        row[name] = getattr(known, name, None) if told is None else told
    if row["accelerator_memory_gb"] is None and listing.accelerator in accelerators:
        row["accelerator_memory_gb"] = accelerators[listing.accelerator].memory_gb
    return row


def _unlisted(row: Row, source: Source, renewed: Set[tuple[int, str]]) -> set[str]:
    """The price groups of the row that the source should have listed, and did not."""
    groups = {group for market in source.markets for group in GROUPS_OF[market]}
    return {group for group in groups & _priced(row) if (id(row), group) not in renewed}


def _priced(row: Row) -> set[str]:
    return {group for group in PRICE_GROUPS if row.get(group) is not None}
