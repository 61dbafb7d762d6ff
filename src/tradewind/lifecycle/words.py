"""A run's events and outcomes in words. Pure."""

from __future__ import annotations

from tradewind.base.plaintext import one_line, visible
from tradewind.model import event as events

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


def outcome_words(outcome: str) -> str:
    return OUTCOMES.get(outcome, outcome.replace("_", " "))


def event_words(event: events.Event) -> str:
    """One line, and below it the last output of a job; empty for what only bookkeepers want to see.
    Much of it is what machines and providers said."""
    words = one_line(_words(event))
    tail = _indented(event.tail) if isinstance(event, events.LegOver) else ""
    return f"{words}\n{tail}" if tail else words


def _words(event: events.Event) -> str:
    match event:
        case events.Submitted():
            return f"submitted: {event.spec.shown_command or event.spec.name}"
        case events.LegRequested():
            return f"leg {event.request.leg}: {event.reason}"
        case events.MachinesFound():
            return f"machines: {', '.join(m.machine_id for m in event.machines)} ({event.reason})"
        case events.LaunchRefused():
            return f"leg {event.leg} refused, {event.kind.replace('_', ' ')}: {event.reason}"
        case events.LaunchUnknown():
            return f"leg {event.leg}: unknown whether the launch succeeded: {event.reason}"
        case events.LegQueued():
            return f"leg {event.leg} waits in a queue: {event.reason}"
        case events.LegUp():
            return f"leg {event.leg} is up: {event.reason}"
        case events.LegLimited():
            return f"leg {event.leg} has less time: {event.reason}"
        case events.LegDraining():
            return f"leg {event.leg} must save and stop ({event.cause}): {event.reason}"
        case events.LegOver():
            lost = event.step - event.saved if event.cause != "finished" else 0.0
            undone = f"; {lost:,.0f} steps were not saved" if lost >= 1 else ""
            return (
                f"leg {event.leg} ended ({event.cause.replace('_', ' ')}): {event.reason}{undone}"
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


def _indented(text: str) -> str:
    return "\n".join("    " + visible(line) for line in text.rstrip().splitlines()[-10:])
