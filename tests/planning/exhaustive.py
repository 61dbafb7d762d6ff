"""The same answer as the planner's, found by trying everything one by one in plain loops."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise, product
from math import inf, prod
from typing import cast

import numpy as np

from tradewind.base.errors import InvalidValue
from tradewind.catalog import capacity, clusters, driven, hazards, ratecard
from tradewind.catalog.catalog import Catalog
from tradewind.estimate import models
from tradewind.estimate.answer import band_of, cases
from tradewind.estimate.band import half_width, kinds
from tradewind.estimate.constants import fitted
from tradewind.estimate.hardware import best_precision
from tradewind.estimate.layouts import layouts, preference
from tradewind.estimate.memory import fit_probability, memory_use
from tradewind.estimate.question import Question, check
from tradewind.estimate.time import step_time
from tradewind.model import Market, Offer, Price, Workload
from tradewind.model.usage import GB
from tradewind.planning import finish, search, speeds
from tradewind.planning.rates import Rates, home
from tradewind.providers import charges

RATES = Rates(ratecard.card(), charges.usual(ratecard.card()))


@dataclass
class Way:
    offer: Offer
    nodes: int
    mode: str
    hours: float
    cost: float  # dollars
    chance: float
    had: float
    rest: float  # dollars, of the cost, that are no matter of time
    width: float

    @property
    def weighed(self) -> float:
        return self.cost * (1 + 0.05 * (1 / self.had - 1))


def every_way(workload: Workload, catalog: Catalog, now: datetime) -> list[Way]:
    limits = workload.limits
    deadline = limits.deadline_at(now)
    deadline_s = (deadline - now).total_seconds() if deadline else inf
    rates = RATES
    ways = []
    for row in range(len(catalog.table)):
        offer = catalog.table.offer(row)
        if not limits.allows(offer.provider, offer.region):
            continue
        if not offer.accelerator or not limits.allows_accelerator(offer.accelerator):
            continue
        chip = catalog.accelerators[offer.accelerator]
        if not limits.accelerators and driven.undriven(offer.provider, chip.name, chip.vendor):
            continue
        for nodes in range(1, (limits.max_nodes or 16) + 1):
            if nodes * offer.accelerator_count > (limits.max_accelerators or inf):
                continue
            for seconds, width, fits, state in fastest(workload, catalog, offer, nodes):
                for mode in ("on_demand", "spot", "mixed", "reserved"):
                    both = mode == "mixed"
                    market = cast("Market", "spot" if both else mode)
                    if market == "reserved":
                        if not limits.commit:
                            continue
                    elif limits.markets is not None and market not in limits.markets:
                        continue
                    price = cheapest_price(offer, market, limits.commit, now)
                    if not trusted(price, now):
                        continue
                    assert price is not None
                    other = offer.price("on_demand")
                    if both and not (
                        trusted(other, now)
                        and (limits.markets is None or "on_demand" in limits.markets)
                        and deadline_s < inf
                    ):
                        continue
                    data, start = workload.data, home(workload.data)
                    place = (offer.provider, offer.region)
                    size = float(data.size_bytes or 0) if data else 0.0
                    near = start is None or start == place
                    fetch = size / (finish.STORE_RATE if near else finish.FAR_RATE) / nodes
                    again = size / finish.STORE_RATE + (0 if near else state / finish.FAR_RATE)
                    beside = {
                        name: extras(offer, name, nodes, state, workload, start, rates)
                        for name in ("on_demand", "spot")
                    }
                    situation = finish.Situation(
                        work_s=np.array([seconds]),
                        width=np.array([width]),
                        fits=np.array([fits]),
                        machines=np.array([float(nodes)]),
                        gang=np.array([gang(offer, nodes)]),
                        devices=np.array([nodes * offer.accelerator_count]),
                        startup_s=np.array([finish.BOOT_S + finish.SETUP_S + fetch]),
                        again_s=np.array([finish.BOOT_S + finish.SETUP_S + again / nodes]),
                        state_bytes=state,
                        notice_s=np.array([hazards.notice_s(offer.provider)]),
                        seen=np.zeros(1),
                        price=np.array(
                            [
                                (price.micros_hour + beside["spot"])
                                / (other.micros_hour + beside["on_demand"])
                                if both and other
                                else np.inf
                            ]
                        ),
                        every_s=None,
                        deadline_s=deadline_s,
                    )
                    course_of = finish.on_both if both else finish.on_spot
                    course = (course_of if market == "spot" else finish.on_demand)(situation)
                    hours = float(course.hours[0])
                    paid = float(course.spot[0]) * (price.micros_hour if market == "spot" else 0)
                    safe = price if market == "reserved" else other
                    if safe is not None and float(course.on_demand[0]) > 0:
                        paid += float(course.on_demand[0]) * safe.micros_hour
                    paid += float(course.spot[0]) * beside["spot"]
                    paid += float(course.on_demand[0]) * beside["on_demand"]
                    dollars = machines = nodes * paid / 1e6
                    if start is not None:
                        begins = 1 + float(course.interruptions[0])
                        dollars += begins * size / GB * rates.egress(start, place)
                        held = float(course.on_demand[0]) + float(course.spot[0])
                        saves = max(held * 3600 / float(course.every_s[0]), 1.0)
                        dollars += saves * state / GB * rates.egress(place, start)
                        again = float(course.interruptions[0]) * state / GB
                        dollars += again * rates.egress(start, place)
                    kept = workload.checkpoint.keep * state / GB + (0 if near else size / GB)
                    dollars += kept * rates.month(place) * hours / 730
                    had = chance_to_have(offer, nodes, market, catalog, now)
                    if both:
                        had = max(had, chance_to_have(offer, nodes, "on_demand", catalog, now))
                    assumed = limits.assumed(offer.provider, offer.region, offer.instance_type)
                    had = had if assumed is None else assumed
                    ways.append(
                        Way(
                            offer=offer,
                            nodes=nodes,
                            mode=mode,
                            hours=hours,
                            cost=dollars,
                            chance=float(course.chance[0]),
                            had=had,
                            rest=dollars - machines,
                            width=float(course.width[0]),
                        )
                    )
    return ways


def extras(
    offer: Offer,
    market: str,
    nodes: int,
    state: float,
    workload: Workload,
    start: tuple[str, str] | None,
    rates: Rates,
) -> float:
    """Micro-dollars an hour of one machine: disk, address, requests."""
    place = offer.provider, offer.region
    extra = charges.usual(rates.card)(*place, offer.instance_type, market)
    kept = 1.5 * state * (workload.checkpoint.keep + 1) / nodes / 1e9
    found = rates.requests(start or place) + rates.address(place, extra)
    if extra.disk_gb:
        usd = rates.card.find("block_storage", *place, item=extra.disk).usd
        found += round((round(kept) + extra.disk_gb) * usd * 1e6 / 720)
    return found


def gang(offer: Offer, nodes: int) -> float:
    factor = hazards.hazard(offer.provider, offer.accelerator_count).factor
    return float(max(1, round(nodes * factor ** (1 / 0.6))))


def cheapest_price(offer: Offer, market: Market, commit: str | None, now: datetime) -> Price | None:
    """Of commitments the cheapest that is no longer than was asked for."""
    fitting = [p for p in offer.prices if p.market == market and p.term <= (commit or "")]
    right = [p for p in fitting if trusted(p, now)]
    return min(right, key=lambda price: price.micros_hour, default=None)


def chance_to_have(
    offer: Offer, nodes: int, market: Market, catalog: Catalog, now: datetime
) -> float:
    """The prior's formula and the answers, one after another."""
    priors = capacity.priors()
    sold = "spot" if market == "spot" else "on_demand"
    one = priors.doubts[priors.kind(offer.provider, offer.instance_type), sold]
    one *= priors.scarcity(offer.accelerator) * offer.accelerator_count ** priors.powers[0]
    chance = (1 + one * nodes ** priors.powers[1] / 2) ** -2
    answers, there = 0.5, 0.5 * chance
    known = catalog.observations
    for seen in known.answers(offer, cast("Market", sold)) if known else ():
        late = max((now - seen.expires_at).total_seconds(), 0) / 3600
        weight = 0.5 ** (late / 12)
        ratio = (nodes / seen.machines) ** priors.powers[1]
        weight *= min(1 / ratio if seen.available else ratio, 1)
        answers, there = answers + weight, there + weight * seen.available
    return float(there / answers)


