"""How far off an estimate may be: the band that held four fifths of the sources left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.estimate.calibrate import familiarity
from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import calibration

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column


def half_width(cases: Cases) -> Column:
    """Half of the 80 % band in the logarithm: the estimate is right within a factor exp(±that)."""
    import numpy as np

    known = calibration()
    pairs = {(stack, generation) for stack, generation in known["measured"]}
    widths = known["bands"]
    distinct = {
        pair: widths[familiarity(pair, pairs)]
        for pair in set(zip(cases.stack.tolist(), cases.generation.tolist(), strict=True))
    }
    found: Column = np.array(
        [
            distinct[pair]
            for pair in zip(cases.stack.tolist(), cases.generation.tolist(), strict=True)
        ]
    )
    return found
