"""Machines that are named: where they are sold, the cheapest first. Nothing is estimated.

How long the work takes nobody knows, so a plan's hours and its cost are the most that they come to
before its machines are stopped (`Plan.at_most`).
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import TYPE_CHECKING, Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import Micros
from tradewind.catalog import capacity
from tradewind.catalog import query as queries
from tradewind.catalog.account import rows_of
from tradewind.catalog.query import NOTHING, Query
from tradewind.estimate import hardware
from tradewind.model.machines import ASSUMED, HARD_STOP_S, Machines
from tradewind.model.plan import Plan, Plans, weighed_cost
from tradewind.planning import finish
from tradewind.planning.goods import MODES, SPOT, allowed_modes, goods, market_of
from tradewind.policy import cadence

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.model import Observation, Workload

SHOWN = 8
_SAFE = 4
"""So many of the cheapest on demand are among the plans, for when no spot is to be had."""
_WEIGHING = ("accelerators", "max_nodes", "max_accelerators", "confidence", "carbon", "commit")
"""Limits of a choice or of an estimate, of which there is none here."""
_DEAR = 2.0
"""Nobody who wants the cheapest falls back on what is on demand at more than so many times the
cheapest of that: it would only raise what a run may cost at most."""


@dataclass(frozen=True, slots=True)
class _Place:
    row: int
    prices: dict[str, float]
    """Micro-dollars an hour of one machine, by how it is bought; the cheapest first."""
    had: float
    weighed: float

    def cheapest(self, mode: str) -> float:
        return self.prices.get(mode, inf)


def plans(
    workload: Workload,
    *,
    catalog: Catalog,
    now: datetime | None = None,
    top: int = SHOWN,
) -> Plans:
    """NotFound where nobody sells such machines, or none that the limits and the account allow."""
    now = now or clock.now()
    wanted = workload.machines
    assert wanted is not None
    for name in _WEIGHING:
        if getattr(workload.limits, name) is not None:
            raise InvalidValue(
                f"limits.{name} is for machines that a plan chooses, and this workload names them",
                hint=f"leave it out, or gpus, type, nodes and cpus; {name} goes with train or work",
            )
    deadline = workload.limits.deadline_at(now)
    left_s = (deadline - now).total_seconds() if deadline else inf
    if left_s <= 0:
        raise InvalidValue(f"the deadline, {deadline}, is past", hint="give a later one")
    rows = _sold(wanted, catalog)
    places = _Shelf(workload, wanted, catalog, now).places(rows)
    order = sorted(places, key=lambda each: (each.weighed, each.row))
    chosen = order[:top]
    safe = sorted(order, key=lambda each: (each.cheapest("on_demand"), each.row))[:_SAFE]
    chosen += [each for each in safe if each not in chosen and "on_demand" in each.prices]
    made = tuple(_plan(workload, wanted, catalog, each, left_s) for each in chosen)
    dates = sorted({plan.price_as_of for plan in made if plan.price_as_of})
    return Plans(
        workload=workload,
        made_at=now,
        deadline_hours=None if left_s == inf else left_s / 3600,
        best=made[0],
        plans=made,
        front=(),
        others=(),
        losers=(),
        later=(),
        relaxations=(),
        candidates=len(places),
        layouts=0,
        offers=len(rows),
        notes=("the machines are named: nothing is estimated, and only prices are compared",),
        prices_from=dates[0] if dates else "",
        prices_until=dates[-1] if dates else "",
    )


def longest_s(workload: Workload, left_s: float) -> float:
    """How long its machines may be up: as it says itself, else until the deadline, else a day."""
    said = workload.run.max_duration_s if workload.run else None
    return said or (left_s if left_s < inf else HARD_STOP_S)


def _sold(wanted: Machines, catalog: Catalog) -> Sequence[int]:
    """Rows of the catalog with such machines, whoever sells them and for how much."""
    table = catalog.table
    gpus = frozenset(wanted.gpus) if wanted.gpus else frozenset() if not wanted.type else None
    kind = queries.literal(wanted.type) if wanted.type else None
    count = float(wanted.count) if wanted.count and wanted.gpus else None
    rows = queries.matching(table, Query(accelerators=gpus, count=count, instance_type=kind))
    if not rows and wanted.type:
        raise _no_type(wanted, catalog)
    if not rows:
        any_count = queries.matching(table, Query(accelerators=gpus))
        counts = sorted({table.columns["accelerator_count"][row] for row in any_count})
        sold = ", ".join(f"{count:g}" for count in counts)
        raise NotFound(
            f"nobody sells {wanted.words}",
            hint=f"there are machines with {sold} of them; `nodes` takes several machines",
        )
    least_gb = (wanted.ram_bytes or 0) / 1e9
    large = [
        row
        for row in rows
        if (table.columns["vcpus"][row] or 0) >= (wanted.cpus or 0)
        and (table.columns["memory_gb"][row] or 0) >= least_gb
    ]
    if not large:
        most = max(table.columns["vcpus"][row] or 0 for row in rows)
        ram = max(table.columns["memory_gb"][row] or 0 for row in rows)
        raise NotFound(
            f"nobody sells {wanted.words}",
            hint=f"the largest of them have {most:g} CPUs and {ram:,.0f} GB of memory",
        )
    return large


def _no_type(wanted: Machines, catalog: Catalog) -> NotFound:
    table = catalog.table
    name = str(wanted.type)
    same = queries.matching(table, Query(instance_type=queries.literal(name)))
    if same:
        has = table.columns
        real = f"{has['accelerator_count'][same[0]]:g}× {has['accelerator'][same[0]] or 'GPU'}"
        return NotFound(
            f"{name} has {real}, and {wanted.words} is asked for", hint="leave one of them out"
        )
    names = {str(each).lower(): str(each) for each in table.columns["instance_type"].values}
    close = [names[each] for each in difflib.get_close_matches(name.lower(), names, n=3)]
    return NotFound(
        f"no instance type is called {name!r}",
        hint=f"did you mean {' or '.join(close)}?" if close else "`tradewind offers` lists them",
        choices=close,
    )


class _Shelf:
    """Prices, quotas and chances of the rows that would do."""

    def __init__(
        self, workload: Workload, wanted: Machines, catalog: Catalog, now: datetime
    ) -> None:
        self.limits, self.wanted, self.catalog = workload.limits, wanted, catalog
        self._today, self._now = now.date(), now
        self._answers: Mapping[str, Mapping[int, Sequence[Observation]]] = {}
        self._at: dict[int, int] = {}
        if catalog.observations:
            shelf = goods(catalog, workload.limits, now)
            self._answers = shelf.answers
            self._at = {row: at for at, row in enumerate(shelf.rows.tolist())}

    def places(self, rows: Sequence[int]) -> list[_Place]:
        """The cheapest zone of each type in each region."""
        prices = {
            mode: queries.usable_prices(self.catalog.table, mode, Query(), self._today)
            for mode in allowed_modes(self.limits)
        }
        most = self._most()
        found: dict[tuple[str, str, str], _Place] = {}
        why: Counter[str] = Counter()
        for row in rows:
            provider, region, kind = self._name(row)
            if not self.limits.allows(provider, region):
                why["outside your limits"] += 1
                continue
            mine = {mode: each[row] for mode, each in prices.items() if each[row] != NOTHING}
            if not mine:
                why["without a price to trust on the markets that are allowed"] += 1
                continue
            mine = {m: p for m, p in mine.items() if most(row, m) >= self.wanted.nodes}
            if not mine:
                why["over your quota"] += 1
                continue
            place = self._place(row, mine)
            other = found.get((provider, region, kind))
            if other is None or place.weighed < other.weighed:
                found[provider, region, kind] = place
        if not found:
            counted = ", ".join(f"{number:,} {words}" for words, number in why.most_common())
            raise NotFound(
                f"{self.wanted.words}: none of {len(rows):,} offers is left: {counted}",
                hint="limits (providers, regions, markets) and account.yaml decide it;"
                " `tradewind offers` shows all",
            )
        return self._sensible(list(found.values()))

    def _sensible(self, places: list[_Place]) -> list[_Place]:
        most = _DEAR * min((each.cheapest("on_demand") for each in places), default=inf)
        kept = []
        for each in places:
            prices = {m: p for m, p in each.prices.items() if m != "on_demand" or p <= most}
            if prices:
                kept.append(replace(each, prices=prices))
        return kept

    def _name(self, row: int) -> tuple[str, str, str]:
        columns = self.catalog.table.columns
        return columns["provider"][row], columns["region"][row], columns["instance_type"][row]

    def _place(self, row: int, prices: Mapping[str, float]) -> _Place:
        """At its cheapest, with what refusals may cost."""
        order = sorted(prices, key=lambda mode: (prices[mode], mode))
        had = max(self._had(row, mode) for mode in order)
        first = self._had(row, order[0])
        return _Place(
            row,
            {mode: prices[mode] for mode in order},
            had,
            float(weighed_cost(prices[order[0]], first)),
        )

    def _had(self, row: int, mode: str) -> float:
        """How likely the machines are there when they are asked for."""
        if mode == "held" or self.catalog.table.own[row]:
            return 1.0
        provider, region, kind = self._name(row)
        assumed = self.limits.assumed(provider, region, kind)
        if assumed is not None:
            return assumed
        columns, priors = self.catalog.table.columns, capacity.priors()
        market = "spot" if mode == "spot" else "on_demand"
        each = columns["accelerator_count"][row] or 1
        one = priors.doubts[priors.kind(provider, kind), market]
        one *= priors.scarcity(columns["accelerator"][row] or "")
        seen = [
            capacity.Seen(
                one * priors.size(each, answer.machines),
                answer.available,
                capacity.weight(answer.expires_at, self._now),
            )
            for answer in self._answers.get(mode, {}).get(self._at.get(row, -1), ())
        ]
        return float(capacity.sharpened(one * priors.size(each, self.wanted.nodes), seen))

    def _most(self) -> Any:
        """How many machines of a row the account may hold at once, by how they are bought."""
        account, table = self.catalog.account, self.catalog.table
        bounds: list[tuple[set[int], str | None, int | None, int | None]] = []
        for quota in account.quotas if account else ():
            rows = set(rows_of(table, quota.scope))
            bounds.append((rows, quota.market, quota.machines, quota.accelerators))

        def most(row: int, mode: str) -> float:
            each = table.columns["accelerator_count"][row] or 0
            found = inf
            for rows, market, machines, accelerators in bounds:
                if row in rows and mode != "held" and market in (None, market_of(mode)):
                    many = machines if machines is not None else inf
                    if machines is None and each:
                        many = (accelerators or 0) // each
                    found = min(found, many)
            return found

        return most


def _plan(
    workload: Workload, wanted: Machines, catalog: Catalog, place: _Place, left_s: float
) -> Plan:
    columns = catalog.table.columns
    row, run = place.row, workload.run
    mode = next(iter(place.prices))
    own = bool(catalog.table.own[row])
    boot_s = finish.OWN_BOOT_S if own else finish.BOOT_S
    setup_s = (run.setup_s or (finish.SETUP_S if run.setup else 0.0)) if run else 0.0
    most_s = longest_s(workload, left_s)
    size = workload.checkpoint.size_bytes or 0
    markets = tuple(dict.fromkeys(market_of(each) for each in place.prices))
    hour = {market_of(each): Micros(round(price)) for each, price in place.prices.items()}
    dearest = max(hour.values()) * wanted.nodes
    cost = Micros(round(dearest * most_s / 3600))
    stall_s = float(finish.stall_s(size, wanted.nodes))
    every_s = workload.checkpoint.every_s or cadence.every_s(
        stall_s, 0.0, machines=wanted.nodes, spot=mode == MODES[SPOT]
    )
    name = columns["accelerator"][row] or ""
    chip = catalog.accelerators.get(name)
    priced = catalog.table.prices[mode]
    provider = columns["provider"][row]
    return Plan(
        provider=provider,
        region=columns["region"][row],
        zone=columns["zone"][row],
        instance_type=columns["instance_type"][row],
        accelerator=name,
        accelerator_count=int(columns["accelerator_count"][row] or 0),
        nodes=wanted.nodes,
        own=own,
        markets=markets,
        layout={},
        layout_words="",
        precision="",
        stack="",
        samples_per_s=0.0,
        memory_gb=0.0,
        capacity_gb=hardware.capacity_gb(chip) if chip else 0.0,
        hours=most_s / 3600,
        hours_low=0.0,
        hours_high=most_s / 3600,
        cost=cost,
        cost_low=Micros(0),
        cost_high=cost,
        chance=1.0 if left_s == inf else 0.0,
        work_hours=(most_s if left_s == inf else min(ASSUMED * left_s, most_s)) / 3600,
        startup_hours=(boot_s + setup_s) / 3600,
        on_demand_hours=0.0,
        spot_hours=0.0,
        interruptions=0.0,
        checkpoint_every_s=round(every_s),
        checkpoint_bytes=size,
        costs={},
        price_hour=dict(hour),
        price_as_of=priced.as_of[row],
        price_source=priced.source[row],
        band="",
        had=place.had,
        had_by="yours" if own else "prior",
        at_most=True,
    )
