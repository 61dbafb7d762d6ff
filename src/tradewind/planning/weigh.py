"""What every way takes and costs: hours, money by what it is for, chances. Pure, and in columns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from tradewind.catalog import capacity, hazards
from tradewind.economics import carbon
from tradewind.model import Workload
from tradewind.model.plan import weighed_cost
from tradewind.model.usage import GB
from tradewind.planning import finish, sustained
from tradewind.planning.extras import Extras, extras
from tradewind.planning.finish import Course, Situation
from tradewind.planning.goods import HELD, MODES, SPOT, Goods
from tradewind.planning.moving import saves
from tradewind.planning.rates import Rates, home
from tradewind.planning.speeds import Group, Speeds
from tradewind.policy.spot import GANG

if TYPE_CHECKING:
    from tradewind.model.ratecard import Place
    from tradewind.planning.goods import Column, Flags, Numbers

_MONTH_H = 730
_BY_TIME = ("on_demand", "spot", "reserved", "disk", "address", "requests")
"""Parts of the cost that are paid for as long as machines are held."""


@dataclass(slots=True)
class Candidates:
    """One entry a way: a row of the goods, so many machines, on a market."""

    good: Numbers  # into the goods
    group: Numbers  # into the speeds
    nodes: Column
    mode: Numbers  # into MODES
    market: Numbers  # `mode`, and one more number for both markets
    fall_back: Flags  # on-demand machines are expected to be held too, to keep the deadline
    rank: Numbers  # by name and market: which stands first of two that are alike
    hours: Column
    hours_low: Column
    hours_high: Column
    cost: Column  # micro-dollars
    cost_low: Column
    cost_high: Column
    chance: Column
    rest: Column  # of the cost, what is known: it does not grow with the time that is held
    width: Column  # half of the 80 % band of all else, in the logarithm
    had: Column  # how likely the machines are there when they are asked for
    weighed: Column  # the cost with what refusals are worth, by which it is chosen
    work_h: Column
    startup_h: Column
    on_demand_h: Column
    spot_h: Column
    interruptions: Column
    every_s: Column
    co2_kg: Column
    parts: dict[str, Column]  # of `cost`

    def __len__(self) -> int:
        return len(self.good)

    def within(self, budget: int) -> Column:
        """The chance that each costs no more."""
        return finish.in_time(budget - self.rest, self.cost - self.rest, self.width)

    def enough(self, share: float) -> Column:
        """The least budget that each keeps with such a chance."""
        import numpy as np

        off = NormalDist().inv_cdf(share) / 1.2816
        return self.rest + (self.cost - self.rest) * np.exp(off * self.width)


class Picked(NamedTuple):
    """The ways to weigh: one entry each."""

    good: Numbers
    group: Numbers
    nodes: Numbers
    mode: Numbers
    fall_back: Flags  # on spot, and on demand where the deadline asks for it


def weigh(
    workload: Workload,
    goods: Goods,
    groups: list[Group],
    fast: Speeds,
    rates: Rates,
    deadline_s: float,
    picked: Picked,
    now: datetime,
) -> Candidates:
    import numpy as np

    good, group, nodes, mode, fall_back = picked
    machines = nodes.astype(float)
    moving = _moving(workload, goods, rates, fast.state_bytes)
    start = rates.home(workload.data)
    kept = fast.state_bytes, workload.checkpoint.keep
    extra = extras(goods, good, nodes, rates, start, *kept)
    whole = _situation(workload, goods, groups, fast, deadline_s, picked, moving, extra)
    course = _course(whole, mode, fall_back, _alike(goods, moving, picked))
    parts = _parts(workload, goods, fast.state_bytes, picked, moving, course, extra)
    parts["on_demand"] *= sustained.paid(goods, good, mode, course.hours, now)
    machine = sum(parts[name] for name in _BY_TIME)
    rest = parts["egress"] + parts["storage"]
    more, less = np.exp(whole.width), np.exp(-whole.width)
    high = course.hours * more
    late = np.maximum(course.hours, deadline_s / 3600)
    size = capacity.priors().size(goods.each[good], machines)
    had = chance_of(goods, good, size, mode, fall_back, now)
    co2_kg = _co2_kg(goods, groups, picked, course)
    emitting = workload.limits.carbon_micros_kg * co2_kg
    return Candidates(
        good=good,
        group=group,
        nodes=machines,
        mode=mode,
        market=np.where(fall_back, len(MODES), mode),
        fall_back=fall_back & (course.on_demand > 0),
        rank=(goods.rank[good] * 1000 + nodes) * (len(MODES) + 1) + mode,
        hours=course.hours,
        hours_low=course.hours * less,
        hours_high=np.where(fall_back, np.minimum(high, late), high),
        cost=machine + rest,
        cost_low=machine * less + rest,
        cost_high=machine * np.exp(course.width) + rest,
        chance=course.chance,
        rest=rest,
        width=course.width,
        had=had,
        weighed=weighed_cost(machine + rest, had) + emitting,
        work_h=whole.work_s / 3600,
        startup_h=whole.startup_s / 3600,
        on_demand_h=course.on_demand,
        spot_h=course.spot,
        interruptions=course.interruptions,
        every_s=course.every_s,
        co2_kg=co2_kg,
        parts=parts,
    )


def _co2_kg(goods: Goods, groups: list[Group], picked: Picked, course: Course) -> Column:
    """Of the hours that machines are held."""
    import numpy as np

    good, group, nodes = picked[:3]
    watts = [carbon.kilowatts(g.accelerator.tdp_watts)[1] * g.each for g in groups]
    grams = np.array([carbon.grid(*place).g_per_kwh for place in goods.places])
    held = course.on_demand + course.spot
    found: Column = held * nodes * np.array(watts or [0.0])[group] * grams[goods.place[good]] / 1000
    return found


def chance_of(
    goods: Goods, good: Numbers, size: Column, mode: Numbers, fall_back: Flags, now: datetime
) -> Column:
    """That machines are there when they are asked for. Where on-demand machines are held too, it
    is enough that those are there: spot machines of the same type and place are what on-demand
    leaves."""
    import numpy as np

    found = np.ones(len(good))
    for number in set(mode.tolist()):
        at = np.flatnonzero(mode == number)
        found[at] = _of_mode(goods, MODES[number], good[at], size[at], now)
    both = np.flatnonzero(fall_back)
    safe = _of_mode(goods, "on_demand", good[both], size[both], now)
    found[both] = np.maximum(found[both], safe)
    found[goods.own[good]] = 1.0
    assumed = goods.assumed[good]
    return np.where(np.isnan(assumed) | (mode == HELD), found, assumed)


def _of_mode(goods: Goods, mode: str, good: Numbers, size: Column, now: datetime) -> Column:
    import numpy as np

    doubt = goods.doubts[mode][good] * size
    found: Column = capacity.chance(doubt)
    for position, answers in goods.answers.get(mode, {}).items():
        at = np.flatnonzero(good == position)
        if len(at):
            one = goods.doubts[mode][position]
            each = goods.kinds[goods.kind[position]].each
            seen = [
                capacity.Seen(
                    one * capacity.priors().size(each, answer.machines),
                    answer.available,
                    capacity.weight(answer.expires_at, now),
                )
                for answer in answers
            ]
            found[at] = capacity.sharpened(doubt[at], seen)
    return found


def _situation(
    workload: Workload,
    goods: Goods,
    groups: list[Group],
    fast: Speeds,
    deadline_s: float,
    picked: Picked,
    moving: _Moving,
    extra: Extras,
) -> Situation:
    import numpy as np

    good, group, nodes = picked[:3]
    machines, place = nodes.astype(float), goods.place[good]
    each = np.array([float(g.each) for g in groups] or [0.0])[group]
    boot = np.where(goods.own[good], finish.OWN_BOOT_S, finish.BOOT_S) + _setup(workload)
    every = workload.checkpoint.every_s
    return Situation(
        work_s=fast.seconds[group],
        width=fast.width[group],
        fits=fast.fits[group],
        machines=machines,
        gang=as_gang(machines, goods.hazards[good]),
        devices=machines * each,
        startup_s=boot + moving.first_s[place] / machines,
        again_s=boot + moving.again_s[place] / machines,
        state_bytes=fast.state_bytes,
        notice_s=np.array([hazards.notice_s(provider) for provider, _ in goods.places])[place],
        seen=goods.seen[good],
        price=_relative(goods, good, machines, extra),
        every_s=float(every) if every else None,
        deadline_s=deadline_s,
    )


def as_gang(machines: Column, hazard: Column) -> Column:
    """Machines that are taken more often than the usual are as a larger gang of the usual ones: the
    hazard of a gang is what the policy's tables know."""
    import numpy as np

    found: Column = np.maximum(np.round(machines * hazard ** (1 / GANG)), 1)
    return found


