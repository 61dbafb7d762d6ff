"""What a run cost, and what else it would have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from statistics import median

from msgspec.structs import replace

from tradewind.ledger.postings import MACHINE, Posting, RunCost
from tradewind.lifecycle.state import RunState
from tradewind.model.run import Spec, Way
from tradewind.report.capacity import Spans
from tradewind.report.curves import Curves
from tradewind.report.figures import Money, Stay, Sum
from tradewind.report.foresight import Effort, foresight


def money_of(cost: RunCost, spec: Spec) -> Money:
    posts = cost.postings
    usual = [posting.on_demand for posting in posts]
    known = [micros for micros in usual if micros is not None]
    return Money(
        micros=cost.micros,
        estimated=sum(posting.micros for posting in posts if posting.estimated),
        open=sum(posting.open for posting in posts),
        budget=spec.budget,
        predicted=spec.predicted_cost,
        same_on_demand=sum(known) if posts and len(known) == len(usual) else None,
        by_market=_sums(posts, lambda posting: posting.market.replace("_", "-")),
        by_place=_sums(
            posts,
            lambda posting: (
                f"{posting.instance_type} {posting.market.replace('_', '-')}"
                f" in {posting.provider}/{posting.zone or posting.region}"
            ),
        ),
    )


def _sums(postings: Sequence[Posting], key: Callable[[Posting], str]) -> tuple[Sum, ...]:
    groups: dict[str, list[Posting]] = {}
    for posting in postings:
        groups.setdefault(key(posting), []).append(posting)
    found = []
    for what, group in groups.items():
        usual = [posting.on_demand for posting in group]
        known = [micros for micros in usual if micros is not None]
        found.append(
            Sum(
                what=what,
                legs=len({posting.leg for posting in group}),
                seconds=sum(p.seconds or 0 for p in group if p.kind == MACHINE),
                micros=sum(posting.micros for posting in group),
                on_demand=sum(known) if len(known) == len(usual) else None,
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.micros, each.what)))


def compared(
    money: Money,
    state: RunState,
    legs: Sequence[Stay],
    curves: Curves,
    there: Mapping[str, Spans],
    submitted: datetime,
    ended: datetime,
    deadline: datetime | None,
    *,
    alike: bool,
) -> Money:
    """With what the work would have cost on demand alone, and with perfect foresight. Of a run that
    has succeeded: what is not done has no price. `alike`: all machines are equally fast."""
    spec = state.spec
    if spec is None or state.outcome != "succeeded" or not legs:
        return money
    effort = effort_of(legs, curves)
    if effort.work_s <= 0:
        return money  # it was over before anybody could measure it
    safe = [way for way in spec.ways if way.market == "on_demand"]
    if safe:
        each = [(_alone(state, spec, way, effort, legs, alike=alike), way) for way in safe]
        micros, way = min(each, key=lambda found: found[0])
        money = replace(money, alone=micros, alone_what=way.words)
    if there and alike:
        least, words = foresight(spec.ways, there, effort, submitted, ended, deadline, spec.speed)
        money = replace(money, foresight=least, foresight_words=words)
    return money


def effort_of(legs: Sequence[Stay], curves: Curves) -> Effort:
    work_s, starts = 0.0, []
    for leg in legs:
        if leg.up is None or leg.until is None:
            continue
        first = curves.first.get(leg.leg)
        began = first if first and leg.up <= first <= leg.until else leg.up
        starts.append((began - leg.since).total_seconds())
        made = leg.step - leg.began
        share = (made - leg.lost) / (made + leg.again) if made > 0 else 1.0
        if leg.taken and made <= 0:
            share = 0.0  # it was taken before it brought anything
        work_s += (leg.until - began).total_seconds() * max(share, 0.0)
    return Effort(work_s=work_s, start_s=median(starts) if starts else 0.0)


def _alone(
    state: RunState, spec: Spec, way: Way, effort: Effort, legs: Sequence[Stay], *, alike: bool
) -> int:
    """On that way from the beginning to the end: by what was measured where that is the same
    machines, else by the plan's estimate, corrected by what was measured."""
    same = all((leg.instance_type, leg.nodes) == (way.instance_type, way.units) for leg in legs)
    if alike or same:
        seconds = effort.start_s + effort.work_s
    else:
        ratio = state.ratio_of(way)
        seconds = way.start_s + spec.work / (way.rate * ratio)
    moved = way.start_cost + way.bring_once
    return moved + round((way.price_all + way.save) * seconds / 3600)
