"""Why a price is not to be trusted.

A catalog gathered from many sources holds zeros, placeholders and typing errors, and a search for
the cheapest finds exactly those. Each price is judged here against the others; a doubtful one is
kept, marked with the reason, and left out of choices. Age is judged when the catalog is asked
(`query.py`), because it changes while the file does not.

A mark reads `kind: reason`. The kinds:
    zero         nothing is sold for nothing
    low          far under what the others ask for that accelerator, and nobody else asks as little
    high         far over it, the host's share allowed for
    spot-dear    spot that is not below on-demand is no discount
    placeholder  the source says that the figure stands in for another kind of price
    retired      the provider no longer sells the type
    undated      no date, so no age
    missing      no price on any market
    stale        too old (never stored)
    future       dated after today (never stored)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tradewind.base.units import format_money
from tradewind.catalog.table import PRICE_GROUPS, OfferTable, Row

if TYPE_CHECKING:
    from tradewind.model import Accelerator, InstanceType

# In words, for a sentence like “3 stale”.
KINDS = {
    "stale": "stale",
    "retired": "no longer sold",
    "zero": "priced at zero",
    "missing": "without any price",
    "low": "absurdly cheap",
    "high": "absurdly dear",
    "spot-dear": "spot not below on-demand",
    "placeholder": "with a placeholder price",
    "undated": "undated",
    "future": "dated in the future",
    "quota": "over your quota",
}
# No market has sold a dense petaflop-hour for less, spot included: the lowest in the data is $0.29.
FLOOR_MICROS_PER_PFLOP_HOUR = 100_000
# Under this share of the providers' median (spot truly swings more) …
LOW_FACTOR = {"spot": 8}
LOW_FACTOR_ELSE = 5
NEAR = 2  # … and no two other providers within a factor of two
HIGH_FACTOR = 8
# The host's share of a price, so that one T4 in a 64-core machine is not "absurdly dear".
HOST_MICROS_PER_VCPU_HOUR = 50_000
# Words by which a source owns up that the figure is not what its column says.
PLACEHOLDERS = {
    "on_demand": ("dws calendar price", "no plain on-demand", "placeholder"),
    "spot": ("auction reserve price", "placeholder"),
}


def judge(rows: Sequence[Row], accelerators: Mapping[str, Accelerator]) -> None:
    """Writes `<group>_mark` into every row but the user's own: those are theirs to price."""
    for group in PRICE_GROUPS:
        peers = _Peers(rows, group)
        for row in rows:
            row.pop(f"{group}_mark", None)  # of an earlier judgement
            if row.get(group) is None or row.get("own"):
                continue
            row[f"{group}_mark"] = (
                _retired(row)
                or _zero(row, group)
                or _placeholder(row, group)
                or _spot_dear(row, group)
                or _floor(row, group, accelerators)
                or peers.outlier(row)
                or ("" if row.get(f"{group}_as_of") else "undated: the source gives no date")
            )
    for row in rows:
        if all(row.get(group) is None for group in PRICE_GROUPS):
            row["on_demand_mark"] = "missing: no price on any market"


def _retired(row: Row) -> str:
    return "retired: the provider no longer sells this type" if row.get("retired") else ""


def _zero(row: Row, group: str) -> str:
    if row[group] > 0:
        return ""
    return f"zero: the price is {format_money(row[group])}"


def _placeholder(row: Row, group: str) -> str:
    source = row.get(f"{group}_source", "").lower()
    for word in PLACEHOLDERS.get(group, ()):
        if word in source:
            return f"placeholder: the source says “{word}”"
    return ""


def _spot_dear(row: Row, group: str) -> str:
    on_demand = row.get("on_demand")
    if group != "spot" or not on_demand or row["spot"] < on_demand:
        return ""
    return (
        f"spot-dear: spot {format_money(row['spot'])} is not below "
        f"on-demand {format_money(on_demand)}"
    )