def _relative(goods: Goods, good: Numbers, machines: Column, extra: Extras) -> Column:
    """The price of spot, by that of the same machines on demand; no less where those are free or
    not sold."""
    import numpy as np

    dear = np.nan_to_num(goods.prices["on_demand"][good])
    found = np.nan_to_num(goods.prices["spot"][good], nan=np.inf)
    found = found + extra.spot / machines
    dear = np.where(dear > 0, dear + extra.safe / machines, 0)
    relative: Column = np.divide(found, dear, out=np.full(len(good), np.inf), where=dear > 0)
    return relative


def _course(whole: Situation, mode: Numbers, fall_back: Flags, alike: Numbers) -> Course:
    """Of every way, by the market that it is on. On one market those that are `alike` are worked
    out once: the price is nothing to them."""
    import numpy as np

    found = Course(*(np.zeros(len(mode)) for _ in fields(Course)))
    for at, course_of in (
        (mode != SPOT, finish.on_demand),
        ((mode == SPOT) & ~fall_back, finish.on_spot),
    ):
        if at.any():
            _, first, where = np.unique(alike[at], return_index=True, return_inverse=True)
            found.put(at, course_of(whole.take(np.flatnonzero(at)[first])).take(where))
    if fall_back.any():
        found.put(fall_back, finish.on_both(whole.take(fall_back)))
    return found


