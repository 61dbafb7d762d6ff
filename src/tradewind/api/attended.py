"""Clouds whose machines only a controller ends, and what that means for a run's money and hours:
said, or refused, before any is spent.

A budget or a window is kept without anybody watching because machines end themselves. Where
shutting down does not end the bill (`Facts.ends` is `never`), only controllers keep it. A detached
run has one, a process of this computer: it is gone when the computer sleeps or restarts, and the
bill goes on.
Whether another one will look, no sign in the store can promise: the user says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_money, format_names
from tradewind.providers import registry
from tradewind.providers.registry import LOCAL

if TYPE_CHECKING:
    from tradewind.model.run import Spec


def endless(spec: Spec) -> list[str]:
    """The clouds among its ways that bill machines until a controller ends them, as people write
    them."""
    names = dict.fromkeys(way.provider for way in spec.ways if way.facts.ends == "never")
    return [title(name) for name in names]


def title(provider: str) -> str:
    """Its name alone, where this version does not know it: a newer one has written the journal."""
    return registry.cloud(provider).title if provider in registry.CLOUDS else provider


def words(spec: Spec) -> str:
    """What that means, in a line; empty where everything ends by itself."""
    found = endless(spec)
    if not found:
        return ""
    return f"only a controller ends the bill of machines of {format_names(found)}"


def check(spec: Spec, *, attended: bool) -> None:
    """Before a detached run is recorded. `attended`: the user says that a controller will look."""
    found = endless(spec)
    if attended or not found:
        return
    limit = _limit(spec)
    if not limit:
        return
    clouds = format_names(found)
    others = list(dict.fromkeys(way.provider for way in spec.ways if way.facts.ends != "never"))
    rents = any(name != LOCAL for name in others)  # alone, --on local is a rehearsal
    without = f" --on {','.join(others)} leaves {clouds} out;" if rents else ""
    raise InvalidValue(
        f"{limit} cannot be kept by a detached run on {clouds}: machines there are billed until a"
        " controller ends them, also after their hard stop, and a process in the background is gone"
        " when this computer sleeps or restarts",
        hint=f"stay attached, without --detach;{without} --attended says that a controller looks in"
        " any case: `tradewind watch` on a computer that stays up, or `tradewind tick` from cron",
    )


def _limit(spec: Spec) -> str:
    """Of money or hours, that is to be kept whatever happens; empty: there is none."""
    from tradewind.controller import budgetfile
    from tradewind.ledger.budgets import STOP

    if spec.budget is not None:
        return f"the budget of {format_money(spec.budget, digits=2)}"
    if spec.schedule.windows:
        return f"the window {spec.schedule.words}"
    month = budgetfile.load().of(spec.project)
    if month is None or month.what != STOP:
        return ""
    whose = f"project {spec.project}" if spec.project else "runs without a project"
    return f"the month's budget of {whose}, {format_money(month.month, digits=2)},"