def _floor(row: Row, group: str, accelerators: Mapping[str, Accelerator]) -> str:
    accelerator = accelerators.get(row["accelerator"])
    pflops = (accelerator.training_tflops or 0) / 1000 if accelerator else 0
    pflops *= row["accelerator_count"] or 0
    if not pflops or row[group] >= FLOOR_MICROS_PER_PFLOP_HOUR * pflops:
        return ""
    return (
        f"low: {format_money(round(row[group] / pflops), digits=3)} per PFLOP-hour is under any "
        f"market's price ({format_money(FLOOR_MICROS_PER_PFLOP_HOUR)})"
    )


class _Peers:
    """What each provider asks for each accelerator, every provider counted once.

    By rows, AWS and its zones would outvote everybody and make honest small clouds look absurd.
    """

    def __init__(self, rows: Sequence[Row], group: str) -> None:
        self._group = group
        asked: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            per_accelerator = self._per_accelerator(row)
            if per_accelerator and not row.get("retired"):
                asked[row["accelerator"]][row["provider"]].append(per_accelerator)
        from statistics import median  # slow to import, and only judging needs it

        self._asked = asked
        self._middle = {
            name: median(median(prices) for prices in providers.values())
            for name, providers in asked.items()
        }

    def _per_accelerator(self, row: Row) -> float | None:
        price, count = row.get(self._group), row["accelerator_count"]
        return price / count if price and price > 0 and count else None

    def outlier(self, row: Row) -> str:
        price = self._per_accelerator(row)
        middle = self._middle.get(row["accelerator"])
        if price is None or middle is None:
            return ""
        if price * LOW_FACTOR.get(self._group, LOW_FACTOR_ELSE) < middle and not self._corroborated(
            row, price
        ):
            return self._words("low", row, price, middle, f"1/{middle / price:.0f} of")
        if self._group == "spot" and row.get("on_demand"):
            return ""  # it is below on-demand, which has been judged
        host = HOST_MICROS_PER_VCPU_HOUR * (row.get("vcpus") or 0) / row["accelerator_count"]
        if price - host > middle * HIGH_FACTOR:
            return self._words("high", row, price, middle, f"{price / middle:.0f}×")
        return ""

    def _corroborated(self, row: Row, price: float) -> bool:
        others = [
            name
            for name, prices in self._asked[row["accelerator"]].items()
            if name != row["provider"]
            and any(price / NEAR <= other <= price * NEAR for other in prices)
        ]
        return len(others) >= 2

    def _words(self, kind: str, row: Row, price: float, middle: float, ratio: str) -> str:
        providers = len(self._asked[row["accelerator"]])
        whose = f"the median of {providers} providers" if providers > 1 else "its own median"
        return (
            f"{kind}: {format_money(round(price), digits=3)} per {row['accelerator']}-hour is "
            f"{ratio} {whose} ({format_money(round(middle), digits=2)})"
        )


def kind(mark: str) -> str:
    return mark.partition(":")[0]


def explain(mark: str) -> str:
    return mark.partition(": ")[2] or mark


def unpriced(table: OfferTable, types: Sequence[InstanceType]) -> list[InstanceType]:
    """Types that are known and sold, but for which no price is known anywhere."""
    providers, names = table.columns["provider"], table.columns["instance_type"]
    priced = {
        (providers[row], names[row])
        for columns in table.prices.values()
        for row, micros in enumerate(columns.micros)
        if micros is not None
    }
    return [t for t in types if t.status != "retired" and (t.provider, t.name) not in priced]


def posted_spot(table: OfferTable) -> list[str]:
    """Providers whose spot price is a fixed share of on-demand: a posted price, not a market's.

    Such a price is not wrong, so it is not marked; but it says nothing about capacity.
    """
    ratios: dict[str, list[float]] = defaultdict(list)
    for provider, on_demand, spot in zip(
        table.columns["provider"].codes,
        table.prices["on_demand"].micros,
        table.prices["spot"].micros,
        strict=True,
    ):
        if on_demand and spot:
            name = table.columns["provider"].values[provider]
            ratios[name].append(round(spot / on_demand, 3))
    notes = []
    for name, found in sorted(ratios.items()):
        usual, times = Counter(found).most_common(1)[0]
        if times >= 5 and times >= 0.4 * len(found):
            notes.append(
                f"{name}: {times} of {len(found)} spot prices are {usual:.1%} of on-demand to the "
                "digit: a posted price, no promise of capacity"
            )
    return notes