def _alike(goods: Goods, moving: _Moving, picked: Picked) -> Numbers:
    """One number for all ways that differ in nothing but their prices: so many of the same machines
    in places that are equal to them."""
    import numpy as np

    notice = [hazards.notice_s(provider) for provider, _ in goods.places]
    pairs = zip(moving.first_s.tolist(), moving.again_s.tolist(), notice, strict=True)
    index: dict[tuple[float, ...], int] = {}
    of_place = np.array([index.setdefault(pair, len(index)) for pair in pairs])
    hazard, of_hazard = np.unique(goods.hazards, return_inverse=True)
    one = (of_place[goods.place] * len(hazard) + of_hazard) * 6 + 2 * (goods.seen + 1) + goods.own
    _, kind = np.unique(one, return_inverse=True)
    found: Numbers = picked.group * (len(kind) + 1) + kind[picked.good]
    return found


def _parts(
    workload: Workload,
    goods: Goods,
    state_bytes: float,
    picked: Picked,
    moving: _Moving,
    course: Course,
    extra: Extras,
) -> dict[str, Column]:
    """Micro-dollars by what they are for."""
    import numpy as np

    good, nodes, mode = picked.good, picked.nodes, picked.mode
    place, reserved = goods.place[good], mode >= HELD
    price = {name: np.nan_to_num(goods.prices[name][good]) * nodes for name in MODES}
    paid = np.choose(mode, [price[name] for name in MODES])
    state_gb = state_bytes / GB
    kept_gb = (moving.copy_gb + workload.checkpoint.keep * state_gb)[place]
    written = moving.back[place] * saves(course.on_demand + course.spot, course.every_s)
    read = moving.there[place] * course.interruptions
    return {
        "on_demand": np.where(reserved, 0, course.on_demand * price["on_demand"]),
        "spot": course.spot * price["spot"] * (mode == SPOT),
        "reserved": np.where(reserved, course.on_demand * paid, 0),
        "disk": (course.on_demand + course.spot) * extra.disk,
        "address": course.on_demand * extra.address + course.spot * extra.spot_address,
        "requests": (course.on_demand + course.spot) * extra.requests,
        # Each start reads the data again, as each is booked.
        "egress": 1e6
        * (moving.egress[place] * (1 + course.interruptions) + state_gb * (written + read)),
        "storage": 1e6 * kept_gb * moving.month[place] * course.hours / _MONTH_H,
    }


def _setup(workload: Workload) -> float:
    run = workload.run
    if run is None:
        return finish.SETUP_S
    if run.setup_s is not None:
        return float(run.setup_s)
    return finish.SETUP_S if run.setup else 0.0


class _Moving(NamedTuple):
    """By place. Data that lies elsewhere is copied there once, and kept while the work runs."""

    first_s: Column  # of one machine to fetch the data
    again_s: Column  # and later, from the copy, with a checkpoint that lies far away
    egress: Column  # dollars for the data
    there: Column  # for bringing a gigabyte of a checkpoint there
    back: Column  # and back
    copy_gb: Column
    month: Column  # for keeping a gigabyte


def _moving(workload: Workload, goods: Goods, rates: Rates, state_bytes: float) -> _Moving:
    import numpy as np

    data, lies, start = workload.data, home(workload.data), rates.home(workload.data)
    size = float(data.size_bytes or 0) if data else 0.0
    near = np.array([lies is None or lies == place for place in goods.places])
    beside = np.array([start is None or start == place for place in goods.places])

    def traffic(one: Place | None, *, back: bool = False) -> Column:
        ways = [((place, one) if back else (one, place)) for place in goods.places]
        return np.array([rates.egress(*way) if one else 0.0 for way in ways])

    there = traffic(start)
    return _Moving(
        first_s=size / np.where(near, finish.STORE_RATE, finish.FAR_RATE),
        again_s=size / finish.STORE_RATE + np.where(beside, 0, state_bytes / finish.FAR_RATE),
        egress=size / GB * (there if lies == start else traffic(lies)),
        there=there,
        back=traffic(start, back=True),
        copy_gb=np.where(near, 0.0, size / GB),
        month=np.array([rates.month(place) for place in goods.places]),
    )
