"""Fits the constants to measurements. Needs scipy (`tradewind[calibrate]`).

The residual is the logarithm of predicted over measured tokens per second. A source with many rows
counts less a row, so that two large ones do not drown the rest; a soft loss keeps odd rows from
pulling; and every constant is held to its prior, so that what few rows speak of stays near its kin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tradewind.estimate import solvers
from tradewind.estimate.calibrate_memory import fit_memory as fit_memory
from tradewind.estimate.constants import MEMORY_PRIORS, PRIORS, Constants
from tradewind.estimate.measurements import Measurements
from tradewind.estimate.time import step_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

SOURCE_POWER = 0.45  # rows of a source of n count n**-0.45 each
HOLD = 0.35  # weight of the priors
SHARPEN_HOLD = 0.1  # and of the published fit, against a user's own points
SOFT = 0.08  # residuals beyond this count linearly


def residuals(measured: Measurements, constants: Constants) -> Vector:
    """log(predicted / measured)."""
    import numpy as np

    predicted = step_time(measured.cases, constants).tokens_per_s
    found: Vector = np.log(predicted) - np.log(measured.tokens_per_s)
    return found


def fit(
    measured: Measurements, *, start: Mapping[str, float] | None = None, evaluations: int = 40
) -> Constants:
    """All constants of time, held to their priors."""
    names = [name for name in PRIORS if name not in MEMORY_PRIORS]
    middle = {name: PRIORS[name].start for name in names}
    return _solve(measured, names, middle, start or middle, HOLD, evaluations)


def sharpen(measured: Measurements, constants: Constants) -> Constants:
    """The constants of the stacks that were measured, moved to a user's own few points.

    They are held to what the published measurements gave, so that three points correct a stack's
    speed without unlearning the rest.
    """
    stacks = set(measured.cases.stack.tolist())
    names = [name for name in PRIORS if name.partition(".")[2] in stacks]
    return _solve(measured, names, constants.values, constants.values, SHARPEN_HOLD, 40)


def _solve(
    measured: Measurements,
    names: Sequence[str],
    middle: Mapping[str, float],
    start: Mapping[str, float],
    hold: float,
    evaluations: int,
) -> Constants:
    import numpy as np

    least_squares = solvers.optimize().least_squares
    centre = np.log([middle[name] for name in names])
    spread = np.array([PRIORS[name].spread for name in names])
    weights = _weights(measured.sources)

    def constants(point: Vector) -> Constants:
        moved = dict(zip(names, np.exp(point).tolist(), strict=True))
        return Constants({**middle, **moved})

    def cost(point: Vector) -> Vector:
        held = (point - centre) / spread * hold
        found: Vector = np.concatenate([weights * residuals(measured, constants(point)), held])
        return found

    first = np.log([start[name] for name in names])
    solved: Any = least_squares(
        cost, first, loss="soft_l1", f_scale=SOFT, max_nfev=evaluations, x_scale=spread
    )
    return constants(solved.x)


def _weights(sources: Sequence[str]) -> Vector:
    import numpy as np

    number = {source: sources.count(source) for source in set(sources)}
    raw = np.array([number[source] ** -SOURCE_POWER for source in sources])
    found: Vector = raw / np.sqrt((raw**2).mean())
    return found


def leave_one_source_out(measured: Measurements, constants: Constants) -> Vector:
    """Residuals of each row under constants fitted to all other sources."""
    import numpy as np

    sources = np.array(measured.sources)
    found = np.zeros(len(sources))
    for source in sorted(set(measured.sources)):
        left = sources == source
        others = fit(measured.take(~left), start=constants.values, evaluations=12)
        found[left] = residuals(measured.take(left), others)
    return found


def bands(measured: Measurements, left_out: Vector) -> dict[str, float]:
    """Half-widths, in the logarithm, of the band that holds four fifths of the rows left out.

    `known` where the other sources still had the row's stack on its generation of accelerator,
    `kin` where they had one of the two, `new` where neither. Each source counts the same.
    """
    import numpy as np

    classes: dict[str, list[tuple[float, float]]] = {"known": [], "kin": [], "new": []}
    pairs = list(zip(measured.cases.stack, measured.cases.generation, strict=True))
    for source in sorted(set(measured.sources)):
        others = {pair for pair, s in zip(pairs, measured.sources, strict=True) if s != source}
        mine = [i for i, s in enumerate(measured.sources) if s == source]
        for i in mine:
            classes[familiarity(pairs[i], others)].append((abs(left_out[i]), 1 / len(mine)))
    found: dict[str, float] = {}
    width = 0.0
    for name, rows in classes.items():
        if rows:
            sizes, weights = (np.array(column) for column in zip(*rows, strict=True))
            order = np.argsort(sizes)
            reached = np.cumsum(weights[order]) / weights.sum()
            width = max(width, float(sizes[order][np.searchsorted(reached, 0.8)]))
        found[name] = width or 0.5  # what is less known is never more certain
    return found


def familiarity(pair: tuple[str, str], known: set[tuple[str, str]]) -> str:
    if pair in known:
        return "known"
    stacks, generations = {s for s, _ in known}, {g for _, g in known}
    return "kin" if pair[0] in stacks or pair[1] in generations else "new"
