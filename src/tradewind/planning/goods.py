"""What can be bought, as columns: the catalog's rows with the account's prices and limits. Pure.

Machines of one kind (accelerator, how many, network) do the work equally fast wherever they stand,
so speed is asked for by kind and prices are joined after. How likely they are to be had is a column
too: `catalog/capacity.py` has the rule, and what was seen of late sharpens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tradewind.catalog import capacity, clusters, driven, hazards, places
from tradewind.catalog import query as queries
from tradewind.catalog.account import rows_of
from tradewind.catalog.query import Query
from tradewind.catalog.table import Coded
from tradewind.model import Limits

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from tradewind.catalog import Catalog
    from tradewind.model import Observation
    from tradewind.model.sustained import Steps

    Column = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Numbers = NDArray[np.int64]

# How machines are bought: `held` is reserved already, the last two would be a new commitment.
MODES = ("on_demand", "spot", "held", "reserved_1y", "reserved_3y")
ON_DEMAND, SPOT, HELD = (MODES.index(name) for name in ("on_demand", "spot", "held"))
COMMITTED = MODES.index("reserved_1y")  # this and all after it
UNBOUNDED = 10**6  # machines


def market_of(mode: str) -> str:
    return mode if mode in ("on_demand", "spot") else "reserved"


def commitment_of(mode: str) -> str:
    """`1y` or `3y`; empty where there is none to make."""
    return mode.partition("_")[2] if mode.startswith("reserved_") else ""


def allowed_modes(limits: Limits) -> list[str]:
    """A commitment competes when it is asked for, and then whatever markets are named; a shorter
    one than was asked for, too."""
    found = [m for m in MODES[:COMMITTED] if limits.allows_market(market_of(m))]
    return found + [m for m in MODES[COMMITTED:] if commitment_of(m) <= (limits.commit or "")]


class Kind(NamedTuple):
    accelerator: str
    each: int  # accelerators in a machine
    network_gbps: float  # of the whole machine to others; 0 where none are sold together


@dataclass(slots=True)
class Goods:
    """One entry a row of the catalog that has accelerators."""

    rows: Numbers
    rank: Numbers  # by name, so that of two alike it does not matter which stands first
    kind: Numbers  # into `kinds`
    kinds: list[Kind]
    place: Numbers  # into `places`
    places: list[tuple[str, str]]  # provider, region
    types: Numbers  # into `names`: one number for a provider's type of machine
    names: list[tuple[str, str]]  # provider, instance type
    prices: dict[str, Column]  # micro-dollars an hour, NaN where there is none to trust
    most: dict[str, Column]  # machines at once
    in_place: Flags  # where the limits allow it
    is_wanted: Flags  # of an accelerator that they allow, and that a run can drive unless named
    driven: Flags  # by the image that a run's machines start from, as far as is known
    own: Flags
    held_h: Column  # until what is held ends; infinite where that is not told
    seen: Column  # of spot of late: 1 it could be had, -1 it could not, 0 nobody looked
    doubts: dict[str, Column]  # whether one accelerator can be had, see `catalog/capacity.py`
    assumed: Column  # the chance that the user gave instead; NaN where none
    answers: dict[str, dict[int, list[Observation]]]  # what was seen of late, by mode and entry
    hazards: Column  # how often spot is taken, by what is usual; see `catalog/hazards.py`
    steps: list[Steps]  # of prices that fall with the time in a month; the first is none
    steps_of: Numbers  # into `steps`, of the price on demand
    charged: dict[Any, Any]  # what `planning/extras.py` has looked up for these rows
    links: list[clusters.Link]  # the network between machines, by entry of `link_of`
    link_of: Numbers

    @property
    def each(self) -> Column:
        """Accelerators in a machine."""
        import numpy as np

        found: Column = np.array([float(kind.each) for kind in self.kinds])[self.kind]
        return found


def goods(catalog: Catalog, limits: Limits, now: datetime) -> Goods:
    import numpy as np

    table, today = catalog.table, now.date()
    key = ("plan", today)
    if key not in table.memo:
        table.memo[key] = _columns(catalog, today)
    base: dict[str, Any] = table.memo[key]
    allowed = np.array([places.allows(limits, *place) for place in base["places"]])
    answers = _answers(catalog, base["rows"])
    wanted = np.array([limits.allows_accelerator(kind.accelerator) for kind in base["kinds"]])
    # What no run can drive competes only where it is named.
    ours = np.full(len(base["rows"]), True) if limits.accelerators else base["driven"]
    return Goods(
        **(base | {"hazards": _hazards(base, answers.get("spot", {}))}),
        in_place=allowed[base["place"]],
        is_wanted=wanted[base["kind"]] & ours,
        held_h=_held_hours(catalog, base["rows"], now),
        seen=_seen(catalog, base["rows"]),
        assumed=_assumed(base, limits),
        answers=answers,
    )


def _columns(catalog: Catalog, today: date) -> dict[str, Any]:
    import numpy as np

    table = catalog.table
    names = ("provider", "region", "instance_type", "accelerator", "accelerator_count")
    text: dict[str, Any] = {name: table.columns[name] for name in (*names, "network_gbps")}
    counts = np.array([float(n or 0) for n in text["accelerator_count"].values])
    each = counts[np.asarray(text["accelerator_count"].codes)]
    known = np.array([name in catalog.accelerators for name in text["accelerator"].values])
    rows = np.flatnonzero(known[np.asarray(text["accelerator"].codes)] & (each > 0))
    own = np.array(table.own)
    links, link_of = _links(text, own, rows)
    between = np.zeros(len(table), dtype=np.int64)
    between[rows] = link_of
    text["between"] = Coded([link.gbps for link in links], between.tolist())
    kinds, kind = _distinct(text, ("accelerator", "accelerator_count", "between"), rows)
    places, place = _distinct(text, ("provider", "region"), rows)
    types, of_type = _distinct(text, ("provider", "instance_type"), rows)
    query = Query()
    steps, steps_of = _steps(catalog, rows, today)
    prices = {}
    for group in MODES:
        found = np.array(queries.usable_prices(table, group, query, today))[rows]
        prices[group] = np.where(np.isfinite(found), found, np.nan)
    return {
        "rows": rows,
        "rank": _rank(table.columns, ("provider", "region", "zone", "instance_type"), rows),
        "kind": kind,
        "kinds": [Kind(*one) for one in kinds],
        "place": place,
        "places": places,
        "types": of_type,
        "names": types,
        "prices": prices,
        "most": _most(catalog, rows, each[rows], today),
        "own": own[rows],
        "driven": _driven(catalog, types, of_type, [one[0] for one in kinds], kind) | own[rows],
        "doubts": _doubts(types, of_type, [one[0] for one in kinds], kind),
        "hazards": _usual_hazards(types, of_type, each[rows]),
        "links": links,
        "link_of": link_of,
        "steps": steps,
        "steps_of": steps_of,
        "charged": {},
    }


def _steps(catalog: Catalog, rows: Numbers, today: date) -> tuple[list[Steps], Numbers]:
    """The account's sustained-use discounts, and which one each row has."""
    import numpy as np

    given = catalog.account.sustained(catalog.table, today) if catalog.account else {}
    known: dict[Steps, int] = {(): 0}
    for steps in given.values():
        known.setdefault(steps, len(known))
    found = np.array([known[given.get(row, ())] for row in rows.tolist()], dtype=np.int64)
    return list(known), found


