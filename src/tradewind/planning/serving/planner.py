"""From a workload with `serve` to plans: search, price, explain. What the command calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from itertools import product
from math import isfinite
from typing import TYPE_CHECKING, Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import Micros
from tradewind.catalog import alternatives, places
from tradewind.estimate import models
from tradewind.estimate.serving import formats
from tradewind.estimate.serving.served import Served, find, of_shape
from tradewind.model import Workload
from tradewind.model.areas import countries
from tradewind.model.serve import Serve
from tradewind.model.serveplan import (
    Alternative,
    Changed,
    Growth,
    NotChosen,
    OneSite,
    ServingPlan,
    ServingPlans,
    TargetCost,
)
from tradewind.model.shape import Shape
from tradewind.planning.goods import Goods, goods
from tradewind.planning.serving import caveats, layouts, nearest, others, traffic
from tradewind.planning.serving.pools import Needs
from tradewind.planning.serving.search import Book, Solution
from tradewind.planning.serving.shelf import Shelf, joined
from tradewind.planning.serving.sites import Sites
from tradewind.planning.serving.values import Making, micros

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.estimate.serving.cases import Column
    from tradewind.estimate.serving.points import Points

    Targets = Mapping[str, tuple[float, float]]

_TIGHTER, _LOOSER = 0.6, 2.0
_GROWN = (3, 6, 12)  # months
_STRETCHED = (0.5, 0.7, 1.0, 1.5, 2.0)  # times a target, on the page's sliders
_TRAFFIC = (0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 4.0)
_SHOWN = 3  # alternatives of a kind


class Planner:
    def __init__(
        self, workload: Workload, catalog: Catalog, *, now: datetime, own: Points | None = None
    ) -> None:
        """`own`: points that the user has measured."""
        if workload.serve is None:
            raise InvalidValue("the workload has no serve section", hint="see docs/serving-plan.md")
        self.workload, self.catalog, self.now, self.own = workload, catalog, now, own
        self.serve: Serve = workload.serve
        self.model = model_of(self.serve)
        self.traffic = traffic.of(self.serve)
        layouts.check(self.serve, self.model, self.traffic.mix)
        self.needs = Needs(self.serve.availability, self.serve.warm, self.serve.scale_to_zero)
        self.goods = self._goods()
        self.layouts = self._layouts()
        self.shelf: Shelf = joined(
            self.goods, self.layouts.layouts, self._weight_bytes(), workload.limits, now
        )
        self.division: list[tuple[int, ...]] = []  # of users among the sites of the plan
        self.users = [(places.named(name), share) for name, share in self.serve.users or ()]
        self.book = Book(self.layouts)
        self.sites = Sites(
            self.book, self.shelf, self.needs, [share for _, share in self.users], self._away()
        )
        self.making = Making(
            catalog, self.goods, self.layouts, self.shelf, self.traffic, self.users
        )

    def plans(self, *, explain: bool = True, changed: bool = False) -> ServingPlans:
        """`explain`: with what targets cost, alternatives, growth and why others lost; `changed`:
        with what other traffic and targets would cost."""
        targets = self.serve.targets
        found = self._affordable(self.solved())
        if found is not None and self.users:
            self.division = list(dict.fromkeys(part.users for part in found.parts))
        best = None if found is None else self.making.plan(found, targets, self._caveat)
        base = ServingPlans(
            workload=self.workload, made_at=self.now, requests_per_s=self.traffic.mean,
            peak_requests_per_s=max(self.traffic.hours), input=self.traffic.mix.input,
            output=self.traffic.mix.output, cv=self.traffic.cv, hours=len(self.traffic.hours),
            targets=dict(targets), best=best, offers=len(self.goods.rows),
            layouts=len(self.layouts.layouts), notes=tuple(self._notes()),
        )  # fmt: skip
        if not explain:
            return base
        if found is None or best is None:
            return replace(base, nearest=nearest.found(self), losers=tuple(self._losers(None)))
        return replace(
            base,
            single=self._single(found),
            one_site=self._together(found),
            targets_cost=tuple(self._targets_cost(found)),
            alternatives=tuple(self._alternatives()),
            losers=tuple(self._losers(found)),
            growth=tuple(self._growth()),
            changed=tuple(self._changed(found)) if changed else (),
        )

    # -- what there is ----------------------------------------------------------------------

    def _goods(self) -> Goods:
        import numpy as np

        found = goods(self.catalog, self.workload.limits, self.now)
        residency = self.serve.residency
        if residency is not None:
            limits = replace(self.workload.limits, regions=residency, exclude=None)
            for name in residency:
                if len(name) == 2 and not countries(name) & {*places.known_countries()}:
                    raise InvalidValue(
                        f"serve.residency: {name!r} is no country that we know",
                        hint=f"EU, or {', '.join(places.known_countries())}",
                    )
            allowed = np.array([places.allows(limits, *place) for place in found.places])
            found.in_place = found.in_place & allowed[found.place]
        return found

    def _away(self) -> Column | None:
        """Seconds there and back, by entry and place of users."""
        import numpy as np

        if not self.users:
            return None
        by_place = np.full((len(self.goods.places), len(self.users)), np.inf)
        self.unplaced = 0
        for n, place in enumerate(self.goods.places):
            metro = places.metro_of(*place)
            if metro is not None:
                by_place[n] = [places.round_trip(metro, name).seconds for name, _ in self.users]
        at = self.goods.place[self.shelf.good]
        self.unplaced = len(set(at[np.isinf(by_place[at, 0])].tolist()))
        found: Column = by_place[at]
        return found

    def _layouts(self) -> layouts.Layouts:
        most: dict[str, int] = {}
        usable = self.goods.in_place & self.goods.is_wanted
        for code in set(self.goods.kind[usable].tolist()):
            kind = self.goods.kinds[code]
            most[kind.accelerator] = max(most.get(kind.accelerator, 0), int(kind.each))
        chips = [(self.catalog.accelerators[name], number) for name, number in sorted(most.items())]
        self.lacking = [
            name
            for name in self.serve.quantise or ()
            if not any(formats.native(chip, formats.named(name)) for chip, _ in chips)
        ]
        return layouts.found(
            self.serve, self.model, self.traffic.mix, chips, self.workload.limits.margin,
            self.own,
        )  # fmt: skip

    def _weight_bytes(self) -> float:
        name = formats.named(self.serve.weights) if self.serve.weights else "bf16"
        return self.model.params * formats.FORMATS[name].bytes

    def _solved(self, asked: traffic.Traffic, targets: Targets) -> Solution | None:
        if not self.layouts.layouts or not len(self.shelf):
            return None
        return self.sites.solve(asked, targets)

    def simple(self, asked: traffic.Traffic, targets: Targets) -> Solution | None:
        """The best with one pool, or with one at each site of the plan: what others are compared
        with."""
        if not self.layouts.layouts or not len(self.shelf):
            return None
        if self.division:
            return self.sites.like(self.division, None, asked, targets)
        return self.sites.solve(asked, targets, single=True)

    def solved(self) -> Solution | None:
        """The cheapest that keeps the targets, whatever it costs."""
        return self._solved(self.traffic, self.serve.targets)

    def nearest_s(self) -> float:
        away = self.sites.away
        if away is None or not len(away):
            return 0.0
        near = away.min(axis=0).max()
        return float(near) if isfinite(near) else 0.0

    def best_with(self, **change: Any) -> ServingPlan | None:
        changed = replace(self.workload, **change)
        other = Planner(changed, self.catalog, now=self.now, own=self.own)
        return other.plans(explain=False).best

    def _affordable(self, found: Solution | None) -> Solution | None:
        budget = self.workload.limits.budget
        if found is None or budget is None or found.cost * self.traffic.months <= budget:
            return found
        return None

    def _cost(self, found: Solution | None, asked: traffic.Traffic) -> Micros | None:
        return None if found is None else micros(found.cost * asked.months)

    # -- why --------------------------------------------------------------------------------

    def _single(self, found: Solution) -> ServingPlan | None:
        """One kind of machine for all requests of a place, where the plan has two."""
        if not any(part.sizes for part in found.parts):
            return None
        other = self.simple(self.traffic, self.serve.targets)
        if other is None:
            return None
        return self.making.plan(other, self.serve.targets, self._caveat)

    def _together(self, found: Solution) -> OneSite | None:
        """What one place for all users would cost, where the plan has several."""
        if len({part.users for part in found.parts}) < 2:
            return None
        other = self.sites.together(self.traffic, self.serve.targets)
        if other is None:
            return OneSite("", None, None)
        plan = self.making.plan(other, self.serve.targets, self._caveat)
        pool = plan.pools[0]
        return OneSite(f"{pool.provider} {pool.region}", plan.cost,
                       Micros(plan.cost - micros(found.cost * self.traffic.months)))  # fmt: skip

    def _targets_cost(self, found: Solution) -> list[TargetCost]:
        """By one pool for all requests of a place, with each target tighter and looser."""
        targets = self.serve.targets
        made = []
        for name, (seconds, share) in targets.items():
            for factor in (_TIGHTER, _LOOSER):
                changed = {**targets, name: (seconds * factor, share)}
                cost = self._cost(self.simple(self.traffic, changed), self.traffic)
                ours = micros(found.cost * self.traffic.months)
                if factor > 1 and cost is not None:
                    cost = min(cost, ours)  # what keeps the tighter one keeps this too
                if factor < 1 and cost is not None:
                    cost = max(cost, ours)
                made.append(
                    TargetCost(name, seconds * factor, seconds, cost,
                               None if cost is None else Micros(cost - ours))
                )  # fmt: skip
        return made

    def _alternatives(self) -> list[Alternative]:
        import numpy as np

        rates = self.book.rates(self.traffic.mix, self.serve.targets, self.traffic.cv)
        offers = [one for one in alternatives.serverless() if self._may_use(one.provider)]
        wanted = {one.accelerator for one in offers}
        at = [n for n, one in enumerate(self.layouts.layouts) if one.accelerator in wanted]
        rates.ask(np.array(at, dtype=np.intp))
        known = np.nan_to_num(rates.known)
        answering = self.making.answering(rates)
        apis = [one for one in alternatives.model_apis() if self._may_use(one.provider)]
        tokens = others.by_the_token(apis, self.model.name, self.traffic)[:_SHOWN]
        served = others.without_servers(
            offers, self.layouts.layouts, known, answering, self.traffic, self.serve,
            self._weight_bytes(),
        )[:_SHOWN]  # fmt: skip
        mean = self.traffic.mean

        @cache
        def ours(times: float) -> float | None:
            asked = self.traffic.scaled(times)
            found = self.simple(asked, self.serve.targets)
            return None if found is None else found.cost * asked.months / 1e6

        return [
            *(others.with_crossover(one, partial(_times, one.cost / 1e6), ours, mean)
              for one in tokens),
            *(others.with_crossover(one, cost, ours, mean) for one, cost in served),
        ]  # fmt: skip

    def _may_use(self, provider: str) -> bool:
        """Where they stand is not told, so residency and regions leave them out."""
        limits = self.workload.limits
        return not (self.serve.residency or limits.regions) and limits.allows(provider, "any")

    def _losers(self, found: Solution | None) -> list[NotChosen]:
        import numpy as np

        made = [NotChosen(name, why) for name, why in sorted(self.layouts.refused.items())]
        if not self.layouts.layouts:
            return made
        chosen = set()
        for part in found.parts if found else ():
            chosen.add(self.layouts.layouts[self.shelf.layout[part.pool.entry]].accelerator)
        names = np.array([one.accelerator for one in self.layouts.layouts])
        entries = names[self.shelf.layout]
        targets = self.serve.targets
        rates = self.book.rates(self.traffic.mix, targets, self.traffic.cv).all()
        division = self.division or [tuple(range(len(self.users)))]
        priced = []
        for name in sorted(set(names.tolist()) - chosen):
            if not (rates[names == name] > 0).any():
                made.append(NotChosen(name, "too slow: a target fails for a request that is alone"))
                continue
            other = self.sites.like(division, entries == name, self.traffic, targets)
            if other is None:
                made.append(NotChosen(name, "not for sale in that number where limits allow"
                            + (" and users are near" if self.users else "")))  # fmt: skip
            else:
                why = "costs more"
                if not found:
                    why += " than the budget"
                elif other.cost <= found.cost:
                    why = f"cheaper, but harder to get: {other.had:.0%}"
                priced.append(NotChosen(name, why, self._cost(other, self.traffic)))
        return sorted(priced, key=lambda one: one.cost or 0) + made

    def _growth(self) -> list[Growth]:
        if not self.serve.growth:
            return []
        made = []
        for months in _GROWN:
            asked = self.traffic.scaled((1 + self.serve.growth) ** months)
            found = self._solved(asked, self.serve.targets)
            made.append(Growth(months, asked.mean, self._cost(found, asked)))
        return made

    def _changed(self, found: Solution) -> list[Changed]:
        """By one pool for all requests of a place; what was asked for itself is the plan."""
        targets, made = self.serve.targets, []
        for factors in product(_STRETCHED, repeat=len(targets)):
            looser = dict(zip(targets, factors, strict=True))
            asked = {
                name: (seconds * looser[name], share) for name, (seconds, share) in targets.items()
            }
            for times in _TRAFFIC:
                same = times == 1 and set(factors) == {1.0}
                other = found if same else self.simple(self.traffic.scaled(times), asked)
                made.append(
                    Changed(times, looser, self._cost(other, self.traffic),
                            "" if other is None else self.making.machines(other))
                )  # fmt: skip
        return made

    def _caveat(self, weights: str) -> str:
        asked = formats.named(self.serve.weights) if self.serve.weights else None
        return "" if weights == asked else caveats.caveat(weights)

    def _notes(self) -> list[str]:
        notes = [
            "machines fail, and spot machines are interrupted, independently of each other",
            "where spot cannot be had, on-demand stands in, and its price is counted for that time",
            f"steps and first tokens are as fast as planned with a chance of "
            f"{self.workload.limits.margin:.0%} each (limits.confidence): measure a replica "
            "before you buy many",
            "requests are spread evenly over replicas; the front that does so is not priced",
        ]
        for name in self.lacking:
            notes.append(f"quantise: no accelerator within the limits has units for {name}")
        if self.own is not None and not (self.layouts.layouts and self.layouts.speeds.sharpened):
            name = self.own.name.rsplit("/", 1)[-1]  # pages with notes are sent on
            notes.append(f"{name} has no point of an engine and accelerator in question")
        if self.workload.limits.commit:
            notes.append("a commitment is paid to its end, whatever the traffic does meanwhile")
        if self.users:
            notes.append("users are as far as the next city of theirs: what their own network adds "
                         "is not counted")  # fmt: skip
        if self.users and self.unplaced:
            notes.append(f"{self.unplaced} regions are left out: where they are is not known")
        if isfinite(self.traffic.cv) and self.traffic.cv != 1:
            notes.append(f"gaps between requests vary by {self.traffic.cv:.2g} of their mean")
        return notes


def _times(dollars: float, times: float) -> float:
    return dollars * times


def model_of(serve: Serve) -> Served:
    if isinstance(serve.model, Shape):
        return of_shape(serve.model)
    if not isinstance(serve.model, str):
        raise InvalidValue("what is served must generate text", hint="name a decoder")
    try:
        shape = models.load(serve.model)
    except NotFound:
        # Tables of measurements know a few that the registry does not.
        return find(serve.model)
    if not isinstance(shape, Shape) or shape.kind != "decoder":
        raise InvalidValue(f"{serve.model} does not generate text", hint="name a decoder")
    return of_shape(shape)


def plan(
    workload: Workload,
    *,
    catalog: Catalog | None = None,
    now: datetime | None = None,
    own: Points | None = None,
    explain: bool = True,
) -> ServingPlans:
    """The cheapest replicas that keep the targets, and why."""
    from tradewind import catalog as catalogs

    planner = Planner(workload, catalog or catalogs.load(), now=now or clock.now(), own=own)
    return planner.plans(explain=explain)
