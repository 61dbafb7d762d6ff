"""Fits the memory constants to published peaks and outcomes. Needs scipy (`tradewind[calibrate]`).

A peak counts by the logarithm of estimated over published; an outcome by how unlikely the estimate
makes it. A few failures have nothing to do with memory, so none is held for impossible. As for
speed, large sources count less a row, and every constant is held to its prior.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tradewind.estimate import solvers
from tradewind.estimate.constants import MEMORY_PRIORS, Constants
from tradewind.estimate.judges import Block
from tradewind.estimate.memory import fit_probability, memory_use, possible, usable
from tradewind.estimate.outcomes import Outcomes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

SOURCE_POWER = 0.25  # rows of a source of n count n**-0.25 each
HOLD = 0.4  # weight of the priors
SOFT = 0.1  # peaks farther off than this, in the logarithm, count linearly
STRAY = 0.05  # of all runs fail for other reasons than memory
LARGE = 500  # rows; sources of more are left out model by model too


def fit_memory(outcomes: Outcomes) -> dict[str, float]:
    """All memory constants. How far peaks lie off is what rows show that were left out: by source,
    and of large sources by model. What can be filled comes from the likelihood, and judges rows
    left out as rightly as any other threshold, to a fifth of a percent."""
    import numpy as np

    found = _fit(outcomes)
    off, _ = left_out(outcomes, models_of_large(outcomes))
    told = np.isfinite(off)
    found["peak_spread"] = _spread(off[told], _weights(outcomes.sources)[told])
    return found


def models_of_large(outcomes: Outcomes) -> list[str]:
    """Each row's source; of a large source, with the row's model."""
    large = {s for s, n in Counter(outcomes.sources).items() if n > LARGE}
    pairs = zip(outcomes.sources, outcomes.models, strict=True)
    return [f"{source} {model}" if source in large else source for source, model in pairs]


def left_out(outcomes: Outcomes, groups: Sequence[str]) -> tuple[Vector, Vector]:
    """Each row under constants fitted to all other groups."""
    import numpy as np

    owner = np.array(groups)
    masks = [owner == group for group in sorted(set(groups))]
    return of_blocks(outcomes, [Block(mask, ~mask) for mask in masks])


def of_blocks(outcomes: Outcomes, blocks: Iterable[Block]) -> tuple[Vector, Vector]:
    """The rows of each block under constants fitted to its rest, as `compared` tells them."""
    import numpy as np

    off, room = np.full((2, len(outcomes.cases)), np.nan)
    for block in blocks:
        constants = Constants(_fit(outcomes.take(block.rest)))
        off[block.out], room[block.out] = compared(outcomes.take(block.out), constants)
    return off, room


def compared(outcomes: Outcomes, constants: Constants) -> tuple[Vector, Vector]:
    """Of each row log(estimated / published peak), not a number where none was published, and
    log(peak / what can be filled)."""
    import numpy as np

    use = memory_use(outcomes.cases, constants)
    told = np.where(outcomes.peak_gb > 0, outcomes.peak_gb, np.nan)
    room = np.log(use.peak / usable(outcomes.cases, constants))
    return np.log(outcomes.as_published(constants) / told), room


def _fit(outcomes: Outcomes) -> dict[str, float]:
    import numpy as np

    least_squares = solvers.optimize().least_squares
    names = [name for name in MEMORY_PRIORS if name != "peak_spread"]
    middle = np.log([MEMORY_PRIORS[name].start for name in names])
    spread = np.array([MEMORY_PRIORS[name].spread for name in names])
    told = outcomes.peak_gb > 0
    published = outcomes.take(told)
    ran = outcomes.ran > 0
    judged = possible(outcomes.cases)
    weight = _weights(outcomes.sources)

    def cost(point: Vector) -> Vector:
        constants = Constants(dict(zip(names, np.exp(point).tolist(), strict=True)))
        use = memory_use(outcomes.cases, constants)
        off = np.log(published.as_published(constants) / published.peak_gb) / SOFT
        likely = (1 - STRAY) * fit_probability(outcomes.cases, use, constants)
        unlikely = -np.log(np.where(ran, likely, 1 - likely)[judged])
        found: Vector = np.concatenate(
            [
                weight[told] * np.sqrt(2 * (np.sqrt(1 + off**2) - 1)),  # linear where far
                weight[judged] * np.sqrt(2 * np.maximum(unlikely + np.log(1 - STRAY), 0)),
                HOLD * (point - middle) / spread,
            ]
        )
        return found

    solved: Any = least_squares(cost, middle, x_scale=spread, max_nfev=60)
    return dict(zip(names, np.exp(solved.x).tolist(), strict=True))


def _spread(off: Vector, weight: Vector) -> float:
    """A standard deviation that odd rows do not pull: from the middle two thirds."""
    import numpy as np

    order = np.argsort(np.abs(off))
    reached = np.cumsum(weight[order]) / weight.sum()
    return float(np.abs(off)[order][np.searchsorted(reached, 0.683)])


def _weights(sources: Sequence[str]) -> Vector:
    import numpy as np

    number = {source: sources.count(source) for source in set(sources)}
    return np.array([number[source] ** -SOURCE_POWER for source in sources])
