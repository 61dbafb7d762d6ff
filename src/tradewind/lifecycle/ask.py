"""Asking a policy, and what to do when it fails: on demand, and loudly.

A policy is the one part of a decision that others may write. Whatever it raises or answers, the run
goes on: on the safest machines, by a rule that needs no policy.
"""

from __future__ import annotations

from typing import Any

from tradewind.lifecycle.state import RunState
from tradewind.model.event import Event, Warned
from tradewind.policy import careful, plain, safety
from tradewind.policy.base import Choice, Known, Policy


def ask(policy: Policy, known: Known) -> tuple[Choice, str]:
    """Its choice, and what is wrong with it; empty where nothing is."""
    try:
        choice: Any = policy(known)
        wrong = _wrong(choice, known)
    except Exception as error:
        wrong = f"{type(error).__name__}: {error}"
    if not wrong:
        return choice, ""
    instead = safety.safest(known)
    if instead.option is None:
        instead = plain.choose(known)
    trouble = f"the policy cannot be used ({wrong}), so machines on demand are held instead"
    return Choice(instead.option, f"{trouble}: {instead.reason}"), trouble


def must_move(known: Known, choice: Choice, trouble: str) -> bool:
    """Whether what is held (the first option) is left for the choice. What works is not left
    because a policy fails, but the net holds without one: what may be taken is left for safe
    machines while these still make it."""
    if choice.option in (0, None):
        return False
    if not trouble:
        return True
    return not safety.affordable(careful.with_margin(known), 0) and safety.affordable(
        known, choice.option
    )


def loudly(state: RunState, leg: int, trouble: str) -> list[Event]:
    """Once for each leg that a policy fails in or before."""
    if not trouble or state.warned.get("policy", 0) >= leg:
        return []
    return [Warned(about="policy", level=leg, reason=trouble)]


def _wrong(choice: Any, known: Known) -> str:
    if not isinstance(choice, Choice):
        return f"it answers {choice!r}"
    option = choice.option
    if option is None:
        return ""
    if type(option) is not int or not 0 <= option < len(known.options):
        return f"it chooses {option!r} of {len(known.options)} ways"
    return ""
