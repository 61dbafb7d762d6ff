"""Where no plan keeps every limit: which of them binds, in words. Pure."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import TYPE_CHECKING

from tradewind.base.units import format_money

if TYPE_CHECKING:
    from tradewind.model.plan import Plans

KINDS = {
    "money": "dearer",
    "time": "too slow or too unsure",
    "capacity": "too unlikely to be available",
    "memory": "without the memory",
    "price": "without a price to trust",
    "limits": "outside your limits",
    "quota": "over your quota",
    "layout": "without a layout that suits",
    "chip": "unfit to train this",
}
_LIMITS = {
    "deadline": "the deadline",
    "confidence": "the confidence",
    "budget": "the budget",
    "markets": "markets",
    "regions": "regions",
    "providers": "providers",
    "accelerators": "accelerators",
    "exclude": "exclude",
    "carbon": "carbon",
    "max_nodes": "max_nodes",
    "max_accelerators": "max_accelerators",
}


OLD_DAYS = 30


def old_prices(plans: Plans) -> str:
    """Whose prices among the first answers are old, and what renews them; empty where none are."""
    made = plans.made_at.date()
    ages: dict[str, int] = {}
    for plan in plans.plans:
        if plan.price_as_of and not plan.own:
            age = (made - date.fromisoformat(plan.price_as_of)).days
            if age > OLD_DAYS:
                ages[plan.provider] = max(age, ages.get(plan.provider, 0))
    if not ages:
        return ""
    listed = ", ".join(f"{name} {ages[name]} days" for name in sorted(ages))
    return f"prices are old: {listed}. `tradewind catalog refresh` renews them"


def what_binds(plans: Plans) -> str:
    """For the error: which limit to give way on."""
    if plans.relaxations:
        cheapest = min(plans.relaxations, key=lambda r: r.plan.cost)
        limits = " or ".join(_LIMITS.get(r.limit, r.limit) for r in plans.relaxations)
        words = f"{cheapest.why} it would cost {format_money(cheapest.plan.cost, digits=2)}"
        if "together" in cheapest.why:
            words = f"{cheapest.why} it would do"
        return f"what binds is {limits}; {words}"
    if plans.front:
        return "more than one limit must be relaxed: deadline and budget together"
    kinds = Counter(loser.kind for loser in plans.losers if loser.kind != "price")
    if kinds:
        return f"most types are {KINDS.get(kinds.most_common(1)[0][0])}; --all-losers lists all"
    return "--all-losers says why each type cannot do it"