def trusted(price: Price | None, now: datetime) -> bool:
    if price is None or price.mark or price.as_of is None:
        return False
    return (now.date() - price.as_of).days <= 180


def fastest(
    workload: Workload, catalog: Catalog, offer: Offer, nodes: int
) -> list[tuple[float, float, float, float]]:
    """Seconds, band, likelihood to fit and bytes of state, of a fast layout and of a sure one;
    nothing where it cannot be done."""
    train = workload.train
    assert train is not None
    assert isinstance(train.model, str)
    chip = catalog.accelerators[offer.accelerator]
    each = int(offer.accelerator_count)
    model = models.load(train.model)
    network = 0.0
    if nodes > 1:
        told = clusters.link(offer.provider, offer.instance_type, offer.network_gbps).gbps
        if not told:
            return []
        network = search.rounded(told)
    question = Question(
        model=model, accelerator=chip, per_node=each, nodes=nodes, sequence=train.sequence,
        global_batch=train.sequences_per_step, precision=best_precision(chip), stack=train.stack,
        optimizer=train.optimizer, lora=train.lora, network_gbps=network / each or None,
    )  # fmt: skip
    if question not in _KNOWN:
        _KNOWN[question] = _tried(question)
    state = speeds._state_bytes(train, model)
    return [
        (train.total_samples / (rate / question.length), width, likely, state)
        for rate, width, likely in _KNOWN[question]
    ]


