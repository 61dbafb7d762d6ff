"""What a run's user should know, said once: money that goes, and a job that does not.

Nothing else follows from it. Whoever wants to act on it reads the journal: `tradewind show` and
`tradewind watch` do.
"""

from __future__ import annotations

from collections.abc import Iterator

from tradewind.base.units import format_hours, format_money
from tradewind.lifecycle.money import countable, spent
from tradewind.lifecycle.seen import Month, Seen
from tradewind.lifecycle.state import Leg, RunState
from tradewind.model.bill import THRESHOLDS
from tradewind.model.event import Event, Warned
from tradewind.model.run import Spec


def warnings(state: RunState, spec: Spec, seen: Seen) -> list[Event]:
    found = [*_budget(state, spec, seen), *_month(state, seen.month)]
    if state.leg and state.leg.state == "running":
        found += _quiet(state, spec, seen, state.leg)
    return list(found)


def _reached(share: float) -> int:
    return max((t for t in THRESHOLDS if 100 * share >= t), default=0)


def _budget(state: RunState, spec: Spec, seen: Seen) -> Iterator[Warned]:
    if not spec.budget or not state.machines or not countable(state, seen):
        return
    gone = spent(state, seen)
    level = _reached(gone / spec.budget)
    if level <= state.warned.get("budget", 0):
        return
    left = format_money(max(spec.budget - gone, 0), digits=2)
    why = f"{level} % of its budget of {format_money(spec.budget, digits=2)} is spent; {left} left"
    if level >= 80:
        why += ", then it saves and ends: `tradewind resume --budget` continues it"
    yield Warned(about="budget", level=level, reason=why)


def _month(state: RunState, month: Month | None) -> Iterator[Warned]:
    """Anew each month: a level has the month in front."""
    if month is None:
        return
    reached = _reached(month.share)
    level = 1000 * month.number + reached
    if reached and level > state.warned.get("month", 0):
        yield Warned(about="month", level=level, reason=f"its project's month: {month.words}")


def _quiet(state: RunState, spec: Spec, seen: Seen, leg: Leg) -> Iterator[Warned]:
    """Once a leg. All of its machines are needed for work, so the busiest tells."""
    beats = [seen.beats[name][0] for name in leg.machines if name in seen.beats]
    if spec.idle_s is None or len(beats) < len(leg.machines):
        return
    for about, quiet_s, words in (
        ("idle", min(b.idle_s for b in beats), "made no step and no use of its machines"),
        ("stalled", min(b.stalled_s for b in beats), "kept its machines busy and made no step"),
    ):
        if quiet_s >= spec.idle_s:
            if state.warned.get(about, 0) < leg.number:
                why = f"the job has {words} for {format_hours(quiet_s / 3600)}"
                hint = "`tradewind logs` may tell why, `tradewind stop` ends it"
                yield Warned(about=about, level=leg.number, reason=f"{why}: {hint}")
            return
