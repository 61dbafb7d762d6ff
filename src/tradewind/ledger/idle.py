"""Time of machines that was paid for while their job did not work, and what it cost. Pure.

From the journal: before every supervisor of a leg had reported (`starting`), while its job made
neither a step nor any use of its machines (`idle`, from when that was noticed, and for how long it
had been so), and after the leg was over, the billing step that was begun included (`ending`). That
a job keeps its machines busy with little is not in here: `tradewind report` has that.

Lengths of time between commits are by controllers' clocks, and how long a machine was paid for by
its provider's: the two are only subtracted from each other. So the figures are estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from tradewind.ledger.periods import between
from tradewind.ledger.postings import MACHINE, Posting, RunCost
from tradewind.model.event import (
    Commit,
    LegDraining,
    LegOver,
    LegRequested,
    LegUp,
    MachinesFound,
    Progress,
    Warned,
)

STARTING, IDLE, ENDING = "starting", "idle", "ending"


class Idle(Struct, frozen=True, kw_only=True):
    """A part of a machine's posting in which its job did not work."""

    why: str
    part: Posting


class IdleLine(Struct, frozen=True, kw_only=True):
    what: str
    seconds: int
    """For which machines were paid, added up."""
    micros: int
    """And what they cost."""
    idle_s: int
    idle_micros: int
    by_why: dict[str, int]
    """Micro-dollars."""


class _Stay(Struct):
    """One leg, by controllers' clocks."""

    found: datetime | None = None
    up: datetime | None = None
    over: datetime | None = None
    quiet_since: datetime | None = None
    quiet_s: float = 0.0


def idle_of(cost: RunCost, commits: Sequence[Commit], now: datetime) -> list[Idle]:
    """Of one run. `now`: until when what lives is counted in `cost`."""
    stays = _stays(commits, cost)
    found: list[Idle] = []
    for posting in cost.postings:
        stay = stays.get(posting.leg)
        if posting.kind != MACHINE or stay is None or stay.found is None or posting.to_s is None:
            continue
        paid_s = max(posting.paid_s, posting.to_s - posting.from_s)
        until = stay.over or now
        starting = min(_seconds(stay.found, stay.up or until), paid_s)
        ending = 0
        if stay.over is not None:
            ending = max(paid_s - _seconds(stay.found, stay.over), 0)
        quiet = min(round(stay.quiet_s), max(paid_s - starting - ending, 0))
        begun = posting.from_s
        for why, length in ((STARTING, starting), (IDLE, quiet)):
            found += _cut(posting, why, begun, length, paid_s)
            begun += length
        found += _cut(posting, ENDING, posting.from_s + paid_s - ending, ending, paid_s)
    return found


def _cut(posting: Posting, why: str, begin_s: int, length: int, paid_s: int) -> list[Idle]:
    if length <= 0:
        return []
    whole = replace(posting, to_s=posting.from_s + paid_s, seconds=paid_s, paid_s=paid_s)
    part = between(whole, begin_s, begin_s + length)
    return [Idle(why=why, part=part)] if part else []


def lines(
    idles: Iterable[Idle],
    postings: Iterable[Posting],
    key: Callable[[Posting], str],
    since_s: int | None = None,
    until_s: int | None = None,
) -> list[IdleLine]:
    """The dearest first. `postings`: all of the same runs; only machines count."""
    paid: dict[str, list[Posting]] = {}
    for posting in postings:
        part = between(posting, since_s, until_s) if posting.kind == MACHINE else None
        if part is not None:
            paid.setdefault(key(part), []).append(part)
    lost: dict[str, list[Idle]] = {}
    for each in idles:
        part = between(each.part, since_s, until_s)
        if part is not None:
            lost.setdefault(key(part), []).append(replace(each, part=part))
    found = []
    for what, parts in paid.items():
        mine = lost.get(what, [])
        by_why: dict[str, int] = {}
        for each in mine:
            by_why[each.why] = by_why.get(each.why, 0) + each.part.micros
        found.append(
            IdleLine(
                what=what,
                seconds=sum(part.paid_s for part in parts),
                micros=sum(part.micros for part in parts),
                idle_s=sum(each.part.paid_s for each in mine),
                idle_micros=sum(by_why.values()),
                by_why=by_why,
            )
        )
    return sorted(found, key=lambda line: (-line.idle_micros, line.what))


def _stays(commits: Sequence[Commit], cost: RunCost) -> dict[int, _Stay]:
    stays: dict[int, _Stay] = {}
    noticed_s = float(cost.spec.idle_s or 0) if cost.spec else 0.0
    for commit in commits:
        for event in commit.events:
            if isinstance(event, LegRequested):
                stays[event.request.leg] = _Stay()
            elif isinstance(event, MachinesFound):
                for machine in event.machines:
                    stay = stays.get(machine.leg)
                    if stay is not None and stay.found is None:
                        stay.found = commit.at
            elif isinstance(event, Warned) and event.about == "idle":
                stay = stays.get(event.level)
                if stay is not None:
                    stay.quiet_since, stay.quiet_s = commit.at, stay.quiet_s + noticed_s
            elif isinstance(event, LegUp | Progress | LegDraining | LegOver):
                stay = stays.get(event.leg)
                if stay is not None:
                    _goes_on(stay, event, commit.at)
    last = commits[-1].at if commits else None
    for stay in stays.values():
        if stay.quiet_since and last:
            _wakes(stay, last)
    return stays


def _goes_on(stay: _Stay, event: LegUp | Progress | LegDraining | LegOver, at: datetime) -> None:
    _wakes(stay, at)
    if isinstance(event, LegUp):
        stay.up = at
    elif isinstance(event, LegOver):
        stay.over = at


def _wakes(stay: _Stay, at: datetime) -> None:
    if stay.quiet_since is not None:
        stay.quiet_s += max((at - stay.quiet_since).total_seconds(), 0.0)
        stay.quiet_since = None


def _seconds(since: datetime, until: datetime) -> int:
    return max(round((until - since).total_seconds()), 0)