_KNOWN: dict[Question, list[tuple[float, float, float]]] = {}
"""Many catalogs ask the same: how long the work is and what it costs do not change the answer."""


def _tried(question: Question) -> list[tuple[float, float, float]]:
    """Tokens a second, band and likelihood to fit of the best layouts, one after another."""
    constants = fitted()
    best: dict[float, tuple[float, float, float]] = {}
    most = dict.fromkeys(speeds.USUAL.fits, 0.0)
    try:
        check(question)
        listed = layouts(question, coarse=speeds.USUAL.coarse)
    except InvalidValue:
        return []
    for layout in listed:
        case = cases(question, [layout])
        likely = float(fit_probability(case, memory_use(case, constants), constants)[0])
        if likely < min(most):
            continue
        rate = float(step_time(case, constants).tokens_per_s[0]) * question.devices
        for fits in most:
            wanted = rate * float(preference(case)[0]) * likely**speeds.USUAL.doubt
            if likely >= fits and wanted > most[fits]:
                most[fits] = wanted
                width = band_of(question, kinds(case)[0], float(half_width(case)[0]))[0]
                best[fits] = rate, width, likely
    return list(dict.fromkeys(best.values()))


def cheapest(workload: Workload, ways: list[Way], now: datetime) -> Way | None:
    right = keeping(workload, ways, now)
    return min(right, key=lambda way: (way.weighed, way.hours), default=None)


def expected(ways: list[Way]) -> float:
    """Dollars: the mean, over all that may be had, of the least weighed cost, every combination on
    its own. Of one type a way is had where a number drawn for the type is below its chance."""
    last = 1.5 * min(way.weighed for way in ways)
    kinds = sorted({(way.offer.provider, way.offer.instance_type) for way in ways})
    outcomes: list[list[tuple[float, float]]] = []  # by type: the chance of each, and what it costs
    for kind in kinds:
        mine = [w for w in ways if (w.offer.provider, w.offer.instance_type) == kind]
        edges = sorted({0.0, 1.0, *(way.had for way in mine)})
        outcomes.append(
            [
                (high - low, min((w.weighed for w in mine if w.had >= high), default=inf))
                for low, high in pairwise(edges)
            ]
        )
    return sum(
        prod(chance for chance, _ in case) * min(last, *(cost for _, cost in case))
        for case in product(*outcomes)
    )


def keeping(workload: Workload, ways: list[Way], now: datetime) -> list[Way]:
    """All limits."""
    limits = workload.limits
    deadline = limits.deadline_at(now)
    right = [
        way
        for way in ways
        if deadline is None
        or (way.hours <= (deadline - now).total_seconds() / 3600 and way.chance >= limits.sure)
    ]
    if limits.budget is not None:
        right = [way for way in right if surely_within(way, limits.budget / 1e6, limits.sure)]
    return right


def surely_within(way: Way, budget: float, sure: float) -> bool:
    """What machines cost is log-normal, as their hours are."""
    if way.cost > budget:
        return False
    room, machines = np.array([budget - way.rest]), np.array([way.cost - way.rest])
    return bool(finish.in_time(room, machines, np.array([way.width]))[0] >= sure)
