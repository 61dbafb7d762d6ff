"""Serverless GPUs and models by the token beside a plan: what they cost, and from which traffic on
the plan is cheaper. Pure.

A container is up while it answers and until it has been idle for a while; with few requests that
is a share of the time, 1 - exp(-rate × (answering + idle)) for a Poisson stream. Requests that find
none wait for one to start, so where more of them do than a target on the first token or the whole
allows, one is kept up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import ceil, exp
from typing import TYPE_CHECKING

from tradewind.base.units import Micros
from tradewind.catalog.alternatives import ModelApi, Serverless
from tradewind.model.serve import Serve
from tradewind.model.serveplan import Alternative
from tradewind.planning.finish import STORE_RATE
from tradewind.planning.serving.layouts import Layout
from tradewind.planning.serving.shelf import ENGINE_S
from tradewind.planning.serving.traffic import HOURS_A_MONTH, Traffic

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

CONTAINER_S = 5.0  # a container with a GPU, before the engine starts
_GRID = tuple(10 ** (n / 50) for n in range(-150, 101))
"""Times the traffic at which a crossover is looked for: the same of all alternatives, so that what
the plan costs there is asked once."""
_FAR = (200, 250)  # of the grid: ten and a hundred times the traffic
Cost = Callable[[float], float | None]
"""Dollars a month at so many times the traffic."""


def by_the_token(apis: Iterable[ModelApi], model: str, traffic: Traffic) -> list[Alternative]:
    tokens_in, tokens_out = traffic.tokens_a_month
    found = []
    for api in apis:
        if api.model != model:
            continue
        cost = (tokens_in * api.input_usd + tokens_out * api.output_usd) / 1e6
        found.append(
            Alternative(
                kind="api", provider=api.provider, what=api.offered_as,
                cost=_micros(cost), usd_per_million=1e6 * cost / (tokens_in + tokens_out),
                crossover=None,
                note=f"${api.input_usd:g} in, ${api.output_usd:g} out a million; its latency and "
                "its weights' format are not known",
                as_of=api.as_of, source=api.source,
            )
        )  # fmt: skip
    return sorted(found, key=lambda one: one.cost)


def without_servers(
    offers: Iterable[Serverless], layouts: list[Layout], rates: Column, answering: Column,
    traffic: Traffic, serve: Serve, weight_bytes: float,
) -> list[tuple[Alternative, Cost]]:  # fmt: skip
    """The cheapest layout of each offer. `rates`, and `answering` in seconds, are by layout."""
    tokens = sum(traffic.tokens_a_month)
    found = []
    for offer in offers:
        best: tuple[float, Layout, str, Cost] | None = None
        for n, layout in enumerate(layouts):
            if layout.accelerator != offer.accelerator or layout.tp > offer.most_accelerators:
                continue
            if not rates[n] > 0:
                continue

            def cost(
                times: float, n: int = n, tp: int = layout.tp, offer: Serverless = offer
            ) -> float:
                billed = up_hours(
                    traffic.scaled(times), float(rates[n]), float(answering[n]), offer, serve,
                    weight_bytes,
                )[0]  # fmt: skip
                return billed * 3600 * offer.usd_per_s * tp

            billed, note = up_hours(
                traffic, float(rates[n]), float(answering[n]), offer, serve, weight_bytes
            )
            dollars = billed * 3600 * offer.usd_per_s * layout.tp
            if best is None or dollars < best[0]:
                best = (dollars, layout, note, cost)
        if best is not None:
            dollars, layout, note, function = best
            alternative = Alternative(
                kind="serverless", provider=offer.provider,
                what=f"{offer.service}, {layout.tp}× {layout.accelerator}, {layout.weights}",
                cost=_micros(dollars), usd_per_million=1e6 * dollars / tokens, crossover=None,
                note=note, as_of=offer.as_of, source=offer.source,
            )  # fmt: skip
            found.append((alternative, function))
    return sorted(found, key=lambda one: one[0].cost)


def up_hours(
    traffic: Traffic, rate: float, answering: float, offer: Serverless, serve: Serve,
    weight_bytes: float,
) -> tuple[float, str]:  # fmt: skip
    """Hours of containers that a month is billed, and how cold starts were counted."""
    cold_s = CONTAINER_S + ENGINE_S + weight_bytes / STORE_RATE
    slow = cold_s + answering
    allowed = min(
        (1 - share for name, (seconds, share) in serve.targets.items()
         if name != "tpot" and seconds < slow),
        default=1.0,
    )  # fmt: skip
    least = serve.warm if not serve.scale_to_zero else 0
    total, warm = 0.0, False
    for each in traffic.hours:
        need = ceil(each / rate - 1e-9)
        cold = exp(-each * (answering + offer.idle_s))
        if need > 1:
            total += max(need, least)
        elif least or (each > 0 and cold > allowed):
            total, warm = total + max(1, least), True
        else:
            total += 1 - cold
    note = f"ends after {offer.idle_s:.0f} s idle; starting again takes {cold_s:.0f} s"
    if warm:
        note += ", so one is always up in quiet hours"
    return total * HOURS_A_MONTH / len(traffic.hours), note


def with_crossover(alternative: Alternative, theirs: Cost, ours: Cost, mean: float) -> Alternative:
    """The traffic, in requests a second, above which ours is cheaper."""

    def cheaper(times: float) -> bool:
        mine, other = ours(times), theirs(times)
        return mine is not None and other is not None and mine < other

    high = next((n for n in _FAR if cheaper(_GRID[n])), None)
    if high is None:
        return alternative
    if cheaper(_GRID[0]):
        return replace(alternative, crossover=0.0)
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cheaper(_GRID[middle]) else (middle, high)
    return replace(alternative, crossover=_GRID[high] * mean)


def _micros(dollars: float) -> Micros:
    return Micros(round(dollars * 1e6))
