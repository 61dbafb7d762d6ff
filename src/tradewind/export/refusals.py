"""Machines of a plan that a kind does not have."""

from __future__ import annotations

from collections.abc import Collection

from tradewind.export.exported import Refused
from tradewind.model.plan import Plan


def only_of(plan: Plan, clouds: Collection[str], has: str, *, nearest: str) -> None:
    """Refuses machines elsewhere; `has` says where the kind's are."""
    if plan.own or plan.provider not in clouds:
        where = "machines of your own" if plan.own else plan.provider
        raise Refused(f"the plan is for {where}, and {has}", nearest=nearest)


def not_reserved(plan: Plan, but: str) -> None:
    """`but`: what the kind does with capacity that is reserved, in words."""
    if "reserved" in plan.markets:
        raise Refused(
            f"the plan is for capacity that is reserved, which {but}",
            nearest="--market spot, or --market on_demand",
        )
