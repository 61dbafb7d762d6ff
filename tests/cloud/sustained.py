"""Sustained-use discounts of the equipment's own bill: no code of the product is used.

A cloud looks at a month when it is over. Of each type in each region it makes as few machines of
the time that was used as it can, each up for as much of the month as possible, and takes off what
each of them has earned. `k` or more machines were up at once for so long: that is what the k-th of
those was up for.

What a commitment pays for is not discounted again.

Known lies: types are not combined with others that share their kind of CPU, months are UTC's, and a
price does not change meanwhile.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Any

Steps = Sequence[tuple[str, str]]
"""From which share of the month on, what share is paid: as decimals."""


def taken_off(rows: Sequence[dict[str, Any]], steps: Mapping[str, Steps]) -> list[dict[str, Any]]:
    """`rows`: machines of the bill, with `region` and `hour_usd`. `steps`: by the first letters of
    a type."""
    found: dict[tuple[str, str, int], list[tuple[int, int, Fraction]]] = defaultdict(list)
    for row in rows:
        paid_else = row["market"] != "on-demand" or row["reserved"]
        if not paid_else and _of(row["type"], steps):
            since = int(row["from"])
            until = since + max(int(row["to"]) - since, 60)
            price = Fraction(round(1e6 * row["hour_usd"]))
            for first, last in _months(since, until):
                span = max(since, first), min(until, last), price
                found[row["region"], row["type"], first].append(span)
    made = []
    for (region, kind, first), spans in found.items():
        ((_, last),) = list(_months(first, first + 1))
        micros = _off(spans, last - first, _of(kind, steps))
        made.append({"region": region, "type": kind, "month": first, "micros": math.floor(micros)})
    return made


def _of(kind: str, steps: Mapping[str, Steps]) -> Steps:
    return next((found for begins, found in steps.items() if kind.startswith(begins)), ())


def _off(spans: list[tuple[int, int, Fraction]], month_s: int, steps: Steps) -> Fraction:
    (price,) = {price for *_, price in spans}
    lengths: dict[int, int] = defaultdict(int)  # by how many were up at once
    for second, after in _pieces(spans):
        lengths[sum(since <= second < until for since, until, _ in spans)] += after - second
    off = Fraction(0)
    for layer in range(1, max(lengths) + 1):
        up = sum(length for many, length in lengths.items() if many >= layer)
        off += price * Fraction(up - _paid(up, month_s, steps)) / 3600
    return off


def _pieces(spans: list[tuple[int, int, Fraction]]) -> list[tuple[int, int]]:
    cuts = sorted({at for since, until, _ in spans for at in (since, until)})
    return list(pairwise(cuts))


def _paid(up: int, month_s: int, steps: Steps) -> Fraction:
    """Seconds, as many as are paid whole."""
    shares = [*(Fraction(share) for share, _ in steps), Fraction(1)]
    total = Fraction(0)
    for (_, pays), first, last in zip(steps, shares, shares[1:], strict=False):
        within = min(Fraction(up), last * month_s) - first * month_s
        total += max(within, Fraction(0)) * Fraction(pays)
    return total


def _months(since: int, until: int) -> list[tuple[int, int]]:
    found = []
    at = since
    while at < until:
        moment = datetime.fromtimestamp(at, UTC)
        first = datetime(moment.year, moment.month, 1, tzinfo=UTC)
        after = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1, tzinfo=UTC)
        found.append((int(first.timestamp()), int(after.timestamp())))
        at = found[-1][1]
    return found
