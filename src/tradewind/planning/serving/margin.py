"""How much slower than the middle of the estimate a plan takes machines to be. Pure.

Half of all machines are slower than the middle, and a plan by it would miss its targets on them. So
a plan takes the slow end of the estimate's band: steps, and the way to a first token, longer by
factors that hold with the chance `limits.confidence`, each for itself. Errors are about normal in
the logarithm, and a band of 80 % reaches 1.28 standard deviations to each side. Points of the
user's own stack move the estimate, and their band is narrower.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot
from statistics import NormalDist
from typing import TYPE_CHECKING

from tradewind.estimate.serving import band, sharpen

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Cases, Column
    from tradewind.estimate.serving.points import Points

    Terms = dict[str, Column]

_BAND_END = NormalDist().inv_cdf(0.9)


@dataclass(slots=True)
class Speeds:
    """By layout."""

    terms: Terms
    token: Column  # factors of seconds, margin and all: of every step
    first: Column  # of reading prompts, and of the engine before the first token
    margins: dict[str, Column]  # of those, the margin: `tpot` and `ttft`
    reasons: list[str]  # why the band is as wide as it is
    sharpened: int = 0  # layouts of which own points speak


def deviations(confidence: float) -> float:
    """Half bands above the middle; a confidence below a half is no reason to hope."""
    return max(NormalDist().inv_cdf(confidence), 0.0) / _BAND_END


def speeds(cases: Cases, terms: Terms, confidence: float, own: Points | None) -> Speeds:
    import numpy as np

    familiar = band.published().familiarity(cases)
    widths = {name: band.half_width(cases, name, familiar) for name in ("tpot", "ttft")}
    factors = {name: np.zeros(len(cases)) for name in widths}  # logarithms
    kinds = zip(familiar, cases.engine.tolist(), cases.chip.tolist(), cases.model.tolist(),
                strict=True)  # fmt: skip
    reasons = [band.reason(*kind) for kind in kinds]
    moved = {name: column.copy() for name, column in terms.items()}
    sharpened = 0
    for i in range(len(cases)) if own else ():
        assert own is not None
        one = cases.take([i])
        if not own.speaks_of(one):
            continue
        told = own.told(one)
        for name, column in told.terms.items():
            moved[name][i] = column[0]
        # A plan is for any number of sequences at once. So of the corrections only the factors are
        # left, and what points say of loads near them stays in the band.
        for name, width in widths.items():
            factors[name][i] = float(told.corrections[name][0])
            near = _BAND_END * sharpen.REST[name]
            width[i] = min(float(width[i]), hypot(told.widths[name], near))
        reasons[i] = told.reason
        sharpened += 1
    far = deviations(confidence)
    margins = {name: np.exp(far * width) for name, width in widths.items()}
    token, first = (np.exp(factors[name]) * margins[name] for name in ("tpot", "ttft"))
    return Speeds(moved, token, first, margins, reasons, sharpened)
