"""What the page's script is given: every way, the front, the limits, the losers. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any

from tradewind.web import words
from tradewind.web.words import clean

if TYPE_CHECKING:
    from tradewind.model.plan import Loser, Plan, Plans

MOST_LOSERS = 2000

KINDS = {
    "money": "costs more",
    "capacity": "hardly available",
    "time": "too slow",
    "memory": "does not fit",
    "price": "no sound price",
    "quota": "over the quota",
    "limits": "not allowed",
    "layout": "cannot be split",
    "chip": "cannot run it",
}

COLUMNS = (
    "machines", "chips", "place", "markets", "own", "hours", "hoursLow", "hoursHigh", "cost",
    "costLow", "costHigh", "chance", "startup", "spot", "onDemand", "held", "interruptions",
    "checkpoint", "checkpointBytes", "costs", "prices", "asOf", "source", "band", "layout",
    "software", "memory", "capacity", "speed", "had", "hadBy", "network", "weighed",
)  # fmt: skip


def ways(plans: Plans) -> list[Plan]:
    """All that were computed, each once, the cheapest first."""
    given = [*([plans.best] if plans.best else []), *plans.plans, *plans.front, *plans.others]
    seen: dict[tuple[Any, ...], Plan] = {}
    for plan in given:
        if isfinite(plan.hours) and plan.hours > 0:
            seen.setdefault(_key(plan), plan)
    return sorted(seen.values(), key=lambda plan: (plan.cost, plan.hours))


def data(plans: Plans) -> dict[str, Any]:
    found = ways(plans)
    at = {_key(plan): number for number, plan in enumerate(found)}

    def numbers(some: Iterable[Plan]) -> list[int]:
        return [at[_key(plan)] for plan in some if _key(plan) in at]

    best = numbers([plans.best] if plans.best else [])
    limits = plans.workload.limits
    # Near misses first, then those that never had a price.
    order = sorted(plans.losers, key=lambda one: (one.cost is None, one.cost or 0))
    lost = order[:MOST_LOSERS]
    return {
        "columns": COLUMNS,
        "ways": [_row(plan) for plan in found],
        "front": numbers(plans.front),
        "best": best[0] if best else None,
        "deadline": _number(plans.deadline_hours),
        "budget": limits.budget,
        "confidence": limits.sure,
        "kinds": [
            [kind, KINDS.get(kind, clean(kind)), count]
            for kind, count in Counter(one.kind for one in lost).most_common()
        ],
        "losers": [_loser(one) for one in lost],
    }


def as_json(value: dict[str, Any]) -> str:
    """For the inside of a script element: nothing in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def number_of(plans: Plans) -> dict[int, int]:
    """Where each of the best few stands among all ways."""
    at = {_key(plan): number for number, plan in enumerate(ways(plans))}
    return {i: at[_key(plan)] for i, plan in enumerate(plans.plans) if _key(plan) in at}


def _key(plan: Plan) -> tuple[Any, ...]:
    return (
        plan.provider, plan.region, plan.zone, plan.instance_type, plan.nodes, plan.markets,
        plan.cost, plan.hours,
    )  # fmt: skip


def _row(plan: Plan) -> list[Any]:
    values = {
        "machines": clean(words.machines(plan)),
        "chips": clean(words.chips(plan)),
        "place": clean("your own" if plan.own else words.place(plan)),
        "markets": clean(words.markets(plan)),
        "own": plan.own,
        "hours": plan.hours,
        "hoursLow": plan.hours_low,
        "hoursHigh": plan.hours_high,
        "cost": plan.cost,
        "costLow": plan.cost_low,
        "costHigh": plan.cost_high,
        "chance": plan.chance,
        "startup": plan.startup_hours,
        "spot": plan.spot_hours,
        "onDemand": plan.on_demand_hours,
        "held": "reserved" in plan.markets,
        "interruptions": plan.interruptions,
        "checkpoint": plan.checkpoint_every_s,
        "checkpointBytes": plan.checkpoint_bytes,
        "costs": {clean(name): micros for name, micros in plan.costs.items()},
        "prices": {clean(name): micros for name, micros in plan.price_hour.items()},
        "asOf": clean(plan.price_as_of),
        "source": clean(words.source(plan)),
        "band": clean(plan.band),
        "layout": clean(plan.layout_words),
        "software": clean(", ".join(dict.fromkeys(filter(None, (plan.stack, plan.precision))))),
        "memory": plan.memory_gb,
        "capacity": round(plan.capacity_gb, 1),
        "speed": plan.samples_per_s,
        "had": plan.had,
        "hadBy": clean(plan.had_by),
        "network": clean(plan.network),
        "weighed": plan.weighed,
    }
    return [_number(v) if isinstance(v, float) else v for v in (values[c] for c in COLUMNS)]


def _loser(one: Loser) -> list[Any]:
    return [
        one.kind,
        clean(one.provider),
        clean(one.instance_type),
        clean(f"{one.accelerator_count:g} × {one.accelerator}"),
        clean(one.why),
        _number(one.hours),
        one.cost,
    ]


def _number(value: float | None) -> float | None:
    """Five digits are more than anything here is known to."""
    return float(f"{value:.5g}") if value is not None and isfinite(value) else None
