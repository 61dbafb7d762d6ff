"""From a solution's numbers to the values of a plan: names, prices, hours, latencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isnan
from typing import TYPE_CHECKING

from tradewind.base.units import Micros
from tradewind.catalog import places
from tradewind.estimate.serving import queue
from tradewind.model.serveplan import Hour, ServingPlan, ServingPool, Users
from tradewind.planning.goods import MODES, Goods, commitment_of
from tradewind.planning.serving.layouts import Layouts
from tradewind.planning.serving.search import Part, Rates, Solution
from tradewind.planning.serving.shelf import Shelf
from tradewind.planning.serving.traffic import Traffic

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.estimate.serving.cases import Column

    Targets = Mapping[str, tuple[float, float]]


def micros(value: float) -> Micros:
    return Micros(round(float(value)))


class Making:
    def __init__(
        self, catalog: Catalog, goods: Goods, layouts: Layouts, shelf: Shelf, traffic: Traffic,
        users: Sequence[tuple[str, float]] = (),
    ) -> None:  # fmt: skip
        self.catalog, self.goods, self.layouts = catalog, goods, layouts
        self.shelf, self.traffic, self.users = shelf, traffic, users

    def plan(self, found: Solution, targets: Targets, caveat: Callable[[str], str]) -> ServingPlan:
        months = self.traffic.months
        cost = found.cost * months
        tokens_in, tokens_out = self.traffic.tokens_a_month
        return ServingPlan(
            pools=tuple(self._pool(part, targets, caveat) for part in found.parts),
            cost=micros(cost),
            starting=micros(sum(part.pool.starting for part in found.parts) * months),
            usd_per_million=cost / (tokens_in + tokens_out),
            usd_per_million_out=cost / tokens_out,
        )

    def _pool(self, part: Part, targets: Targets, caveat: Callable[[str], str]) -> ServingPool:
        pool, shelf = part.pool, self.shelf
        i = pool.entry
        good = int(shelf.good[i])
        row = int(self.goods.rows[good])
        kind = self.goods.kinds[self.goods.kind[good]]
        layout = self.layouts.layouts[int(shelf.layout[i])]
        columns = self.catalog.table.columns
        hours = tuple(
            Hour(rate, need, held.on_demand, held.spot, held.chance)
            for rate, need, held in zip(part.hours, pool.needed, pool.hours, strict=True)
        )
        loads = [hour.rate / (hour.needed * pool.rate) for hour in hours if hour.needed]
        fullest = max(loads, default=0.0)
        prices = {
            "on_demand": float(shelf.steady[i]),
            "spot": float(self.goods.prices["spot"][good]),
            "committed": float(shelf.committed[i]),
        }
        term = commitment_of(MODES[shelf.term[i]]) if pool.committed else ""
        used = {
            "on_demand": any(hour.on_demand for hour in hours),
            "spot": any(hour.spot for hour in hours),
            "committed": pool.committed > 0,
        }
        markets = {"committed": MODES[shelf.term[i]], "on_demand": "on_demand", "spot": "spot"}
        dated = self.catalog.table.prices[next(markets[n] for n in markets if used[n])]
        at, speeds = int(shelf.layout[i]), self.layouts.speeds
        return ServingPool(
            sizes=part.sizes, provider=columns["provider"][row], region=columns["region"][row],
            instance_type=columns["instance_type"][row], accelerator=kind.accelerator,
            accelerator_count=int(kind.each), own=bool(shelf.own[i]), tp=layout.tp,
            engine=layout.engine, weights=layout.weights, caveat=caveat(layout.weights),
            replicas=int(shelf.replicas[i]), rate_per_machine=pool.rate,
            price_hour={
                name: micros(price)
                for name, price in prices.items()
                if used[name] and not isnan(price)
            },
            committed=pool.committed, term=term, had=pool.had, users=self._users(part),
            hours=hours, cost=micros(pool.cost * self.traffic.months), chance=pool.chance,
            headroom=1 / fullest - 1 if fullest else 0.0,
            latency_ms=self._latency(part, fullest, targets),
            margin={name: float(speeds.margins[name][at]) for name in ("ttft", "tpot")},
            band=speeds.reasons[at],
            price_as_of=dated.as_of[row], price_source=dated.source[row],
        )  # fmt: skip

    def machines(self, found: Solution) -> str:
        """The most of each type at once."""
        texts = []
        for part in found.parts:
            pool = part.pool
            row = int(self.goods.rows[int(self.shelf.good[pool.entry])])
            columns = self.catalog.table.columns
            most = max(held.on_demand + held.spot for held in pool.hours) + pool.committed
            texts.append(
                f"{most} × {columns['instance_type'][row]}, {columns['provider'][row]} "
                f"{columns['region'][row]}"
            )
        return "; ".join(texts)

    def _users(self, part: Part) -> tuple[Users, ...]:
        row = int(self.goods.rows[int(self.shelf.good[part.pool.entry])])
        columns = self.catalog.table.columns
        metro = places.metro_of(columns["provider"][row], columns["region"][row])
        found = []
        for n in part.users:
            name, share = self.users[n]
            assert metro is not None
            way = places.round_trip(metro, name)
            found.append(Users(name, share, 1e3 * way.seconds, way.measured))
        return tuple(found)

    def _latency(self, part: Part, fullest: float, targets: Targets) -> dict[str, float | None]:
        """In the fullest hour, at the percentile of each target, for the users farthest away."""
        import numpy as np

        number = int(self.shelf.layout[part.pool.entry])
        table = self.layouts.tables(part.mix).take(np.array([number]))
        each = part.pool.rate * fullest / float(self.shelf.replicas[part.pool.entry])
        state = queue.at_rate(table, part.mix, np.array([max(each, 1e-4)]), self.traffic.cv**2)
        _, outputs, shares = part.mix.columns()
        within = {
            "ttft": partial(queue.within_first, state),
            "tpot": partial(queue.within_token, state),
            "e2e": partial(queue.within_whole, state, outputs),
        }
        return {
            name: 1e3 * (queue.percentile(within[name], shares, share)
                         + (0.0 if name == "tpot" else part.delay_s))
            for name, (_, share) in targets.items()
        }  # fmt: skip

    def answering(self, rates: Rates) -> Column:
        """By layout, seconds of a request that has a replica for itself."""
        import numpy as np

        alone = np.full(len(rates.table), 1e-4)
        state = queue.at_rate(rates.table, rates.mix, alone)
        _, outputs, shares = rates.mix.columns()
        found: Column = state.first @ shares + (outputs @ shares) * state.tpot
        return found
