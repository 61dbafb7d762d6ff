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
HOLD = 0.3  # weight of the priors
SHARPEN_HOLD = 0.1  # and of the published fit, against a user's own points
_FAR = 8  # spreads from the prior: what a solver tries beyond is no number
_STEP = 1e-6  # of a logarithm, for slopes
SOFT = 0.05  # residuals beyond this count linearly


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
    names = [name for name in PRIORS if name not in MEMORY_PRIORS and _speaks_of(name, measured)]
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
        near = np.clip(point, centre - _FAR * spread, centre + _FAR * spread)
        moved = dict(zip(names, np.exp(near).tolist(), strict=True))
        return Constants({**middle, **moved})

    def cost(point: Vector) -> Vector:
        held = (point - centre) / spread * hold
        found: Vector = np.concatenate([weights * residuals(measured, constants(point)), held])
        return found

    # A constant of one stack or generation moves only its own rows: those of one name are tried
    # together, which makes the slopes three times as fast to find.
    owner = {name: name.partition(".")[2] for name in names}
    rows = {o: _own_rows(o, measured) for o in set(owner.values())}
    families: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        families.setdefault(name.partition(".")[0], []).append(column)

    def slopes(point: Vector) -> Vector:
        here = weights * residuals(measured, constants(point))
        found = np.zeros((len(here) + len(names), len(names)))
        for columns in families.values():
            moved = point.copy()
            moved[columns] += _STEP
            change = (weights * residuals(measured, constants(moved)) - here) / _STEP
            for column in columns:
                found[: len(here), column] = change * rows[owner[names[column]]]
        found[len(here) :] = np.diag(hold / spread)
        return found

    first = np.log([start[name] for name in names])
    solved: Any = least_squares(
        cost, first, slopes, loss="soft_l1", f_scale=SOFT, max_nfev=evaluations, x_scale=spread
    )
    return constants(solved.x)


def _own_rows(owner: str, measured: Measurements) -> Vector:
    """1 for the rows of a stack or generation, or for all where a constant is everyone's."""
    cases = measured.cases
    found: Vector = ((cases.stack == owner) | (cases.generation == owner) | (not owner)).astype(
        float
    )
    return found


def _speaks_of(name: str, measured: Measurements) -> bool:
    return bool(_own_rows(name.partition(".")[2], measured).any())


def _weights(sources: Sequence[str]) -> Vector:
    import numpy as np

    number = {source: sources.count(source) for source in set(sources)}
    raw = np.array([number[source] ** -SOURCE_POWER for source in sources])
    found: Vector = raw / np.sqrt((raw**2).mean())
    return found
