"""One trace, by our policy, by others', and by somebody who knows what comes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tradewind.services import scaling
from tradewind.services.replay import PATIENT_S, PERIOD_S, Outcome, Replicas, outcome, waited
from tradewind.sim.serving import fleet, optimum, production
from tradewind.sim.serving.demand import Demand
from tradewind.sim.serving.market import Market
from tradewind.sim.serving.rivals import RIVALS, Policy

if TYPE_CHECKING:
    from tradewind.services.replay import Column

OURS = "tradewind"
POLICIES = (OURS, *RIVALS)
_BEGINNING_S = 600
_SETTINGS = tuple(n / 100 for n in range(20, 155, 5))
_SPARES = (0, 1, 2, 4)
_TRIES = 6
"""Settings with spot: those that keep the goal on demand, the cheapest first."""


@dataclass(frozen=True, slots=True)
class Result:
    policy: str
    outcome: Outcome
    cost: float
    """Micro-dollars."""
    setting: str
    kept: bool
    """The goal, with nothing lost."""
    interruptions: int = 0


def least(demand: Demand, kind: Replicas, market: Market) -> tuple[float, int]:
    """Micro-dollars of the optimum, and how many replicas all begin with: what the first ten
    minutes need, as a plan would have it."""
    need = optimum.needed(demand.load, kind)
    return optimum.cost(need, kind, market), max(int(need[:_BEGINNING_S].max()), 1)


def results(
    demand: Demand,
    kind: Replicas,
    goal: float,
    start: int,
    market: Market,
    policies: tuple[str, ...] = POLICIES,
) -> Iterator[Result]:
    for name in policies:
        if name == OURS:
            yield _ours(demand, kind, goal, start, market)
        else:
            yield _tuned(name, RIVALS[name], demand, kind, goal, start, market)


def _ours(demand: Demand, kind: Replicas, goal: float, start: int, market: Market) -> Result:
    """Behind our front, which lets those who are late anyway wait for those who are not."""
    kind = replace(kind, patient_s=PATIENT_S)
    served = production.run(demand, kind, goal, start, market)
    told = _told(demand, kind, served.ready, served.machines.seconds, served.machines.lost)
    return Result(
        OURS, told, served.machines.cost, f"{served.rules} rules", _kept(told, goal),
        served.machines.interruptions,
    )  # fmt: skip


def _told(demand: Demand, kind: Replicas, ready: Column, seconds: float, cut: float) -> Outcome:
    late, lost = waited(demand.load, demand.requests, ready, kind)
    return Outcome(seconds, float(demand.requests.sum()), late + cut, lost + cut)


def _kept(told: Outcome, goal: float) -> bool:
    return told.attainment >= goal and not told.lost


def _tuned(
    name: str,
    policy: Policy,
    demand: Demand,
    kind: Replicas,
    goal: float,
    start: int,
    market: Market,
) -> Result:
    """The cheapest setting that keeps the goal, by what really happened; else the least late."""
    import numpy as np

    by_period = scaling.periods(demand.load)
    tried: list[tuple[Result, Column]] = []
    for setting in _SETTINGS:
        asked = np.fromiter(policy(by_period, setting, start, kind), float, len(by_period))
        ordered = np.concatenate([[float(start)], asked[:-1]])
        told = outcome(demand.load, demand.requests, ordered, kind)
        cost = told.seconds / 3600 * market.on_demand
        found = Result(name, told, cost, f"{setting:g}", _kept(told, goal))
        tried.append((found, ordered))
    best = _best([each for each, _ in tried])
    if not market.zones:
        return best
    found_ = [best]
    answers = scaling.periods(demand.requests) * PERIOD_S
    hopeful = [each for each in tried if each[0].kept] or tried
    hopeful.sort(key=lambda each: each[0].cost)
    for spare in _SPARES:
        for on_demand, ordered in hopeful[:_TRIES]:
            ready, machines = fleet.bought(ordered, market, kind, answers, spare)
            told = _told(demand, kind, ready, machines.seconds, machines.lost)
            words = f"{on_demand.setting}, spot, {spare} spare"
            kept = _kept(told, goal)
            found_.append(Result(name, told, machines.cost, words, kept, machines.interruptions))
            if kept:
                break
    return _best(found_)


def _best(found: list[Result]) -> Result:
    best = found[0]
    for each in found[1:]:
        if _better(each, best):
            best = each
    return best


def _better(one: Result, other: Result) -> bool:
    if one.kept != other.kept:
        return one.kept
    if one.kept:
        return one.cost < other.cost
    return one.outcome.late < other.outcome.late
