"""Why each type of machine that was not taken lost: the best that it could do, and what is wrong
with that. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.base.units import Micros, format_chance, format_hours, format_money
from tradewind.catalog import driven
from tradewind.model import Limits
from tradewind.model.plan import Loser
from tradewind.planning.goods import allowed_modes
from tradewind.planning.search import priced

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.planning.choose import Kept
    from tradewind.planning.goods import Column, Flags, Numbers
    from tradewind.planning.search import Search
    from tradewind.planning.weigh import Candidates

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
    price = float(candidates.cost[best]) if best is not None else None
    ways = _Ways(found, right)
    groups: dict[int, list[int]] = {}
    for (kind_of, _), group in found.of_group.items():
        groups.setdefault(kind_of, []).append(group)
    has_price = priced(goods, limits)
    order = np.argsort(goods.types, kind="stable")
    ends = np.searchsorted(goods.types[order], np.arange(1, len(goods.names)))
    rows_of = np.split(order, ends)
    lost = []
    for number, (provider, name) in enumerate(goods.names):
        if number == winner:
            continue
        kind = goods.kinds[goods.kind[rows_of[number][0]]]
        if number in ways.fastest:
            cause, words, at = _weighed(number, ways, found, price, limits, deadline_h)
        else:
            cause, words = _never(rows_of[number], found, catalog, limits, groups, has_price)
            at = None
        lost.append(
            Loser(
                provider=provider,
                instance_type=name,
                accelerator=kind.accelerator,
                accelerator_count=kind.each,
                kind=cause,
                why=words,
                own=bool(goods.own[rows_of[number][0]]),
                hours=None if at is None else float(candidates.hours[at]),
                cost=None if at is None else Micros(round(float(candidates.cost[at]))),
            )
        )
    return lost


class _Ways:
    """Of each type the best of its ways, by what one may ask of it."""

    def __init__(self, found: Search, right: Kept) -> None:
        import numpy as np

        c = found.found
        self._cost = c.cost
        self._types = found.goods.types[c.good]
        self.right = self._first(right.all, c.weighed)
        self.in_time = self._first(right.deadline, c.cost)
        self.affordable = self._first(right.deadline & right.budget, c.co2_kg)
        # A little slower or less sure for less money is the same.
        slow: Column = np.round(np.log(np.maximum(c.hours, 1e-9)), 2).astype(np.float64)
        self.fastest = self._first(None, slow)
        self.surest = self._first(None, -np.round(c.chance, 2))

    def _first(self, mask: Flags | None, measure: Column) -> dict[int, int]:
        """The least of the measure; of those alike, the cheapest."""
        import numpy as np

        at = np.arange(len(measure)) if mask is None else np.flatnonzero(mask)
        at = at[np.lexsort((self._cost[at], measure[at]))]
        numbers, first = np.unique(self._types[at], return_index=True)
        return dict(zip(numbers.tolist(), at[first].tolist(), strict=True))


def _weighed(
    number: int,
    ways: _Ways,
    found: Search,
    price: float | None,
    limits: Limits,
    deadline_h: float,
) -> tuple[str, str, int]:
    """What is wrong with a type that could do it."""
    candidates = found.found
    at = ways.right.get(number)
    if at is not None and price is not None:
        times = float(candidates.cost[at]) / max(price, 1)
        shown = _money(candidates.cost[at])
        if times < 1:
            had = float(candidates.had[at])
            return (
                "capacity",
                f"costs {shown}, but is only {format_chance(had)} likely to be available",
                at,
            )
        words = f"costs {times:.1f}×: {shown}" if times >= 1.05 else f"costs a little more: {shown}"
        return "money", words, at
    at = ways.affordable.get(number)
    if at is not None and limits.carbon_kg is not None:
        emitted = float(candidates.co2_kg[at])
        return "limits", f"emits {emitted:,.3g} kg CO2e, more than {limits.carbon}", at
    at = ways.in_time.get(number)
    if at is not None:
        return "money", _over(candidates, at, limits.budget or 0), at
    at = ways.fastest[number]
    if candidates.hours[at] > deadline_h:
        return "time", f"would take {format_hours(float(candidates.hours[at]))} at best", at
    at = ways.surest[number]
    taken = format_hours(float(candidates.hours[at]))
    chance = float(candidates.chance[at])
    fits = float(found.speeds.fits[candidates.group[at]])
    if fits < limits.sure:
        return "memory", f"only {format_chance(fits)} likely to fit", at
    return "time", f"only {format_chance(chance)} likely to be in time, taking {taken}", at


def _over(candidates: Candidates, at: int, budget: int) -> str:
    shown, limit = _money(candidates.cost[at]), format_money(budget, digits=2)
    if candidates.cost[at] > budget:
        return f"costs {shown}, over the budget of {limit}"
    within = format_chance(float(candidates.within(budget)[at]))
    return f"costs {shown}, only {within} likely to stay within the budget of {limit}"


def _money(micros: float) -> str:
    return format_money(round(float(micros)), digits=2)


def _never(
    rows: Numbers,
    found: Search,
    catalog: Catalog,
    limits: Limits,
    groups: dict[int, list[int]],
    has_price: Flags,
) -> tuple[str, str]:
    """Why a type, whose goods are `rows`, has no way at all."""
    import numpy as np

    goods = found.goods
    kind = goods.kinds[goods.kind[rows[0]]]
    if not (goods.driven[rows].any() or limits.accelerators):
        chip = catalog.accelerators[kind.accelerator]
        provider, _ = goods.names[int(goods.types[rows[0]])]
        return "chip", driven.undriven(provider, chip.name, chip.vendor)
    if not goods.is_wanted[rows].any():
        return "limits", f"{kind.accelerator} is not among the accelerators that you allow"
    allowed = rows[goods.in_place[rows]]
    if not len(allowed):
        return "limits", "not in the places that you allow"
    if kind.each != int(kind.each):
        return "chip", "a slice of an accelerator, which is not planned with"
    markets = allowed_modes(limits)
    if not has_price[allowed].any():
        return "price", _doubt(allowed.tolist(), found, catalog, markets)
    reasons = [
        (found.speeds.kind_of_why[group], found.speeds.why[group], found.speeds.peak_gb[group])
        for group in groups.get(int(goods.kind[rows[0]]), ())
    ]
    if not reasons:
        return "limits", "more accelerators than you allow"
    if all(words for _, words, _ in reasons):
        cause, words, _ = min(reasons, key=lambda r: (-_WORST.get(r[0], 0), r[2]))
        return cause, words
    for market in markets:
        here = allowed[~np.isnan(goods.prices[market][allowed])]
        if len(here) and not (goods.most[market][here] >= 1).any():
            return "quota", "over your quota"
        if market == "held" and len(here):
            return "time", "what you hold of it ends before the work may be done"
    return "price", _doubt(allowed.tolist(), found, catalog, markets)


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
    if groups == ["held"]:
        return "you hold none of it"
    named = [g.replace("_", "-") for g in groups if g in ("on_demand", "spot")]
    return f"no price on {' or '.join(named)}" if named else "no price for a commitment"
