"""Asking a policy, and what to do when it fails: on demand, and loudly.

A policy is the one part of a decision that others may write. Whatever it raises or answers, the run
goes on: on the safest machines, by a rule that needs no policy.
"""

from __future__ import annotations

from typing import Any

from tradewind.policy import plain, safety
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


def _wrong(choice: Any, known: Known) -> str:
    if not isinstance(choice, Choice):
        return f"it answers {choice!r}"
    option = choice.option
    if option is None:
        return ""
    if type(option) is not int or not 0 <= option < len(known.options):
        return f"it chooses {option!r} of {len(known.options)} ways"
    return ""
