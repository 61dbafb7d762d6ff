"""How long prompts or answers are: one length, a range, a lognormal, or shares of several.

    Lengths.fixed(1000)
    Lengths.uniform(100, 2000)
    Lengths.lognormal(median=600, p95=3000)
    Lengths.shares({500: 0.6, 4000: 0.4})

What follows (queues, plans) takes a few sizes with their shares: `points` cuts a distribution into
slices and gives each its mean, so that the mean of all is kept; slices are finer in the upper tail,
because percentiles of latency are decided there.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log
from statistics import NormalDist

from tradewind.base.errors import InvalidValue

LONGEST = 10_000_000  # tokens: beyond this it is a slip of the keyboard
_CUTS = {6: (0.3, 0.6, 0.8, 0.92, 0.98), 4: (0.4, 0.75, 0.95)}
_ONE = r"(\d[\d,_]*(?:\.\d+)?k?)"
_P95 = NormalDist().inv_cdf(0.95)


@dataclass(frozen=True, slots=True)
class Lengths:
    """`kind` says what `values` are; shares belong to kind `shares` only."""

    kind: str
    values: tuple[float, ...]
    weights: tuple[float, ...] = ()

    @classmethod
    def fixed(cls, tokens: float) -> Lengths:
        _within(tokens)
        return cls("fixed", (float(tokens),))

    @classmethod
    def uniform(cls, low: float, high: float) -> Lengths:
        _within(low, high)
        if low > high:
            raise InvalidValue(f"{low:g} to {high:g} is empty", hint="the smaller number first")
        return cls("uniform", (float(low), float(high)))

    @classmethod
    def lognormal(cls, *, median: float, p95: float) -> Lengths:
        _within(median, p95)
        if p95 <= median:
            raise InvalidValue(f"p95 ({p95:g}) is not more than the median ({median:g})")
        return cls("lognormal", (float(median), float(p95)))

    @classmethod
    def shares(cls, table: Mapping[float, float]) -> Lengths:
        """Shares need not sum to 1 exactly; to within a hundredth they must."""
        if not table:
            raise InvalidValue("there is no length")
        _within(*table)
        total = sum(table.values())
        if min(table.values()) <= 0 or abs(total - 1) > 0.01:
            raise InvalidValue(
                f"shares sum to {total:.0%}", hint="each above 0 %, all together 100 %"
            )
        sizes = sorted(table)
        return cls("shares", tuple(map(float, sizes)), tuple(table[s] / total for s in sizes))

    @classmethod
    def parse(cls, text: str) -> Lengths:
        """`1000`, `100 to 2000`, or `median 600, p95 3000`."""
        plain = text.strip().lower()
        if found := re.fullmatch(_ONE, plain):
            return cls.fixed(_tokens(found[1]))
        if found := re.fullmatch(rf"{_ONE}\s*(?:to|-|–)\s*{_ONE}", plain):
            return cls.uniform(_tokens(found[1]), _tokens(found[2]))
        if found := re.fullmatch(rf"median\s+{_ONE}\s*,?\s*p95\s+{_ONE}", plain):
            return cls.lognormal(median=_tokens(found[1]), p95=_tokens(found[2]))
        raise InvalidValue(
            f"{text!r} is not a length of prompts or answers",
            hint="1000, 100 to 2000, or median 600, p95 3000",
        )

    @property
    def words(self) -> str:
        if self.kind == "fixed":
            return f"{self.values[0]:,.0f}"
        if self.kind == "uniform":
            return f"{self.values[0]:,.0f} to {self.values[1]:,.0f}"
        if self.kind == "lognormal":
            return f"median {self.values[0]:,.0f}, p95 {self.values[1]:,.0f}"
        pairs = zip(self.values, self.weights, strict=True)
        return ", ".join(f"{size:,.0f} ({share:.0%})" for size, share in pairs)

    @property
    def mean(self) -> float:
        return sum(size * share for size, share in self.points(6))

    def points(self, slices: int) -> list[tuple[float, float]]:
        """Sizes and their shares, the shortest first. `slices` is 4 or 6."""
        if self.kind == "fixed":
            return [(self.values[0], 1.0)]
        if self.kind == "shares":
            return list(zip(self.values, self.weights, strict=True))
        bounds = (0.0, *_CUTS[slices], 1.0)
        pairs = list(itertools.pairwise(bounds))
        return [(max(self._mean(low, high), 1.0), high - low) for low, high in pairs]

    def _mean(self, low: float, high: float) -> float:
        """Of the slice between two shares."""
        if self.kind == "uniform":
            first, last = self.values
            return first + (last - first) * (low + high) / 2
        median, p95 = self.values
        sigma = log(p95 / median) / _P95
        normal = NormalDist()

        def below(share: float) -> float:
            """The partial mean up to that share, of a lognormal with mean 1."""
            if share <= 0:
                return 0.0
            return 1.0 if share >= 1 else normal.cdf(normal.inv_cdf(share) - sigma)

        whole = median * exp(sigma**2 / 2)
        return whole * (below(high) - below(low)) / (high - low)


def _tokens(text: str) -> float:
    return float(text.replace(",", "").replace("_", "").removesuffix("k")) * (
        1000 if text.endswith("k") else 1
    )


def _within(*tokens: float) -> None:
    for value in tokens:
        if not 1 <= value <= LONGEST:
            raise InvalidValue(f"{value:g} tokens", hint=f"from 1 to {LONGEST:,}")
