"""Why each type of machine that was not taken lost: the best that it could do, and what is wrong
with that. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradewind.model import Limits
from tradewind.model.plan import Loser
from tradewind.units import Micros, format_duration, format_money

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.plan.choose import Kept
    from tradewind.plan.search import Search

_WORST = {"limits": 0, "price": 1, "chip": 2, "layout": 3, "memory": 4, "quota": 5}


def losers(
    found: Search,
    catalog: Catalog,
    limits: Limits,
    right: Kept,
    best: int | None,
    deadline_h: float,
) -> list[Loser]:
    """One for each type that the best plan does not hold."""
    import numpy as np

    goods, candidates = found.goods, found.found
    winner = int(goods.types[candidates.good[best]]) if best is not None else -1
    price = candidates.cost[best] if best is not None else None
    by_type: dict[int, list[int]] = {}
    owner = goods.types[candidates.good]
    order = np.lexsort((candidates.cost, owner))
    for i in order.tolist():
        by_type.setdefault(int(owner[i]), []).append(i)
    first_row: dict[int, int] = {}
    for position, number in enumerate(goods.types.tolist()):
        first_row.setdefault(number, position)
    lost = []
    for number, (provider, name) in enumerate(goods.names):
        if number == winner:
            continue
        position = first_row[number]
        kind = goods.kinds[goods.kind[position]]
        ways = by_type.get(number, [])
        if ways:
            cause, words, at = _weighed(ways, found, right, price, limits, deadline_h)
        else:
            cause, words = _never(number, found, catalog, limits)
            at = None
        lost.append(
            Loser(
                provider=provider,
                instance_type=name,
                accelerator=kind.accelerator,
                accelerator_count=kind.each,
                kind=cause,
                why=words,
                hours=None if at is None else float(candidates.hours[at]),
                cost=None if at is None else Micros(round(float(candidates.cost[at]))),
            )
        )
    return lost


def _weighed(
    ways: Sequence[int],
    found: Search,
    right: Kept,
    price: float | None,
    limits: Limits,
    deadline_h: float,
) -> tuple[str, str, int]:
    """Of ways that could be done, the cheapest first."""
    candidates = found.found
    good = [i for i in ways if right.all[i]]
    if good and price is not None:
        times = candidates.cost[good[0]] / max(price, 1)
        shown = format_money(round(float(candidates.cost[good[0]])), digits=2)
        words = f"costs {times:.1f}×: {shown}" if times >= 1.05 else f"costs a little more: {shown}"
        return "money", words, good[0]
    in_time = [i for i in ways if right.deadline[i]]
    if in_time:
        shown = format_money(round(float(candidates.cost[in_time[0]])), digits=2)
        limit = format_money(limits.budget or 0, digits=2)
        return "money", f"costs {shown}, over the budget of {limit}", in_time[0]
    fastest = min(ways, key=lambda i: float(candidates.hours[i]))
    if candidates.hours[fastest] > deadline_h:
        taken = hours_words(float(candidates.hours[fastest]))
        return "time", f"would take {taken} at best", fastest
    surest = max(ways, key=lambda i: float(candidates.chance[i]))
    chance = float(candidates.chance[surest])
    taken = hours_words(float(candidates.hours[surest]))
    words = f"only {chance:.0%} likely to be in time, taking {taken}"
    return "time", words, surest


def _never(number: int, found: Search, catalog: Catalog, limits: Limits) -> tuple[str, str]:
    """Why a type has no way at all."""
    import numpy as np

    goods = found.goods
    rows = np.flatnonzero(goods.types == number)
    kind = goods.kinds[goods.kind[rows[0]]]
    if not goods.is_wanted[rows].any():
        return "limits", f"{kind.accelerator} is not among the accelerators that you allow"
    allowed = rows[goods.in_place[rows]]
    if not len(allowed):
        return "limits", "not in the places that you allow"
    if kind.each != int(kind.each):
        return "chip", "a slice of an accelerator, which is not planned with"
    reasons = [
        (found.speeds.kind_of_why[group], found.speeds.why[group], found.speeds.peak_gb[group])
        for (of, _), group in found.of_group.items()
        if of == goods.kind[rows[0]]
    ]
    if not reasons:
        return "limits", "more accelerators than you allow"
    if all(words for _, words, _ in reasons):
        cause, words, _ = min(reasons, key=lambda r: (-_WORST.get(r[0], 0), r[2]))
        return cause, words
    groups = ["on_demand", "spot", "held"]
    if limits.markets is not None:
        groups = [g for g in groups if ("reserved" if g == "held" else g) in limits.markets]
    for group in groups:
        here = allowed[~np.isnan(goods.prices[group][allowed])]
        if len(here) and not (goods.most[group][here] >= 1).any():
            return "quota", "over your quota"
    return "price", _doubt(allowed.tolist(), found, catalog, groups)


def _doubt(rows: list[int], found: Search, catalog: Catalog, groups: list[str]) -> str:
    table = catalog.table
    for position in rows:
        row = int(found.goods.rows[position])
        for group in groups:
            columns = table.prices[group]
            if columns.mark[row]:
                return str(columns.mark[row])
            if columns.micros[row] is not None:
                return f"the price is stale: it is of {columns.as_of[row]}"
    return f"no price on {' or '.join(g.replace('_', '-') for g in groups)}"


def hours_words(hours: float) -> str:
    if hours >= 24 * 365 * 10:
        return "decades"
    return format_duration(round(hours * 3600), parts=2)
