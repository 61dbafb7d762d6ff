"""The policies by name."""

from __future__ import annotations

from tradewind.base.errors import NotFound
from tradewind.policy import expected, simple
from tradewind.policy.base import Policy

POLICIES: dict[str, Policy] = {
    "on-demand": simple.on_demand,
    "spot": simple.spot,
    "greedy": simple.greedy,
    "uniform": simple.uniform,
    "tradewind": expected.choose,
}
NETLESS = ("spot",)
"""Those that may be late."""


def named(name: str) -> Policy:
    try:
        return POLICIES[name]
    except KeyError:
        raise NotFound(
            f"there is no policy {name!r}",
            hint=f"the policies are {', '.join(POLICIES)}",
            choices=tuple(POLICIES),
        ) from None
