"""When requests are sent: seconds from the beginning of a load, in order. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random  # noqa: TID251


def poisson(rate: float, requests: int, draw: random.Random) -> list[float]:
    """So many, the first at once, at random moments, `rate` a second on average."""
    moments = [0.0]
    for _ in range(requests - 1):
        moments.append(moments[-1] + draw.expovariate(rate))
    return moments


def poisson_within(rate: float, duration_s: float, draw: random.Random) -> list[float]:
    """As many as come; their number varies as their moments do."""
    moments = []
    at = draw.expovariate(rate)
    while at < duration_s:
        moments.append(at)
        at += draw.expovariate(rate)
    return moments


def constant(rate: float, duration_s: float) -> list[float]:
    return [number / rate for number in range(max(round(rate * duration_s), 1))]


def stretched(moments: Sequence[float], rate: float | None) -> list[float]:
    """From 0, and at this rate on average: bursts and pauses keep their shape."""
    start, last = moments[0], moments[-1]
    factor = 1.0
    if rate is not None and last > start:
        factor = (len(moments) - 1) / (last - start) / rate
    return [(moment - start) * factor for moment in moments]
