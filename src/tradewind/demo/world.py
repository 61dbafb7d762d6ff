"""The world of the demo: what machines cost is from the catalog; their zones, and when machines are
there, are made up.

An hour of it goes by in a few seconds. How long the training takes there follows from how long it
took here without interruption, so that the same things happen on slow and on fast computers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING

from msgspec import Struct

from tradewind.api import fleet, wishes
from tradewind.base import clock
from tradewind.base.errors import NotFound
from tradewind.demo.alone import COMMAND, Alone
from tradewind.model.run import Spec, Way
from tradewind.providers.local.trace import Trace

if TYPE_CHECKING:
    from tradewind.catalog.catalog import Catalog
    from tradewind.model.offer import Market, Offer, Price
    from tradewind.model.plan import Plan

SPEED = 600.0
"""An hour in six seconds."""
_SAVE_S = 2
_NOTICE_S = 12.0
"""Longer than clouds give, by that clock: what a process needs to save is not faster here."""
_TIMES = 2.5
"""The deadline, in times of the training alone."""
_THERE = {
    "zone-a": ((0.0, 0.85),),
    "zone-b": ((0.5, 1.45),),
    "zone-c": ((1.9, 2.1),),
}
"""When spot machines can be had: in times of the training alone. Before it can be done there are
none for so long that it is on demand, or late."""


class World(Struct, frozen=True, kw_only=True):
    spec: Spec
    wish: wishes.TraceWish


def made(plans: Sequence[Plan], catalog: Catalog, alone: Alone, steps: int) -> World:
    """Priced as the first of these plans on spot that is cheaper than its accelerators are on
    demand anywhere."""
    for plan in plans:
        safe = _on_demand(plan, catalog) if "spot" in plan.price_hour else None
        if safe and safe[1].micros_hour > plan.price_hour["spot"]:
            break
    else:
        raise NotFound(
            "no plan is on spot machines that cost less than on demand, so there is nothing to be"
            " interrupted",
            hint="are prices stale? `tradewind catalog refresh` fetches new ones",
        )
    ways = _ways(plan, safe, alone, steps)
    now_s = clock.now().timestamp()
    once_s = alone.start_s + alone.work_s
    spec = Spec(
        name="demo",
        work=float(steps),
        ways=ways,
        deadline_s=now_s + ceil(_TIMES * once_s),
        checkpoint_every_s=_SAVE_S,
        checkpoint_bytes=3_000_000,
        job={"command": COMMAND.format(steps=steps), "env": {"OMP_NUM_THREADS": "1"}},
        speed=SPEED,
    )
    traces = {zone: _trace(zone, spans, once_s * SPEED) for zone, spans in _THERE.items()}
    wish = wishes.TraceWish(
        traces=traces,
        began_s=now_s,
        speed=SPEED,
        notice_s=_NOTICE_S,
        least_s=_NOTICE_S,
        measured=False,
    )
    return World(spec=spec, wish=wish)


def _on_demand(plan: Plan, catalog: Catalog) -> tuple[Offer, Price] | None:
    """The cheapest with the same accelerators."""
    there = catalog.offers(plan.accelerator, count=plan.accelerator_count, market="on_demand")
    return next(there.priced(), None)


def _ways(plan: Plan, on_demand: tuple[Offer, Price], alone: Alone, steps: int) -> tuple[Way, ...]:
    """The plan's machines on spot, and those on demand. All of them are this computer, and so
    equally fast."""

    def way(market: Market, zone: str, type_: str, provider: str, micros_hour: int) -> Way:
        return Way(
            provider="local",
            region=provider,
            zone=zone,
            instance_type=type_,
            market=market,
            nodes=1,
            price=round(micros_hour * SPEED),
            rate=steps / alone.work_s,
            start_s=alone.start_s,
            facts=fleet.facts("local"),
        )

    spot = [
        way("spot", zone, plan.instance_type, plan.provider, plan.price_hour["spot"])
        for zone in _THERE
    ]
    offer, price = on_demand
    zone = offer.zone or offer.region
    safe = way("on_demand", zone, offer.instance_type, offer.provider, price.micros_hour)
    return (*spot, safe)


def _trace(zone: str, spans: Sequence[tuple[float, float]], once_s: float) -> Trace:
    counts, ends = [], []
    at = 0.0
    for first, last in spans:
        if first > at:
            counts.append(0)
            ends.append(first * once_s)
        counts.append(1)
        ends.append(last * once_s)
        at = last
    counts.append(0)
    ends.append(1e9)  # longer than anybody looks
    return Trace(f"demo-{zone}", zone, 1, tuple(counts), tuple(ends))
