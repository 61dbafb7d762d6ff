"""A run in words: its events, how it stands, how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tradewind import clock
from tradewind.model import event as events
from tradewind.units import format_hours, format_money

if TYPE_CHECKING:
    from tradewind.controller.memory import Pulse
    from tradewind.runs.state import RunState
    from tradewind.runs_store import Loaded

OUTCOMES = {
    "succeeded": "done",
    "failed": "failed",
    "cancelled": "stopped by its user",
    "out_of_budget": "stopped: its budget is spent",
    "too_late": "stopped: its deadline has passed",
    "too_long": "stopped: its machines were up for as long as they may be",
    "idle": "stopped: it did nothing",
    "abandoned": "never submitted",
}


def event_words(event: events.Event) -> str:
    """One line; empty for what only bookkeepers want to see."""
    match event:
        case events.Submitted():
            return f"submitted: {event.spec.job.get('command', event.spec.name)}"
        case events.LegRequested():
            return f"leg {event.request.leg}: {event.reason}"
        case events.MachinesFound():
            return f"machines: {', '.join(m.machine_id for m in event.machines)} ({event.reason})"
        case events.LaunchRefused():
            return f"leg {event.leg} refused, {event.kind.replace('_', ' ')}: {event.reason}"
        case events.LaunchUnknown():
            return f"leg {event.leg}: it is not known what became of the launch: {event.reason}"
        case events.LegUp():
            return f"leg {event.leg} is up: {event.reason}"
        case events.LegDraining():
            return f"leg {event.leg} is to save and stop ({event.cause}): {event.reason}"
        case events.LegOver():
            tail = f"\n{_indented(event.tail)}" if event.tail else ""
            return (
                f"leg {event.leg} is over ({event.cause.replace('_', ' ')}): {event.reason}{tail}"
            )
        case events.Forecast():
            return f"forecast: {event.reason}"
        case events.Warned():
            return f"note: {event.reason}"
        case events.CancelAsked():
            return f"stop asked for: {event.reason}"
        case events.Ended():
            return f"{OUTCOMES.get(event.outcome, event.outcome)}: {event.reason}"
        case events.Resumed():
            return f"resumed: {event.reason}"
        case events.Abandoned():
            return f"abandoned: {event.reason}"
        case _:
            return ""


def status(state: RunState, pulses: Mapping[str, Pulse], now: float) -> str:
    """How it stands, in one line."""
    spec, leg = state.spec, state.leg
    if spec is None:
        return "not submitted yet"
    if leg is None:
        return OUTCOMES.get(state.outcome, "waiting for machines")
    beat = next((pulses[name].beat for name in leg.machines if name in pulses), None)
    parts = [f"leg {leg.number}", leg.request.way.words]
    if beat is None:
        parts.append("buying" if leg.state == "requested" else "booting")
    else:
        parts.append(beat.doing)
        if beat.step:
            parts.append(f"step {beat.step:,.0f} of {spec.work:,.0f}")
        if beat.rate:
            parts.append(f"{beat.rate:,.3g}/s")
            left_s = max(spec.work - beat.step, 0.0) / beat.rate
            parts.append(f"done in {format_hours(left_s / 3600)}")
    if spec.deadline_s is not None:
        left = spec.deadline_s - now
        parts.append(f"deadline in {format_hours(left / 3600)}" if left > 0 else "LATE")
    return " · ".join(parts)


def cost(loaded: Loaded) -> int:
    """So far, micro-dollars."""
    from tradewind.ledger.postings import cost_of

    now = int(clock.now().timestamp())
    return cost_of(loaded.run_id, loaded.events, now=now).micros


def outcome(state: RunState) -> str:
    """How it ended, in words."""
    return OUTCOMES.get(state.outcome, state.outcome)


def ending(loaded: Loaded) -> str:
    state = loaded.state
    legs = len({rented.machine.leg for rented in state.machines.values()})
    return f"{outcome(state)}; {legs} leg{'s' if legs != 1 else ''}, {format_money(cost(loaded))}"


def _indented(text: str) -> str:
    return "\n".join("    " + line for line in text.rstrip().splitlines()[-10:])
