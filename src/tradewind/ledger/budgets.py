"""Budgets of projects, by the month (UTC's), and what may still be spent.

A budget with `stop` limits what is bought: before each launch, `cap` says the most that the run may
come to. It counts what every run of the project has spent this month, and what machines that are up
elsewhere can still come to until their bill ends (`Posting.stop_s`); so runs that know nothing of
each other do not spend the same money twice, unless they buy in the same instant. While that leaves
too little, but what is spent leaves enough, a run should wait rather than end. A budget with `warn`
limits nothing.

Micro-dollars. A machine's moments are its provider's, and `now_s` is whoever asks's own: where a
month begins and ends, seconds between clocks do not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from msgspec import Struct

from tradewind.base.units import format_money
from tradewind.ledger.periods import between, month_name, month_start, next_month
from tradewind.ledger.postings import MACHINE, Posting
from tradewind.model.bill import THRESHOLDS
from tradewind.model.channels import Channels
from tradewind.model.run import Spec

STOP, WARN = "stop", "warn"


class Budget(Struct, frozen=True, kw_only=True):
    month: int
    what: str = STOP
    """What happens when it is spent: stop, warn"""


class Budgets(Struct, frozen=True, kw_only=True):
    projects: Mapping[str, Budget] = {}
    default: Budget | None = None
    """Of each project that is not named, and of runs without one."""
    tell: Channels = Channels()
    """Where warnings go besides."""

    def of(self, project: str) -> Budget | None:
        return self.projects.get(project, self.default)

    def __bool__(self) -> bool:
        return bool(self.projects) or self.default is not None


class Standing(Struct, frozen=True, kw_only=True):
    """How a project stands in its month."""

    project: str
    month: str
    """2026-11"""
    budget: Budget
    spent: int
    committed: int
    """The most that its open machines can still come to, past the month's end too: else whatever is
    bought in the last minutes of a month would be limited by nothing."""
    resets_s: int
    """When the next month begins."""

    @property
    def left(self) -> int:
        return max(self.budget.month - self.spent, 0)

    @property
    def share(self) -> float:
        return self.spent / self.budget.month if self.budget.month else float(self.spent > 0)

    @property
    def crossed(self) -> tuple[int, ...]:
        """The thresholds that are reached."""
        if not self.spent and self.budget.month:
            return ()
        return tuple(t for t in THRESHOLDS if 100 * self.spent >= t * self.budget.month)

    @property
    def words(self) -> str:
        """What the last threshold that was reached means."""
        left = format_money(self.left, digits=2)
        if not self.crossed:
            return f"{left} left"
        reached = self.crossed[-1]
        if reached < 80:
            return f"more than half is spent; {left} left"
        if reached < 100:
            then = "nothing more is bought" if self.budget.what == STOP else "runs continue"
            return f"nearly spent; {left} left, then {then}"
        over = self.spent - self.budget.month
        spent = f"over by {format_money(over, digits=2)}" if over else "spent"
        if self.budget.what == WARN:
            return f"{spent}; it only warns: runs continue"
        day = datetime.fromtimestamp(self.resets_s, UTC).strftime("%Y-%m-%d")
        return f"{spent}; nothing more is bought before {day}"


def standing(
    postings: Iterable[Posting], budgets: Budgets, project: str, now_s: int
) -> Standing | None:
    """`postings` are all runs'; None where the project has no budget."""
    budget = budgets.of(project)
    if budget is None:
        return None
    mine = [posting for posting in postings if posting.project == project]
    spent, committed = _in_month(mine, now_s)
    return Standing(
        project=project,
        month=month_name(now_s),
        budget=budget,
        spent=spent,
        committed=committed,
        resets_s=next_month(now_s),
    )


def standings(postings: Iterable[Posting], budgets: Budgets, now_s: int) -> list[Standing]:
    """Of every project that is named or has spent something this month, by name."""
    by_project: dict[str, list[Posting]] = {name: [] for name in budgets.projects}
    for posting in postings:
        by_project.setdefault(posting.project, []).append(posting)
    found = []
    for project, mine in sorted(by_project.items()):
        stands = standing(mine, budgets, project, now_s)
        if stands and (stands.spent or project in budgets.projects):
            found.append(stands)
    return found


def left_for(
    run_id: str, spec: Spec, postings: Iterable[Posting], budgets: Budgets, now_s: int
) -> int | None:
    """What all other runs leave of the project's month, never less than 0; None: no limit."""
    budget = budgets.of(spec.project)
    if budget is None or budget.what != STOP:
        return None
    others = [p for p in postings if p.project == spec.project and p.run_id != run_id]
    return max(budget.month - sum(_in_month(others, now_s)), 0)


def cap(
    run_id: str, spec: Spec, postings: Iterable[Posting], budgets: Budgets, now_s: int
) -> int | None:
    """The most that a run may come to, in all its months, so that its project's is kept; None: no
    limit. `postings` are all runs', its own among them."""
    posted = list(postings)
    month = left_for(run_id, spec, posted, budgets, now_s)
    if month is None:
        return None
    start = month_start(now_s)
    earlier = (between(p, None, start) for p in posted if p.run_id == run_id)
    return month + sum(part.micros for part in earlier if part)


def _in_month(postings: Iterable[Posting], now_s: int) -> tuple[int, int]:
    """Spent, and committed."""
    start, end = month_start(now_s), next_month(now_s)
    spent = committed = 0
    for posting in postings:
        part = between(posting, start, end)
        spent += part.micros if part else 0
        if posting.open and posting.kind == MACHINE:
            reached = posting.from_s if posting.to_s is None else posting.to_s
            seconds = max((posting.stop_s or reached) - reached, 0)
            committed += -(-posting.price * seconds // 3600)
    return spent, committed
