"""A model to be served: what asks for it, and what it promises.

    Serve(
        model="llama-3.1-8b",
        rate=12.0,
        input=Lengths.lognormal(median=600, p95=3000),
        output=Lengths.fixed(200),
        ttft_s=0.5,
        tpot_s=0.05,
    )

Traffic is a rate with lengths, shaped by a `curve` of hours or not, or a `trace` of requests that
were seen. A target is a latency with the share of requests that must keep it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.model import checks
from tradewind.model.checks import Fault
from tradewind.model.lengths import Lengths
from tradewind.model.shape import Shape, Work

CURVES = (24, 168)
"""Hours of a day, or of a week that begins on Monday."""
TARGETS = ("ttft", "tpot", "e2e")
USUAL_SHARE = 0.95
MOST_RATE = 1e6
MOST_CV = 20.0
MOST_WARM = 10_000
MOST_PLACES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Serve:
    model: str | Shape | Work
    engine: str | None = None
    weights: str | None = None
    """Format; None: 16 bits."""
    quantise: tuple[str, ...] | None = None
    """Further formats that may be chosen where they are cheaper."""
    cache: str | None = None
    tp: int | None = None
    measured: str | None = None
    """A CSV of points of the user's own stack."""
    rate: float | None = None
    """Requests a second: the mean over the curve, where there is one."""
    input: Lengths | None = None
    output: Lengths | None = None
    cv: float = 1.0
    """Coefficient of variation of the gaps between requests."""
    curve: tuple[float, ...] | None = None
    """Of each hour of a day or a week; in requests a second where there is no `rate`."""
    growth: float = 0.0
    """Of the traffic, a month."""
    trace: str | None = None
    cached: float = 0.0
    """Share of prompts' tokens that a prefix cache holds."""
    ttft_s: float | None = None
    ttft_share: float = USUAL_SHARE
    tpot_s: float | None = None
    tpot_share: float = USUAL_SHARE
    e2e_s: float | None = None
    e2e_share: float = USUAL_SHARE
    availability: float = 0.99
    """Share of the time in which there are replicas enough for the targets."""
    users: tuple[tuple[str, float], ...] | None = None
    """Cities with their shares of the requests; None: distances are not counted."""
    residency: tuple[str, ...] | None = None
    warm: int = 1
    """Replicas that are always up."""
    scale_to_zero: bool = False

    def __post_init__(self) -> None:
        checks.raise_any("serve", self.faults(checks.fields_of(self)))

    @property
    def targets(self) -> dict[str, tuple[float, float]]:
        """Seconds and share of requests, by name."""
        found = {}
        for name in TARGETS:
            seconds = getattr(self, f"{name}_s")
            if seconds is not None:
                found[name] = (seconds, getattr(self, f"{name}_share"))
        return found

    @staticmethod
    def faults(
        values: Mapping[str, Any], wrong: Collection[str] = checks.NOTHING
    ) -> Iterator[Fault]:
        seen = {name for name in values if values[name] is not None} | set(wrong)
        if "model" not in seen:
            yield Fault("model", "it is missing: what is served?", "model: llama-3.1-8b")
        yield from _traffic(values, seen)
        yield from checks.positive(values, "rate", "cv")
        yield from _between(values, "rate", 0, MOST_RATE)
        yield from _between(values, "cv", 0.1, MOST_CV)
        yield from _targets(values, seen)
        for name in ("cached", "growth"):
            value = values.get(name)
            if value is not None and not (isinstance(value, int | float) and 0 <= value < 1):
                yield Fault(name, f"{checks.shown(value)} is not from 0 % to below 100 %")
        share = values.get("availability")
        if share is not None and not (isinstance(share, float) and 0.5 <= share <= 0.99999):
            yield Fault("availability", "it is not from 50 % to 99.999 %", "availability: 99.9%")
        yield from checks.whole(values, "tp")
        warm = values.get("warm")
        if warm is not None and not (
            isinstance(warm, int) and not isinstance(warm, bool) and 0 <= warm <= MOST_WARM
        ):
            yield Fault("warm", f"{checks.shown(warm)} is no number from 0 to {MOST_WARM:,}")
        yield from checks.flag(values, "scale_to_zero")
        if values.get("scale_to_zero") and (warm or 0) > 1:
            yield Fault("warm", "scale_to_zero is true, and so many are always up", "one of them")
        yield from _users(values.get("users"))
        yield from checks.listed(values, "quantise", "residency")
        yield from checks.text(values, "engine", "weights", "cache", "trace", "measured")


def _traffic(values: Mapping[str, Any], seen: Collection[str]) -> Iterator[Fault]:
    if "trace" in seen:
        for name in ("input", "output", "curve"):
            if name in seen:
                yield Fault(name, "there is a trace, which says that already", "one of them")
        return
    for name in ("input", "output"):
        if name not in seen:
            yield Fault(name, "how long? It is missing, and there is no trace", f"{name}: 1000")
    if not {"rate", "curve"} & set(seen):
        yield Fault("rate", "how many requests? rate, curve or trace is missing", "rate: 12")
    curve = values.get("curve")
    if curve is None:
        return
    if len(curve) not in CURVES:
        yield Fault(
            "curve", f"{len(curve)} hours", "24 of a day, or 168 of a week that begins on Monday"
        )
    elif min(curve) < 0 or max(curve) > MOST_RATE:
        yield Fault("curve", f"a rate is not from 0 to {MOST_RATE:,.0f}")
    elif max(curve) <= 0:
        yield Fault("curve", "every hour is 0: nobody asks")


def _targets(values: Mapping[str, Any], seen: Collection[str]) -> Iterator[Fault]:
    named = [name for name in TARGETS if {name, f"{name}_s"} & set(seen)]
    if not named:
        yield Fault(
            "ttft", "which latency is promised? ttft, tpot or e2e is missing", "ttft: 500ms"
        )
    for name in TARGETS:
        yield from checks.positive(values, f"{name}_s", field=name)
        share = values.get(f"{name}_share")
        if share is not None and not (isinstance(share, float) and 0.5 <= share <= 0.999):
            yield Fault(name, "its percentile is not from p50 to p99.9", f"{name}: 500ms p95")


def _users(given: Any) -> Iterator[Fault]:
    if given is None:
        return
    if not 1 <= len(given) <= MOST_PLACES:
        yield Fault("users", f"{len(given)} places", f"1 to {MOST_PLACES} of them")
    elif len({name for name, _ in given}) < len(given):
        yield Fault("users", "a place is there twice", "once, with the sum of its shares")
    elif min(share for _, share in given) <= 0:
        yield Fault("users", "a share is not above 0 %")
    elif abs(sum(share for _, share in given) - 1) > 0.001:
        total = sum(share for _, share in given)
        yield Fault("users", f"shares sum to {total:.4g}, not to 100 %",
                    "{frankfurt: 60%, new-york: 40%}")  # fmt: skip


def _between(values: Mapping[str, Any], name: str, low: float, high: float) -> Iterator[Fault]:
    value = values.get(name)
    if isinstance(value, int | float) and value > 0 and not low <= value <= high:
        yield Fault(name, f"{value:g} is not from {low:g} to {high:,.0f}")