def _links(text: dict[str, Any], own: Flags, rows: Numbers) -> tuple[list[clusters.Link], Numbers]:
    """The networks between machines, and which one each row has."""
    import numpy as np

    found, where = _distinct(text, ("provider", "instance_type", "network_gbps"), rows)
    mine = np.zeros(len(found), dtype=bool)
    mine[where] = own[rows]
    links = [clusters.link(*one, own=bool(mine[i])) for i, one in enumerate(found)]
    return links, where


def _driven(
    catalog: Catalog,
    names: Sequence[tuple[str, str]],
    of_type: Numbers,
    accelerators: Sequence[str],
    kind: Numbers,
) -> Flags:
    import numpy as np

    code = of_type * len(accelerators) + kind
    different, where = np.unique(code, return_inverse=True)
    pairs = [divmod(one, len(accelerators)) for one in different.tolist()]
    found = [
        not driven.undriven(names[n][0], chip.name, chip.vendor)
        for n, k in pairs
        for chip in (catalog.accelerators[accelerators[k]],)
    ]
    return np.array(found, dtype=bool)[where]


def _doubts(
    names: Sequence[tuple[str, str]], of_type: Numbers, accelerators: Sequence[str], kind: Numbers
) -> dict[str, Column]:
    """By mode. What is held is there; a commitment buys machines that are sold on demand."""
    import numpy as np

    priors = capacity.priors()
    kinds = [priors.kind(*name) for name in names]
    scarce = {name: priors.scarcity(name) for name in set(accelerators)}
    scarcity = np.array([scarce[name] for name in accelerators])[kind]

    def of(market: str) -> Column:
        one = {each: priors.doubts[each, market] for each in set(kinds)}
        found: Column = np.array([one[each] for each in kinds])[of_type] * scarcity
        return found

    on_demand = of("on_demand")
    found = dict.fromkeys(MODES, on_demand)
    return found | {"spot": of("spot"), "held": np.zeros(len(kind))}


