"""What each project is charged: its own runs, and its part of what is shared, by rules. Pure.

A shared cost is what some projects have cost whose work is for all of them (`of`), or an amount for
each month that no run has caused (`month`). It is split among the projects that are not shared
themselves: by what they cost (`cost`), by their machines' hours (`hours`), in equal parts (`even`),
or in shares that the rule names. All sums are whole micro-dollars, and all charges together are all
that was spent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.ledger.periods import between, month_start, next_month
from tradewind.ledger.postings import MACHINE, RunCost
from tradewind.ledger.report import NONE
from tradewind.ledger.shares import shares

COST, HOURS, EVEN = "cost", "hours", "even"
SPLITS = (COST, HOURS, EVEN)


class Shared(Struct, frozen=True, kw_only=True):
    """One rule."""

    name: str
    of: tuple[str, ...] = ()
    """Projects; `(none)` is for runs without one."""
    month: int = 0
    """Micro-dollars for each month, besides."""
    split: str | Mapping[str, float] = COST
    """One of SPLITS, or each project's share; these add up to 1."""


class Charge(Struct, frozen=True, kw_only=True):
    project: str
    own: int
    parts: tuple[int, ...]
    """Of each rule, in their order."""

    @property
    def total(self) -> int:
        return self.own + sum(self.parts)


class Charged(Struct, frozen=True, kw_only=True):
    rules: tuple[str, ...]
    charges: tuple[Charge, ...]
    """The dearest first."""
    left: tuple[tuple[str, int], ...]
    """By rule, what nobody is there to bear: no project has cost anything by which to split it."""

    @property
    def total(self) -> int:
        return sum(each.total for each in self.charges) + sum(micros for _, micros in self.left)


def check(rules: Sequence[Shared]) -> None:
    """InvalidValue where rules contradict each other."""
    taken: dict[str, str] = {}
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise InvalidValue(f"two shared costs are called {name!r}", hint="name each once")
    for rule in rules:
        for project in rule.of:
            if project in taken:
                raise InvalidValue(
                    f"shared costs {taken[project]!r} and {rule.name!r} both have project"
                    f" {project!r}",
                    hint="each project's cost can be split once",
                )
            taken[project] = rule.name
    for rule in rules:
        if isinstance(rule.split, str):
            continue
        for project in rule.split:
            if project in taken:
                raise InvalidValue(
                    f"shared cost {rule.name!r} gives a part to {project!r}, which"
                    f" {taken[project]!r} splits itself",
                    hint="name projects that bear costs",
                )
        total = sum(rule.split.values())
        if abs(total - 1) > 1e-9:
            raise InvalidValue(f"the shares of {rule.name!r} add up to {total:.4%}, not to 100 %")


def charged(
    runs: Iterable[RunCost],
    rules: Sequence[Shared],
    now_s: int,
    since_s: int | None = None,
    until_s: int | None = None,
) -> Charged:
    """`since_s` is by default when the first was spent, `until_s` is now."""
    check(rules)
    costs: dict[str, int] = {}
    seconds: dict[str, int] = {}
    first_s = now_s
    for run in runs:
        for posting in run.postings:
            part = between(posting, since_s, until_s)
            if part is None:
                continue
            project = part.project or NONE
            first_s = min(first_s, part.from_s)
            costs[project] = costs.get(project, 0) + part.micros
            if part.kind == MACHINE:
                seconds[project] = seconds.get(project, 0) + (part.seconds or 0)
    months = _months(first_s if since_s is None else since_s, min(until_s or now_s, now_s))
    pooled = {project for rule in rules for project in rule.of}
    bearers = [project for project in costs if project not in pooled]
    own = {project: costs[project] for project in bearers}
    parts: dict[str, list[int]] = {}
    left: list[tuple[str, int]] = []
    for number, rule in enumerate(rules):
        pool = sum(costs.get(project, 0) for project in rule.of) + round(rule.month * months)
        given = shares(pool, _weights(rule, own, seconds))
        if not given and pool:
            left.append((rule.name, pool))
        for project, micros in given.items():
            parts.setdefault(project, [0] * len(rules))[number] = micros
    projects = [*own, *(project for project in parts if project not in own)]
    charges = [
        Charge(
            project=project,
            own=own.get(project, 0),
            parts=tuple(parts.get(project, [0] * len(rules))),
        )
        for project in projects
    ]
    charges.sort(key=lambda each: (-each.total, each.project))
    return Charged(
        rules=tuple(rule.name for rule in rules), charges=tuple(charges), left=tuple(left)
    )


def _weights(rule: Shared, own: Mapping[str, int], seconds: Mapping[str, int]) -> dict[str, float]:
    if not isinstance(rule.split, str):
        return dict(rule.split)
    if rule.split == EVEN:
        return dict.fromkeys(own, 1.0)
    if rule.split == HOURS:
        return {project: float(seconds.get(project, 0)) for project in own}
    return {project: float(micros) for project, micros in own.items()}


def _months(since_s: int, until_s: int) -> float:
    """Between two moments; a part of a month is that part."""
    total, at = 0.0, since_s
    while at < until_s:
        end = next_month(at)
        total += (min(end, until_s) - at) / (end - month_start(at))
        at = end
    return total
