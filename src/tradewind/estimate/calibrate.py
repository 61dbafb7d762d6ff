"""Fits the constants to measurements. Needs scipy (`tradewind[calibrate]`).

The residual is the logarithm of predicted over measured tokens per second. A source with many rows
counts less a row, so that two large ones do not drown the rest; a soft loss keeps odd rows from
pulling; and every constant is held to its prior, so that what few rows speak of stays near its kin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tradewind.estimate.calibrate_memory import fit_memory as fit_memory
from tradewind.estimate.cases import GENERATIONS
from tradewind.estimate.constants import MEMORY_PRIORS, PRIORS, Constants, stacks_of
from tradewind.estimate.measurements import Measurements
from tradewind.estimate.time import step_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

SOURCE_POWER = 0.5  # rows of a source of n count n**-0.5 each
HOLD = 0.05  # residuals that a spread from the prior is worth
SHARPEN_HOLD = 0.02  # and of the published fit, against a user's own points
_FAR = 8  # spreads from the prior: what a solver tries beyond is no number
_STEP = 1e-6  # of a logarithm, for slopes
_SETTLED = 1e-4  # of the cost: an improvement that is none
SOFT = 0.1  # residuals beyond this count linearly


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
    names = [
        name
        for name, prior in PRIORS.items()
        if name not in MEMORY_PRIORS and prior.spread and _own_rows(name, measured).any()
    ]
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
    """Gauss-Newton with Levenberg's damping, the soft loss as weights of the rows."""
    import numpy as np

    centre = np.log([middle[name] for name in names])
    spread = np.array([PRIORS[name].spread for name in names])
    weights = _weights(measured.sources)
    held = (hold / spread) ** 2

    def constants(points: Vector) -> Constants:
        """Of one point, or of many, one in each column."""
        near = np.clip(points.T, centre - _FAR * spread, centre + _FAR * spread).T
        moved = np.exp(near)
        values = moved.tolist() if moved.ndim == 1 else moved[:, :, None]
        return Constants({**middle, **dict(zip(names, values, strict=True))})

    def cost(point: Vector, off: Vector) -> float:
        soft = 2 * SOFT**2 * (np.sqrt(1 + (off / SOFT) ** 2) - 1)
        return float(weights @ soft + held @ (point - centre) ** 2)

    # A constant of one stack or generation moves only its own rows: those of one name are tried
    # together, which makes the slopes three times as fast to find.
    rows = [_own_rows(name, measured) for name in names]
    families: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        families.setdefault(name.partition(".")[0], []).append(column)

    def slopes(point: Vector, here: Vector) -> Vector:
        found = np.zeros((len(here), len(names)))
        points = np.tile(point, (len(families), 1))
        for line, columns in enumerate(families.values()):
            points[line, columns] += _STEP
        changes = (residuals(measured, constants(points.T)) - here) / _STEP
        for change, columns in zip(changes, families.values(), strict=True):
            for column in columns:
                found[:, column] = change * rows[column]
        return found

    point = np.log([start[name] for name in names])
    off = residuals(measured, constants(point))
    least, damping = cost(point, off), 1e-3
    for _ in range(evaluations):
        slope = slopes(point, off)
        pull = weights / np.sqrt(1 + (off / SOFT) ** 2)
        down = slope.T @ (pull * off) + held * (point - centre)
        bend = (slope.T * pull) @ slope + np.diag(held)
        while damping < 1e6:
            tried = point - np.linalg.solve(bend + damping * np.diag(np.diag(bend)), down)
            there = residuals(measured, constants(tried))
            found = cost(tried, there)
            if found < least:
                break
            damping *= 8
        else:
            break
        better, point, off, least = least - found, tried, there, found
        damping = max(damping / 8, 1e-7)
        if better < _SETTLED * least:
            break
    return constants(point)


def _own_rows(name: str, measured: Measurements) -> Vector:
    """1 for the rows that a constant can move: those of its stacks, or of its generation."""
    import numpy as np

    cases, owner = measured.cases, name.partition(".")[2]
    moved = cases.generation == owner
    if owner not in GENERATIONS:
        moved = np.isin(cases.stack, stacks_of(name))
    found: Vector = moved.astype(float)
    return found


def _weights(sources: Sequence[str]) -> Vector:
    import numpy as np

    number = Counter(sources)
    found: Vector = np.array([number[source] ** -SOURCE_POWER for source in sources])
    return found
