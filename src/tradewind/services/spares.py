"""How many more spot replicas than are needed: the target holds when a place is taken. Pure.

Those of one place are taken together. Until others are up, so much is late as is more than the rest
can answer. How often that happens is counted from the journal, with a guess of once in six hours
in each place to begin with. Where it would make more late than half of what the target allows,
as many more are kept as the fullest place has; elsewhere only the plan's spares. Where all places
but one are gone, nothing more is put into that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from tradewind.model.service import ServiceSpec
from tradewind.services.seen import Seen
from tradewind.services.state import ServiceState

_BACK_S = 48 * 3600.0
_GUESS_S = 6 * 3600.0
_COLD_S = 180.0


def spares(
    state: ServiceState, spec: ServiceSpec, seen: Seen, places: Sequence[str], spot: int
) -> int:
    """`spot`: so many on spot are needed; `places`: where they can be."""
    if len(places) < 2:
        return spec.spare  # what is taken together cannot stand in for itself
    if not risky(state, spec, seen, len(places)):
        return spec.spare
    return max(spec.spare, ceil(spot / (len(places) - 1)))


def risky(state: ServiceState, spec: ServiceSpec, seen: Seen, places: int) -> bool:
    return _late(state, seen, places) > (1 - spec.goal) / 2


def _late(state: ServiceState, seen: Seen, places: int) -> float:
    """The share of requests, by what was taken lately."""
    cold_s = sorted(state.cold)[len(state.cold) // 2] if state.cold else _COLD_S
    ages = [seen.known_s(number) for number in state.taken]
    watched_s = min(seen.known_s(1), _BACK_S)
    often = (sum(age < _BACK_S for age in ages) + places) / (watched_s + _GUESS_S)
    return often * cold_s / places
