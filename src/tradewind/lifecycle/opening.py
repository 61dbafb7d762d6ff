"""What a run's schedule allows now: nothing is bought outside of its windows, and what is under way
saves in time to be gone when one closes, and goes on in the next.

Machines end themselves then too, by their hard stop, where no controller looks: counted from their
launch it is a minute and a half longer than what is left of the window, in which they report and
shut down. Only what waits in a queue and begins late may outlast it further, until a controller
looks.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from math import inf

from tradewind.lifecycle.fold import WINDOW
from tradewind.lifecycle.state import RunState
from tradewind.model.event import Event, Warned
from tradewind.model.run import Request, Spec, Way
from tradewind.model.timing import DRAIN_S


def left_s(spec: Spec, now: float) -> float:
    """For how long machines may be up from now on; 0 outside of windows."""
    closes = spec.schedule.closes_s(now)
    return 0.0 if closes is None else closes - now


def fits(way: Way, open_s: float) -> bool:
    """Whether it would work for at least as long as it takes to start, and have time to save."""
    return open_s >= 2 * way.start_s + DRAIN_S


def again_s(ways: tuple[Way, ...]) -> float:
    """What each further window costs."""
    return max((way.start_s for way in ways), default=0.0) + DRAIN_S


def closing(spec: Spec, request: Request, now: float) -> tuple[str, str] | None:
    """Why a leg is to end now, if its window closes. By the window that it was bought for: clocks
    differ, and one that is slow must not end what another has just begun."""
    closes = request.until_s
    if closes is None or now < closes - DRAIN_S:
        return None
    opens = told(spec, spec.schedule.opens_after_s(closes))
    return WINDOW, f"its window closes at {told(spec, closes)}; it goes on at {opens}"


def again(state: RunState, until_s: float) -> bool:
    """Whether a leg has been ended because this very window closes, and by a clock that is faster
    than ours: it is not bought again."""
    last = state.requests[max(state.requests)] if state.requests else None
    was_s = last.until_s if last and state.over_cause == WINDOW else None
    return was_s is not None and was_s >= until_s


def waits(state: RunState, spec: Spec, now: float) -> list[Event]:
    """Said once for each window that is waited for."""
    open_s = left_s(spec, now)
    opens = spec.schedule.opens_s(now) if not open_s else spec.schedule.opens_after_s(now + open_s)
    if opens == inf or state.warned.get(WINDOW, 0) >= int(opens):
        return []
    return [
        Warned(
            about=WINDOW,
            level=int(opens),
            reason=f"nothing is launched before {told(spec, opens)}",
        )
    ]


def told(spec: Spec, moment_s: float) -> str:
    """`2026-11-16 06:00 Europe/Berlin`, by the clock of the schedule's first window."""
    if moment_s == inf:
        return "no time that is known"
    offset, zone = 0, "UTC"
    for window in spec.schedule.windows[:1]:
        offset, zone = window.offset_s(moment_s), window.zone
    moment = datetime.fromtimestamp(moment_s, UTC).astimezone(timezone(timedelta(seconds=offset)))
    return f"{moment:%Y-%m-%d %H:%M} {zone}"
