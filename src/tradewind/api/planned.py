"""Plans as an account pays for them: with what clouds charge beside machines, and, where a store is
told, with what its machines pay to keep checkpoints there. What `tradewind.plan` calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.api.rented import On
    from tradewind.catalog import Catalog
    from tradewind.model import Workload
    from tradewind.model.plan import Plans
    from tradewind.planning.planner import Planner
    from tradewind.planning.rates import Rates


def rates(on: On | None = None) -> Rates:
    """`on`: what is set up for a store; without it, as clouds usually charge, and wherever the
    store may be."""
    from tradewind.catalog import ratecard
    from tradewind.planning.rates import Rates
    from tradewind.providers import charges

    if on is None:
        return Rates(ratecard.card(), charges.usual(ratecard.card()))
    return Rates(ratecard.card(), on.extra, on.bucket)


def planner(
    workload: Workload,
    catalog: Catalog,
    *,
    now: datetime,
    on: On | None = None,
) -> Planner:
    from tradewind.planning.planner import Planner

    return Planner(workload, catalog, now=now, rates=rates(on), checked=on is not None)


def plan(
    workload: Workload,
    *,
    catalog: Catalog | None = None,
    now: datetime | None = None,
    explain: bool = True,
    closer: bool = False,
    top: int | None = None,
) -> Plans:
    """The cheapest ways to finish in time, what was given up for them, and why the rest lost.

    `explain`: with losers, and what other deadlines would cost. `closer`: with `others`.
    """
    from tradewind.planning import planner as planning

    return planning.plan(
        workload,
        catalog=catalog,
        now=now,
        explain=explain,
        closer=closer,
        top=planning.SHOWN if top is None else top,
        rates=rates(),
    )


def on_spot(workload: Workload, catalog: Catalog) -> Plans:
    """The same work on spot machines alone, however sure."""
    from tradewind.planning import planner as planning

    return planning.on_spot(workload, catalog, rates())
