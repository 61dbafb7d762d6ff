"""What a run has seen of the capacity of a way, as a policy wants to be told it.

Only launches, refusals and interruptions are seen, by clocks that may be wrong: beliefs follow from
it, and nothing that must hold. A launch shows capacity for as long as its machines were kept.
Refusals show that there was none, and so does the time between two of them that are close together;
else nobody looked.
"""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct

from tradewind.lifecycle.state import RunState, Sight
from tradewind.model.run import Way
from tradewind.policy.base import Spell
from tradewind.policy.plain import REFUSED_S

_MOMENT_S = 60.0
"""What one refusal shows."""
_CLOSE_S = 1800.0


class Answer(Struct, frozen=True):
    """What came of asking for machines, or of holding them: for plans to come."""

    way: Way
    there: bool
    at_s: float
    held_s: float = 0.0
    """How long they had been held then; 0 where it is the answer to a launch. Where they are not
    there any more, they were taken."""


def answers(before: RunState, after: RunState) -> list[Answer]:
    """What a run has learned of capacity between two of its states. A launch and machines that are
    given back show that it was there, a refusal and an interruption that it was not."""
    found = []
    ways = {request.way.what: request.way for request in after.requests.values()}
    for what, seen in after.sights.items():
        old = before.sights.get(what, ())
        if not seen or (old and seen[-1] == old[-1]) or what not in ways:
            continue
        last, held_s = seen[-1], 0.0
        if len(seen) > 1 and seen[-2].up and last.up is not True:
            held_s = max(last.at_s - seen[-2].at_s, 0.0)
        found.append(Answer(ways[what], last.up is not False, last.at_s, held_s))
    return found


class Capacity(Struct, frozen=True):
    up: bool | None
    since_s: float
    history: tuple[Spell, ...]


def of(
    state: RunState,
    way: Way,
    now: float,
    refused_s: float | None,
    speed: float = 1.0,
    *,
    held: bool,
) -> Capacity:
    """`refused_s` and what is answered are in the time of the run's world, `speed` times as fast as
    ours."""
    seen = state.sights.get(way.what, ())
    if not seen:
        return Capacity(True if held else None, 0.0, ())
    since_s = max(now - seen[-1].at_s, 0.0) * speed
    if held and seen[-1].up:
        return Capacity(True, since_s, _spells(seen, speed))
    if way.market != "spot":
        # Safe machines have no regimes: a refusal is believed for a while.
        refused = refused_s is not None and refused_s < REFUSED_S
        return Capacity(False if refused else None, since_s, ())
    return Capacity(None, since_s, _spells(seen, speed, ended=True))


def held_s(state: RunState, way: Way | None, now: float) -> float:
    seen = state.sights.get(way.what, ()) if way else ()
    return max(now - seen[-1].at_s, 0.0) if seen and seen[-1].up else 0.0


def _spells(seen: tuple[Sight, ...], speed: float, *, ended: bool = False) -> tuple[Spell, ...]:
    """Without the last sight, whose spell goes on; with what it showed, if that is over."""
    found: list[Spell] = []
    for sight, then in pairwise(seen):
        lasted_s = max(then.at_s - sight.at_s, 0.0) * speed
        if sight.up is False and not (then.up is False and lasted_s <= _CLOSE_S):
            _add(found, False, min(_MOMENT_S, lasted_s))
            _add(found, None, max(lasted_s - _MOMENT_S, 0.0))
        else:
            _add(found, sight.up, lasted_s)
    if ended and seen[-1].up is False:
        _add(found, False, _MOMENT_S)
    return tuple(found)


def _add(found: list[Spell], up: bool | None, lasted_s: float) -> None:
    if lasted_s <= 0:
        return
    if found and found[-1][0] is up:
        lasted_s += found.pop()[1]
    found.append((up, lasted_s))
