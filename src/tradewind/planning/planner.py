"""From a workload to plans: search, choose, explain. What `tradewind.plan` and the command call
(api/planned.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime
from difflib import get_close_matches
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.base.units import Micros, format_hours, format_money
from tradewind.catalog import capacity, driven, hazards, places, ratecard
from tradewind.economics import carbon
from tradewind.estimate import hardware, models
from tradewind.estimate.constants import Constants, fitted
from tradewind.estimate.layouts import Layout
from tradewind.model import Workload
from tradewind.model.areas import SPELLED, countries
from tradewind.model.plan import Later, Plan, Plans, Relaxation, Surer
from tradewind.planning import choose, exact, finish, why
from tradewind.planning.asking import LAST_RESORT, Asking
from tradewind.planning.goods import MODES, Goods, commitment_of, goods, market_of
from tradewind.planning.moving import moving
from tradewind.planning.rates import Rates
from tradewind.planning.search import MOST_NODES, USUAL_NODES, Search, at_deadline, narrowed, search
from tradewind.planning.speeds import USUAL, Care
from tradewind.policy import cadence

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.catalog.clusters import Link
    from tradewind.estimate.columns import Model
    from tradewind.model import Accelerator, Limits
    from tradewind.planning.goods import Column
    from tradewind.planning.weigh import Candidates

SHOWN = 8
_WORTH_A_WORD = 0.01
_HARDLY = 0.5  # a chance of being in time that nobody would want
_CHANCES = (0.8, 0.9, 0.99)  # of keeping deadline and budget, whose price is told
_LAYOUT = tuple(field.name for field in fields(Layout))


class Planner:
    """One workload over one catalog at one moment."""

    def __init__(
        self,
        workload: Workload,
        catalog: Catalog,
        *,
        now: datetime,
        constants: Constants | None = None,
        rates: Rates | None = None,
        checked: bool = False,
    ) -> None:
        """`rates`: what is charged for beside machines; without them only data and checkpoints are,
        by the rate card. `checked`: regions of the workload are known to be, though nobody may sell
        anything there just now."""
        if workload.serve is not None:
            raise InvalidValue(
                "the workload is a model to be served, not work that ends",
                hint="tradewind plan FILE plans replicas for it; it cannot be run yet",
            )
        if workload.machines is not None:
            raise InvalidValue(
                "the workload names its machines (gpus, type or cpus), and not how long it takes:"
                " there is nothing to estimate",
                hint="`tradewind plan FILE` shows where they are cheapest, `run` runs it; a section"
                " train or work says how much is to be done",
            )
        self.workload, self.catalog, self.now = workload, catalog, now
        self.constants = constants or fitted()
        self.rates = rates or Rates(ratecard.card())
        self._checked = checked
        self.model = _model(workload)
        deadline = workload.limits.deadline_at(now)
        self.deadline_s = (deadline - now).total_seconds() if deadline else inf
        if self.deadline_s <= 0:
            raise InvalidValue(f"the deadline, {deadline}, is past", hint="give a later one")

    def plans(self, *, explain: bool = True, closer: bool = False, top: int = SHOWN) -> Plans:
        """`explain`: with losers and what other deadlines would cost; `closer`: with `others`."""
        workload = self.workload
        found = self.search()
        deadline_h = self.deadline_s / 3600
        right = self._kept(found)
        asking = self.asking(found)
        order, best = asking.order, asking.first
        few = choose.of_other_kinds(found.found, found.goods, order, top)
        few = choose.with_the_safe(found.found, found.goods, order, few)
        front = choose.front(found.found, right, deadline_h)
        others = (
            choose.for_a_closer_look(found.found, found.goods, right.deadline) if closer else []
        )
        dates = _dates(self.catalog, found, [*few, *front, *others])
        chosen = None if best is None else self.value(found, best)
        return Plans(
            workload=workload,
            made_at=self.now,
            deadline_hours=None if self.deadline_s == inf else deadline_h,
            best=chosen,
            plans=tuple(self.value(found, i) for i in few),
            front=tuple(self.value(found, i, alone=True) for i in front),
            others=tuple(self.value(found, i) for i in others),
            losers=tuple(
                why.losers(found, self.catalog, workload.limits, right, best, deadline_h)
                if explain
                else ()
            ),
            later=tuple(self._later(found, best)) if explain else (),
            surer=tuple(self._surer(found)) if explain else (),
            relaxations=() if best is not None else tuple(self._relaxations(found, right)),
            store=self.rates.store,
            candidates=len(found.found),
            layouts=found.speeds.considered,
            offers=len(found.goods.rows),
            notes=(*self._notes(found), *self._assumed(chosen)),
            prices_from=dates[0] if dates else "",
            prices_until=dates[-1] if dates else "",
        )

    def ways(self, provider: str, instance_type: str) -> list[Plan]:
        """What a type could do: the cheapest of each number of machines and market."""
        import numpy as np

        found = self.search()
        kind = found.goods.names.index((provider, instance_type))
        mine = found.goods.types[found.found.good] == kind
        chosen: dict[tuple[int, int], int] = {}
        for i in choose.ranked(found.found, np.asarray(mine)).tolist():
            chosen.setdefault((int(found.found.nodes[i]), int(found.found.market[i])), i)
        return [self.value(found, i) for i in chosen.values()]

    def by_place(self) -> list[Plan]:
        """The cheapest of each place that keeps all limits, by the cost."""
        import numpy as np

        found = self.search()
        order = self.asking(found).order
        place = found.goods.place[found.found.good[order]]
        _, first = np.unique(place, return_index=True)
        plans = [self.value(found, int(i)) for i in order[np.sort(first)]]
        return sorted(plans, key=lambda plan: plan.cost)

    def links(self, types: Iterable[tuple[str, ...]]) -> dict[tuple[str, str], Link]:
        """The network between machines of each type, which is given as (provider, type, …)."""
        shelf = goods(self.catalog, self.workload.limits, self.now)
        found = {}
        for provider, name, *_ in types:
            number = shelf.names.index((provider, name))
            at = int((shelf.types == number).argmax())
            found[provider, name] = shelf.links[shelf.link_of[at]]
        return found

    def search(self, care: Care = USUAL) -> Search:
        return self._search(self.workload, care)

    def _kept(self, found: Search, limits: Limits | None = None) -> choose.Kept:
        return choose.kept(found.found, limits or self.workload.limits, found.deadline_s / 3600)

    def asking(self, found: Search, limits: Limits | None = None) -> Asking:
        """The ways that keep the limits, in order; of the workload unless others are given."""
        if found.asking is None or limits is not None:
            order = choose.ranked(found.found, self._kept(found, limits).all)
            found.asking = Asking(found.found, found.goods, order)
        return found.asking

    def _first(self, found: Search, limits: Limits | None = None) -> Plan | None:
        first = self.asking(found, limits).first
        return None if first is None else self.value(found, first)

    def _search(self, workload: Workload, care: Care = USUAL) -> Search:
        shelf = goods(self.catalog, workload.limits, self.now)
        if not self._checked:
            _named_places(workload.limits, shelf.places)
        return search(
            workload,
            self.model,
            shelf,
            self.catalog.accelerators,
            self.rates,
            self.constants,
            self.deadline_s,
            self.now,
            care,
        )

    # -- what one limit would have to be ------------------------------------------------------

    def _relaxations(self, found: Search, right: choose.Kept) -> list[Relaxation]:
        import numpy as np

        candidates, limits = found.found, self.workload.limits
        given: list[Relaxation] = []
        if np.isfinite(self.deadline_s) and right.budget.any():
            soonest = self._soonest(found)
            if soonest is not None:
                words = f"with {format_hours(soonest.deadline_hours)} instead of "
                words += format_hours(self.deadline_s / 3600)
                if soonest.deadline_hours * 3600 < 1.05 * self.deadline_s:
                    words = "with a little more time"
                assert soonest.plan is not None
                given.append(Relaxation(limit="deadline", why=words, plan=soonest.plan))
        surest = self._surest(found, right)
        if surest is not None:
            given.append(surest)
        if limits.budget is not None and right.deadline.any():
            enough = np.where(right.deadline, self._enough(candidates), inf)
            cheapest = int(np.argmin(enough))
            times = ceil(10 * enough[cheapest] / limits.budget) / 10
            given.append(
                Relaxation(
                    limit="budget",
                    why=f"with {times:.1f}× the budget",
                    plan=self.value(found, cheapest),
                )
            )
        if not given and limits.budget is not None and np.isfinite(self.deadline_s):
            both = self._both(found)
            if both is not None:
                given.append(both)
        if limits.carbon_kg is not None and not right.carbon.all():
            lifted = self._lifted({"carbon": None})
            if lifted is not None:
                words = f"with {lifted.co2_kg:,.3g} kg CO2e instead of {limits.carbon}"
                given.append(Relaxation(limit="carbon", why=words, plan=lifted))
        for name, words, change in _LIFTED:
            if getattr(limits, name) is None:
                continue
            lifted = self._lifted(change)
            if lifted is not None:
                given.append(Relaxation(limit=name, why=words, plan=lifted))
        most = limits.max_nodes or USUAL_NODES
        if most < MOST_NODES:
            lifted = self._lifted({"max_nodes": min(4 * most, MOST_NODES)})
            if lifted is not None:
                why_more = f"with {lifted.nodes} machines instead of at most {most}"
                given.append(Relaxation(limit="max_nodes", why=why_more, plan=lifted))
        return given

    def _surest(self, found: Search, right: choose.Kept) -> Relaxation | None:
        """The chance of keeping deadline and budget that can be had, where it is less than the one
        wanted."""
        import numpy as np

        c, limits = found.found, self.workload.limits
        other = right.carbon & (c.hours <= found.deadline_s / 3600)
        each = c.chance
        if limits.budget is not None:
            other &= c.cost <= limits.budget
            each = np.minimum(c.within(limits.budget), each if self.deadline_s < inf else 1)
        chance = int(100 * each[other].max(initial=0.0)) / 100
        if not _HARDLY < chance < limits.sure:
            return None
        plan = self._first(replace(found), replace(limits, confidence=chance))
        if plan is None:
            return None
        words = f"with a confidence of {chance:.0%} instead of {100 * limits.sure:.4g}%"
        return Relaxation(limit="confidence", why=words, plan=plan)

    def _soonest(self, found: Search) -> Later | None:
        """The earliest deadline that can be kept, to within a fiftieth."""
        if not len(found.found):
            return None
        low = self.deadline_s
        high = max(2 * low, 5 * 3600 * float(found.found.hours_high.max()))
        best = self._by(found, high)
        if best.plan is None:
            return None
        while high > 1.02 * low:
            middle = (low * high) ** 0.5
            tried = self._by(found, middle)
            if tried.plan is None:
                low = middle
            else:
                best, high = tried, middle
        return best

    def _both(self, found: Search) -> Relaxation | None:
        """Where neither more time nor more money alone would do: the least of both together."""
        import numpy as np

        c, budget = found.found, self.workload.limits.budget
        if not len(c) or not budget:
            return None
        enough = self._enough(c)
        over = np.maximum(c.hours_high * 3600 / self.deadline_s, enough / budget)
        at = int(np.argmin(over))
        time, money = (
            format_hours(float(c.hours_high[at])),
            format_money(_micros(enough[at]), digits=2),
        )
        words = f"with {time} and {money} together"
        return Relaxation(limit="deadline and budget", why=words, plan=self.value(found, at))

    def _enough(self, candidates: Candidates) -> Column:
        """The least budgets that would do, as surely as is wanted."""
        import numpy as np

        sure = self.workload.limits.sure
        found: Column = np.maximum(candidates.enough(sure) * (1 + 1e-3), candidates.cost)
        return found

    def _by(self, found: Search, deadline_s: float) -> Later:
        """The cheapest plan for another deadline."""
        weighed = at_deadline(found, self.workload, self.rates, deadline_s, self.now)
        return Later(deadline_hours=deadline_s / 3600, plan=self._first(weighed))

    def _later(self, found: Search, best: int | None) -> list[Later]:
        """A day is what people bargain for; where a day is nothing or everything, a share. More
        time makes nothing dearer, so that what costs more than the best in any case is left out."""
        if self.deadline_s == inf:
            return []
        day = 86_400.0
        step = min(max(day, self.deadline_s / 4), self.deadline_s / 2)
        most = LAST_RESORT * float(found.found.weighed[best]) if best is not None else inf
        few = found if best is None else narrowed(found, most)
        return [
            self._by(found if number < 0 else few, self.deadline_s + number * step)
            for number in (-1, 1, 3)
        ]

    def _surer(self, found: Search) -> list[Surer]:
        """What it costs to be surer to keep deadline and budget, and what less would save."""
        limits = self.workload.limits
        if self.deadline_s == inf and limits.budget is None:
            return []
        return [
            Surer(
                confidence=chance,
                plan=self._first(replace(found), replace(limits, confidence=chance)),
            )
            for chance in sorted({*_CHANCES, limits.sure})
        ]

    def _lifted(self, change: dict[str, Any]) -> Plan | None:
        """The best plan with one limit changed."""
        limits = replace(self.workload.limits, **change)
        found = self._search(replace(self.workload, limits=limits))
        return self._first(found, limits)

    # -- values ------------------------------------------------------------------------------

    def value(self, found: Search, i: int, *, alone: bool = False) -> Plan:
        """`alone`: where it is refused, only what takes no longer is asked for."""
        c, shelf, fast = found.found, found.goods, found.speeds
        good, group = int(c.good[i]), int(c.group[i])
        row = int(shelf.rows[good])
        table = self.catalog.table
        kind = shelf.kinds[shelf.kind[good]]
        way, mode = fast.ways[group], MODES[c.mode[i]]
        prices = {name: shelf.prices[name][good] for name in MODES}
        held = [mode] + (["on_demand"] if c.fall_back[i] else [])
        columns = table.prices[mode]
        chip = self.catalog.accelerators[kind.accelerator]
        return Plan(
            provider=table.columns["provider"][row],
            region=table.columns["region"][row],
            zone=table.columns["zone"][row],
            instance_type=table.columns["instance_type"][row],
            accelerator=kind.accelerator,
            accelerator_count=int(kind.each),
            nodes=int(c.nodes[i]),
            own=bool(shelf.own[good]),
            markets=tuple(market_of(name) for name in held),
            layout={name: getattr(way, name) for name in _LAYOUT} if way else {},
            layout_words=way.words if way else "",
            precision=fast.precision[group],
            stack=fast.stack[group],
            samples_per_s=float(fast.samples_per_s[group]),
            memory_gb=float(fast.peak_gb[group]),
            capacity_gb=hardware.capacity_gb(chip),
            hours=float(c.hours[i]),
            hours_low=float(c.hours_low[i]),
            hours_high=float(c.hours_high[i]),
            cost=_micros(c.cost[i]),
            cost_low=_micros(c.cost_low[i]),
            cost_high=_micros(c.cost_high[i]),
            expected=_micros(self.asking(found).expected(i, no_slower=alone)),
            chance=min(float(c.chance[i]), 0.999),
            within_budget=self._within(c, i),
            work_hours=float(c.work_h[i]),
            startup_hours=float(c.startup_h[i]),
            on_demand_hours=float(c.on_demand_h[i]),
            spot_hours=float(c.spot_h[i]),
            interruptions=float(c.interruptions[i]),
            checkpoint_every_s=self._every_s(found, i),
            checkpoint_bytes=round(fast.state_bytes),
            costs={name: _micros(part[i]) for name, part in c.parts.items() if part[i] > 0},
            price_hour={market_of(name): _micros(prices[name]) for name in held},
            price_as_of=columns.as_of[row],
            price_source=columns.source[row],
            band=fast.band[group],
            had=float(c.had[i]),
            had_by=_had_by(shelf, good, held),
            network=shelf.links[shelf.link_of[good]].words if c.nodes[i] > 1 else "",
            commit=commitment_of(mode),
            spot_by=_spot_by(shelf, good) if mode == "spot" else "",
            not_ours="" if shelf.own[good] else _not_ours(table.columns["provider"][row], chip),
            **self._moving(row, fast.state_bytes, float(c.every_s[i])),
            **self._emitted(chip, row, kind.each * c.nodes[i] * (c.on_demand_h[i] + c.spot_h[i])),
        )

    def _every_s(self, found: Search, i: int) -> int:
        """As its run will save at most, unless the workload says it: work is lost in more ways than
        a market has."""
        planned = float(found.found.every_s[i])
        row = int(found.goods.rows[found.found.good[i]])
        paid = self._moving(row, found.speeds.state_bytes, planned)["save"]
        if self.workload.checkpoint.every_s is not None or paid:
            return round(planned)
        bytes_, nodes = found.speeds.state_bytes, int(found.found.nodes[i])
        save_s = float(finish.stall_s(bytes_, nodes))
        uploaded_s = 2 * bytes_ / nodes / finish.STORE_RATE
        safe = cadence.every_s(save_s, 0.0, machines=nodes, spot=False)
        return round(min(planned, max(safe, uploaded_s)))

    def _within(self, candidates: Candidates, i: int) -> float:
        budget = self.workload.limits.budget
        return 1.0 if budget is None else min(float(candidates.within(budget)[i]), 0.999)

    def _emitted(self, chip: Accelerator, row: int, hours: float) -> dict[str, Any]:
        columns = self.catalog.table.columns
        place = columns["provider"][row], columns["region"][row]
        found = carbon.emitted(*place, chip.tdp_watts, float(hours))
        words = found.grid.words
        return {
            "energy_kwh": found.kwh,
            "co2_kg": found.kg,
            "co2_kg_low": found.kg_low,
            "co2_kg_high": found.kg_high,
            "grid": f"{words} (doubtful: {found.grid.doubt})" if found.grid.doubt else words,
        }

    def _moving(self, row: int, state_bytes: float, every_s: float) -> dict[str, Any]:
        columns = self.catalog.table.columns
        found = moving(
            self.rates,
            self.workload.data,
            (columns["provider"][row], columns["region"][row]),
            state_bytes=state_bytes,
            every_s=every_s,
        )
        return found._asdict()

    def _notes(self, found: Search) -> list[str]:
        notes = [
            "spot is what the policy that will decide expects of it, from measured series of AWS's "
            "capacity by size of machine, a prior for all others",
        ]
        train = self.workload.train
        if train is not None and train.stack is None:
            notes.append("the software is taken to be compiled FSDP on GPUs and MaxText on TPUs")
        if self.workload.data is None:
            notes.append("no data is told of, so none is moved or waited for")
        notes += _areas(found.goods, self.workload.limits)
        if found.outlasted:
            notes.append("a reservation that may end before the work does is not counted on")
        return notes

    def _assumed(self, best: Plan | None) -> list[str]:
        """Prices that nobody has told us, where they are more than a hundredth of the cost."""
        if best is None:
            return []
        place = best.provider, best.region
        extra = self.rates.beside(*place, best.instance_type, best.markets[0])
        told = self.rates.assumed(self.workload.data, place, extra)
        return [
            words
            for part, several in told.items()
            if best.costs.get(part, 0) > _WORTH_A_WORD * best.cost
            for words in several
        ]


_LIFTED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("markets", "with any market", {"markets": None}),
    ("regions", "with any region", {"regions": None}),
    ("providers", "with any provider", {"providers": None}),
    ("accelerators", "with any accelerator", {"accelerators": None}),
    ("exclude", "with nothing excluded", {"exclude": None}),
    ("max_accelerators", "with more accelerators", {"max_accelerators": None}),
)


def _areas(shelf: Goods, limits: Limits) -> list[str]:
    """What the areas among the limits were taken as."""
    said = []
    for name in limits.regions or ():
        if lands := countries(name):
            lying = [(places.country_of(*place), place) for place in shelf.places]
            there = [(land, place) for land, place in lying if land in lands]
            said.append(
                f"{name} is {len(there)} regions of "
                f"{len({provider for _, (provider, _) in there})} providers, in "
                f"{', '.join(sorted({land for land, _ in there}))}; regions of which no country is "
                f"known are left out ({sum(not land for land, _ in lying)})"
            )
    return said


def _named_places(limits: Limits, known: Iterable[tuple[str, str]]) -> None:
    """Raises where a region is named that nobody has: no plan is not an answer to that."""
    regions = {text for provider, region in known for text in (region, f"{provider}/{region}")}
    lower = {region.lower(): region for region in sorted(regions)}
    for name in limits.regions or ():
        if name.lower() in lower or countries(name) or any(c in name for c in "*?["):
            continue
        close = get_close_matches(name.lower(), lower, n=3)
        near = " or ".join(lower[one] for one in close) or ", ".join(SPELLED.values())
        raise InvalidValue(f"no region is called {name!r}", hint=f"did you mean {near}?")


def _not_ours(provider: str, chip: Accelerator) -> str:
    return driven.not_ours(provider, chip.name, chip.vendor)


def _had_by(shelf: Goods, good: int, held: Sequence[str]) -> str:
    """What the chance to have it is taken from."""
    if shelf.own[good] or held == ["held"]:
        return "yours"
    if shelf.assumed[good] == shelf.assumed[good]:
        return "assumed by you"
    seen = [one for mode in held for one in shelf.answers.get(mode, {}).get(good, ())]
    return capacity.words(seen) if seen else "prior"


def _spot_by(shelf: Goods, good: int) -> str:
    provider, _ = shelf.names[shelf.types[good]]
    seen = shelf.answers.get("spot", {}).get(good, ())
    return hazards.hazard(provider, shelf.kinds[shelf.kind[good]].each, seen).words


def _model(workload: Workload) -> Model | None:
    if workload.train is None:
        return None
    model = workload.train.model
    return models.load(model) if isinstance(model, str) else model


def _micros(value: float) -> Micros:
    return Micros(round(float(value)))


def _dates(catalog: Catalog, found: Search, chosen: Sequence[int]) -> list[str]:
    """Of the prices that were looked at, in order."""
    dates = set()
    for i in chosen:
        row = int(found.goods.rows[found.found.good[i]])
        date = catalog.table.prices[MODES[found.found.mode[i]]].as_of[row]
        if date:
            dates.add(date)
    return sorted(dates)


def plan(
    workload: Workload,
    *,
    catalog: Catalog | None = None,
    now: datetime | None = None,
    explain: bool = True,
    closer: bool = False,
    top: int = SHOWN,
    rates: Rates | None = None,
) -> Plans:
    """The cheapest ways to finish in time, what was given up for them, and why the rest lost.

    `explain`: with losers, and what other deadlines would cost. `closer`: with `others`.
    """
    from tradewind import catalog as catalogs

    loaded = catalog or catalogs.load()
    if workload.machines is not None:
        return exact.plans(workload, catalog=loaded, now=now, top=top)
    planner = Planner(workload, loaded, now=now or clock.now(), rates=rates)
    return planner.plans(explain=explain, closer=closer, top=top)


def on_spot(workload: Workload, catalog: Catalog, rates: Rates | None = None) -> Plans:
    """The same work on spot machines alone, however sure: for what shows interruptions, where the
    cheapest that is sure is on demand."""
    limits = replace(workload.limits, markets=("spot",), confidence=0.01)
    return plan(
        replace(workload, limits=limits), catalog=catalog, explain=False, top=20, rates=rates
    )
