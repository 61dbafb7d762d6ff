"""Markets by chance: what a person may write down, drawn by a seed."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from msgspec.structs import replace

from tradewind.base import clock
from tradewind.model.usage import GB
from tradewind.sim.market import bounds
from tradewind.sim.market.script import Good, Offered, Script

if TYPE_CHECKING:
    from random import Random  # noqa: TID251 -- the type only

_HOUR_S = 3600
_KINDS = ((1.0, 1.0), (1.0, 1.0), (1.6, 1.75), (0.5, 0.45))
"""Speed and price of each, against the first."""


def drawn(seed: int) -> Script:
    rng = clock.generator(seed)
    work_s = float(rng.choice((1, 2, 5, 10, 16)) * _HOUR_S)
    price = rng.randrange(300_000, 40_000_000)
    saves_s = rng.choice((300, 600, 600, 3600))
    checkpoint = rng.choice((0, 0, 0, 2 * GB, 20 * GB))
    true = rng.choice((0.8, 0.95, 1.0, 1.0, 1.0, 1.1))
    span_s = int(3 * work_s)
    offered = [_demand(rng, 0, price, true, span_s)]
    if rng.random() < 0.4:
        offered.append(_demand(rng, 2, price, true, span_s))
    for number in range(rng.choice((1, 1, 2, 3, 5))):
        offered.append(_spot(rng, number, price, true, span_s))
    deadline_s = None
    if rng.random() < 0.75:
        deadline_s = int(work_s * rng.choice((1.15, 1.4, 2.0, 3.0)) / min(true, 1.0)) + 900
    budget = None
    if rng.random() < 0.2:
        budget = int(price * work_s / _HOUR_S * rng.choice((0.5, 1.0, 1.5, 3.0)))
    return Script(
        name=f"seed {seed}",
        says="drawn by chance",
        work_s=work_s,
        saves_s=saves_s,
        checkpoint=checkpoint,
        offered=tuple(offered),
        deadline_s=deadline_s,
        budget=budget,
        good=Good(outcome=""),
    )


def asleep(seed: int) -> Script:
    """The same as `drawn`, as it would be at a cloud where spot never costs more than on demand,
    with little money, and nobody who looks for hours or ever again."""
    script = drawn(seed)
    rng = clock.generator(seed + 1_000_000_000)
    offered = tuple(_capped(each, script) for each in script.offered)
    script = replace(script, name=f"asleep {seed}", offered=offered)
    free = bounds.best(replace(script, budget=None, deadline_s=None))
    since = int(rng.uniform(0.05, 0.8) * script.work_s)
    until = since + script.work_s * rng.choice((0.5, 1.0, 3.0, inf))
    dearest = max(each.price(0) * each.nodes for each in offered)
    return replace(
        script,
        budget=int(rng.choice((1.1, 1.5, 2.5)) * free.cost + dearest / 2),
        asleep=((since, until),),
    )


def _capped(spot: Offered, script: Script) -> Offered:
    alike = [o.price(0) for o in script.offered if (o.kind, o.market) == (spot.kind, "on_demand")]
    if spot.market != "spot" or not alike:
        return spot
    return replace(spot, prices=tuple((at, min(price, alike[0])) for at, price in spot.prices))


def _demand(rng: Random, kind: int, price: int, true: float, span_s: int) -> Offered:
    speed, dear = _KINDS[kind]
    return Offered(
        name=f"sure {kind}",
        market="on_demand",
        prices=((0, int(dear * price)),),
        speed=speed,
        really=speed * true,
        start_s=rng.choice((120, 240, 480)),
        nodes=1,
        notice_s=120,
        kind=f"kind-{kind}",
        region="r1",
        gb_in=0,
        gb_out=0,
        gone=_spans(rng, span_s, 1) if rng.random() < 0.2 else (),
    )


def _spot(rng: Random, number: int, price: int, true: float, span_s: int) -> Offered:
    kind = rng.randrange(len(_KINDS))
    speed, dear = _KINDS[kind]
    cheap = int(dear * price * rng.uniform(0.15, 0.8))
    prices = [(0, cheap)]
    if rng.random() < 0.3:
        moments = sorted(rng.randrange(1, span_s) for _ in range(rng.choice((1, 2, 4))))
        prices += [(at, int(cheap * rng.choice((0.7, 1.2, 2.0, 3.0)))) for at in moments]
    far = rng.random() < 0.3
    return Offered(
        name=f"spot {number}",
        market="spot",
        prices=tuple(prices),
        speed=speed,
        really=speed * true,
        start_s=rng.choice((120, 240, 480)),
        nodes=1,
        notice_s=rng.choice((1, 30, 120, 120)),
        kind=f"kind-{kind}",
        region="r2" if far else "r1",
        gb_in=20_000 if far else 0,
        gb_out=90_000 if far else 0,
        gone=_spans(rng, span_s, rng.choice((0, 0, 1, 2))),
        taken=tuple(sorted(rng.randrange(600, span_s) for _ in range(rng.choice((0, 1, 2, 6))))),
    )


def _spans(rng: Random, span_s: int, many: int) -> tuple[tuple[int, float], ...]:
    found: list[tuple[int, float]] = []
    for _ in range(many):
        since = rng.choice((0, rng.randrange(span_s)))
        for_s = rng.choice((1800.0, 4.0 * _HOUR_S, float(span_s), inf))
        found.append((since, since + for_s))
    return tuple(found)
