"""A run in words: its events, how it stands, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from tradewind.base.plaintext import one_line
from tradewind.base.units import format_hours, format_money
from tradewind.lifecycle.words import OUTCOMES, outcome_words
from tradewind.lifecycle.words import event_words as event_words
from tradewind.model.event import Ended, Event, LegOver, Resumed

if TYPE_CHECKING:
    from tradewind.journal.runs_store import Loaded
    from tradewind.lifecycle.state import RunState
    from tradewind.model.run import Heartbeat
    from tradewind.store.base import Store

_AS_WISHED = ("succeeded", "cancelled")


def status(
    state: RunState, beats: Mapping[str, Heartbeat], now: float, cost: int | None = None
) -> str:
    """How it stands, in one line: step, speed, forecast, money, and last where, which is long."""
    spec, leg = state.spec, state.leg
    if spec is None:
        return "not submitted yet"
    money = [] if cost is None else [format_money(cost)]
    if leg is None:
        words = OUTCOMES.get(state.outcome, "waiting for machines")
        return " · ".join([words, *money, *_until(spec.deadline_s, now, state.outcome)])
    beat = next((beats[name] for name in leg.machines if name in beats), None)
    parts = [f"leg {leg.number}"]
    if beat is None:
        parts.append("buying" if leg.state == "requested" else "booting")
    else:
        parts.append(beat.doing)
        if beat.step:
            of = f" of {spec.work:,.0f}" if spec.steps else ""
            parts.append(f"step {beat.step:,.0f}{of}")
        if beat.rate:
            parts.append(f"{beat.rate:,.3g}/s")
            if spec.steps:
                left_s = max(spec.work - beat.step, 0.0) / beat.rate
                parts.append(f"done in {format_hours(left_s / 3600)}")
    parts += [*money, *_until(spec.deadline_s, now, state.outcome), leg.request.way.words]
    return one_line(" · ".join(parts))


def _until(deadline_s: float | None, now: float, outcome: str) -> list[str]:
    if deadline_s is None or outcome:
        return []
    left = deadline_s - now
    return [f"deadline in {format_hours(left / 3600)}" if left > 0 else "LATE"]


def cost(loaded: Loaded) -> int:
    """So far, micro-dollars."""
    from tradewind.base import clock
    from tradewind.ledger.postings import cost_of

    now = int(clock.now().timestamp())
    return cost_of(loaded.run_id, loaded.events, now=now).micros


def outcome(state: RunState) -> str:
    """How it ended, in words."""
    return outcome_words(state.outcome)


def more(events: Iterable[Event]) -> str | None:
    """The command that explains why it did not end well: by the last words of its job, by how its
    last leg was over, else by its end."""
    from tradewind.cli.help import topics

    told = [event for event in events if isinstance(event, (LegOver, Ended, Resumed))]
    if not told or not isinstance(told[-1], Ended) or told[-1].outcome in _AS_WISHED:
        return None
    tails = [event.tail for event in told[-2:-1] if isinstance(event, LegOver)]
    found = (topics.more(text) for text in [*tails, *map(event_words, told[-2:])])
    return next((command for command in found if command), None)


def ending(state: RunState, micros: int) -> str:
    legs = len({rented.machine.leg for rented in state.machines.values()})
    return f"{outcome(state)}; {legs} leg{'s' if legs != 1 else ''}, {format_money(micros)}"


def named(store: Store, name: str) -> str:
    """The run that is meant; which one that is, where several have the name."""
    from tradewind.cli import render
    from tradewind.journal import runs_store

    found = runs_store.meant(store, name)
    if found.of > 1:
        which = "the newest that goes on" if found.live else "the newest"
        render.remark(f"{name}: {which} of {found.of} runs, {found.run_id}")
    return found.run_id