def _usual_hazards(names: Sequence[tuple[str, str]], of_type: Numbers, each: Column) -> Column:
    import numpy as np

    index: dict[str, int] = {}
    numbers = np.array([index.setdefault(provider, len(index)) for provider, _ in names])[of_type]
    sizes, size = np.unique(each, return_inverse=True)
    different, where = np.unique(numbers * len(sizes) + size, return_inverse=True)
    providers = list(index)
    factors = [
        hazards.hazard(providers[one // len(sizes)], float(sizes[one % len(sizes)])).factor
        for one in different.tolist()
    ]
    return np.array(factors)[where]


def _hazards(base: dict[str, Any], seen: dict[int, list[Observation]]) -> Column:

    names, kinds = base["names"], base["kinds"]
    found: Column = base["hazards"].copy()
    for position, several in seen.items():
        provider, _ = names[base["types"][position]]
        each = kinds[base["kind"][position]].each
        found[position] = hazards.hazard(provider, each, several).factor
    return found


def _assumed(base: dict[str, Any], limits: Limits) -> Column:
    import numpy as np

    found = np.full(len(base["rows"]), np.nan)
    if limits.assume_capacity is None:
        return found
    places, names = base["places"], base["names"]
    code = base["place"] * len(names) + base["types"]
    different, where = np.unique(code, return_inverse=True)
    told = []
    for one in different.tolist():
        (provider, region), (_, name) = places[one // len(names)], names[one % len(names)]
        share = limits.assumed(provider, region, name)
        told.append(np.nan if share is None else share)
    return np.array(told)[where]


def _held_hours(catalog: Catalog, rows: Numbers, now: datetime) -> Column:
    """A reservation lasts until the end of its last day."""
    import numpy as np

    found = np.full(len(rows), np.inf)
    for reservation in catalog.account.reservations if catalog.account else ():
        if reservation.until is not None and reservation.lasts(now.date()):
            end = datetime.combine(reservation.until, time(), now.tzinfo) + timedelta(days=1)
            at = np.isin(rows, rows_of(catalog.table, reservation.scope))
            found[at] = np.minimum(found[at], (end - now).total_seconds() / 3600)
    return found


def _seen(catalog: Catalog, rows: Numbers) -> Column:
    import numpy as np

    found = np.zeros(len(rows))
    if catalog.observations:
        latest = sorted(catalog.observations.latest.values(), key=lambda one: one.seen_at)
        for one in latest:
            if one.market == "spot":
                found[_entries(catalog, rows, one)] = 1.0 if one.available else -1.0
    return found


def _answers(catalog: Catalog, rows: Numbers) -> dict[str, dict[int, list[Observation]]]:
    found: dict[str, dict[int, list[Observation]]] = {}
    for several in catalog.observations.recent.values() if catalog.observations else ():
        for position in _entries(catalog, rows, several[0]).tolist():
            for mode in MODES:
                if mode == several[0].market or (
                    commitment_of(mode) and several[0].market == "on_demand"
                ):
                    found.setdefault(mode, {}).setdefault(position, []).extend(several)
    return found


def _entries(catalog: Catalog, rows: Numbers, seen: Observation) -> Numbers:
    """The entries that an observation speaks of: a zone's, or those of a whole region."""
    import numpy as np

    said = {"provider": seen.provider, "region": seen.region, "instance_type": seen.instance_type}
    if seen.zone:
        said["zone"] = seen.zone
    here = np.full(len(rows), True)
    for name, value in said.items():
        column = catalog.table.columns[name]
        if value not in column.values:
            return np.zeros(0, dtype=np.int64)
        here &= np.asarray(column.codes)[rows] == column.values.index(value)
    return np.flatnonzero(here)


def _rank(columns: Any, names: tuple[str, ...], rows: Numbers) -> Numbers:
    """The place of each row among all, by these columns."""
    import numpy as np

    keys = []
    for name in reversed(names):
        values = columns[name].values
        place = np.empty(len(values), dtype=np.int64)
        place[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
        keys.append(place[np.asarray(columns[name].codes)[rows]])
    found = np.empty(len(rows), dtype=np.int64)
    found[np.lexsort(keys)] = np.arange(len(rows))
    return found


def _distinct(
    columns: dict[str, Any], names: tuple[str, ...], rows: Numbers
) -> tuple[list[Any], Numbers]:
    """The different combinations of these columns, and which one each row has."""
    import numpy as np

    code = np.zeros(len(rows), dtype=np.int64)
    for name in names:
        code = code * (len(columns[name].values) + 1) + np.asarray(columns[name].codes)[rows]
    _, first, where = np.unique(code, return_index=True, return_inverse=True)
    listed = []
    for name in names:
        values = columns[name].values
        codes = np.asarray(columns[name].codes)[rows[first]].tolist()
        listed.append([values[one] for one in codes])
    return list(zip(*listed, strict=True)), where


def _most(catalog: Catalog, rows: Numbers, each: Column, today: date) -> dict[str, Column]:
    """Machines that may be held at once: by quotas, reservations, and how many one owns."""
    import numpy as np

    found = {group: np.full(len(rows), float(UNBOUNDED)) for group in MODES}
    account = catalog.account
    if account is None:
        return found
    table = catalog.table
    where = np.full(len(table), -1)
    where[rows] = np.arange(len(rows))

    def least(group: str, at: Numbers, number: Any) -> None:
        found[group][at] = np.minimum(found[group][at], number)

    for quota in account.quotas:
        at = where[np.array(rows_of(table, quota.scope), dtype=np.int64)]
        at = at[at >= 0]
        number = quota.machines
        most = np.full(len(at), float(number)) if number is not None else None
        if most is None:
            most = np.floor((quota.accelerators or 0) / each[at])
        for group in MODES:
            if group != "held" and quota.market in (None, market_of(group)):
                least(group, at, most)
    for reservation in account.reservations:
        if reservation.lasts(today):
            at = where[np.array(rows_of(table, reservation.scope), dtype=np.int64)]
            least("held", at[at >= 0], reservation.machines)
    first_own = len(table) - len(account.offers)
    for number, offer in enumerate(account.offers):
        at = where[[first_own + number]]
        for group in MODES:
            least(group, at[at >= 0], offer.get("machines") or 1)
    return found
