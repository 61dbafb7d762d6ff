"""What can be bought, as columns: the catalog's rows with the account's prices and limits. Pure.

Machines of one kind (accelerator, how many, network) do the work equally fast wherever they stand,
so speed is asked for by kind and prices are joined after.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, NamedTuple

from tradewind.catalog import query as queries
from tradewind.catalog.account import rows_of
from tradewind.catalog.query import Query
from tradewind.model import Limits

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from tradewind.catalog import Catalog

    Column = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Numbers = NDArray[np.int64]

MODES = ("on_demand", "spot", "held")  # how machines are bought; `held` is reserved already
UNBOUNDED = 10**6  # machines
_MARKETPLACES = {"vast"}  # where an offer is one machine of somebody's, with no network to others


class Kind(NamedTuple):
    accelerator: str
    each: int  # accelerators in a machine
    network_gbps: float  # of the whole machine; 0 where it is not known


@dataclass(slots=True)
class Goods:
    """One entry a row of the catalog that has accelerators."""

    rows: Numbers
    kind: Numbers  # into `kinds`
    kinds: list[Kind]
    place: Numbers  # into `places`
    places: list[tuple[str, str]]  # provider, region
    types: Numbers  # into `names`: one number for a provider's type of machine
    names: list[tuple[str, str]]  # provider, instance type
    prices: dict[str, Column]  # micro-dollars an hour, NaN where there is none to trust
    most: dict[str, Column]  # machines at once
    in_place: Flags  # where the limits allow it
    is_wanted: Flags  # of an accelerator that they allow
    own: Flags
    held_h: Column  # until what is held ends; infinite where that is not told
    seen: Column  # of spot of late: 1 it could be had, -1 it could not, 0 nobody looked


def goods(catalog: Catalog, limits: Limits, now: datetime) -> Goods:
    import numpy as np

    table, today = catalog.table, now.date()
    key = ("plan", today)
    if key not in table.memo:
        table.memo[key] = _columns(catalog, today)
    base: dict[str, Any] = table.memo[key]
    allowed = np.array([limits.allows(*place) for place in base["places"]])
    wanted = np.array([limits.allows_accelerator(kind.accelerator) for kind in base["kinds"]])
    return Goods(
        **base,
        in_place=allowed[base["place"]],
        is_wanted=wanted[base["kind"]],
        held_h=_held_hours(catalog, base["rows"], now),
    )


def _columns(catalog: Catalog, today: date) -> dict[str, Any]:
    import numpy as np

    table = catalog.table
    names = ("provider", "region", "instance_type", "accelerator", "accelerator_count")
    text = {name: table.columns[name] for name in (*names, "network_gbps")}
    counts = np.array([float(n or 0) for n in text["accelerator_count"].values])
    each = counts[np.asarray(text["accelerator_count"].codes)]
    known = np.array([name in catalog.accelerators for name in text["accelerator"].values])
    rows = np.flatnonzero(known[np.asarray(text["accelerator"].codes)] & (each > 0))
    kinds, kind = _distinct(text, ("accelerator", "accelerator_count", "network_gbps"), rows)
    places, place = _distinct(text, ("provider", "region"), rows)
    types, of_type = _distinct(text, ("provider", "instance_type"), rows)
    query = Query()
    prices = {}
    for group in MODES:
        found = np.array(queries.usable_prices(table, group, query, today))[rows]
        prices[group] = np.where(np.isfinite(found), found, np.nan)
    return {
        "rows": rows,
        "kind": kind,
        "kinds": [Kind(name, count, network or 0.0) for name, count, network in kinds],
        "place": place,
        "places": places,
        "types": of_type,
        "names": types,
        "prices": prices,
        "most": _most(catalog, rows, each[rows], today),
        "own": np.array(table.own)[rows],
        "seen": _seen(catalog, rows),
    }


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
    if catalog.observations and catalog.observations.latest:
        for position, row in enumerate(rows.tolist()):
            seen = catalog.observations.of(catalog.table.offer(row), "spot")
            if seen is not None:
                found[position] = 1.0 if seen.available else -1.0
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
    found = [tuple(columns[name][int(rows[i])] for name in names) for i in first]
    return found, where


def _most(catalog: Catalog, rows: Numbers, each: Column, today: date) -> dict[str, Column]:
    """Machines that may be held at once: by quotas, reservations, and how many one owns."""
    import numpy as np

    providers = catalog.table.columns["provider"]
    alone = np.array([name in _MARKETPLACES for name in providers.values])
    single = alone[np.asarray(providers.codes)[rows]]
    found = {group: np.where(single, 1.0, float(UNBOUNDED)) for group in MODES}
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
        for group in ("on_demand", "spot"):
            if quota.market in (None, group):
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
