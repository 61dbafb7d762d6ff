"""What the fit says of rows it has not seen: blocks, sources, models or chips left out in turn.

The strict judges leave blocks out that are as strange as what will come (`judges.py`). A row of a
source left out shows how a newcomer's measurement will compare; a model left out, how a shape
nobody measured will; a chip left out, how an accelerator nobody measured will. Each residual goes
with how familiar the rest still was with what the row speaks of, and `bands` takes the widths from
that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.estimate.band import CLASSES, Evidence, Kind, kinds
from tradewind.estimate.calibrate import fit, residuals
from tradewind.estimate.constants import Constants
from tradewind.estimate.judges import Block
from tradewind.estimate.measurements import Measurements

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tradewind.estimate.calibrate import Vector

FOLDS = 12  # of models
# What comes is stranger than what could be left out: a band of four fifths takes a little more.
HELD = 0.84
_HOLD = 30  # rows that a kind's own width is worth its class's
_NEW = 1.3  # what nobody measured is this much less certain than what has kin


@dataclass(frozen=True, slots=True)
class LeftOut:
    rows: NDArray[np.intp]  # which ones were judged
    residuals: Vector
    familiarity: list[str]  # with the row's kind, of the rows that stayed


def of_blocks(measured: Measurements, blocks: Sequence[Block]) -> LeftOut:
    """The rows of each block by constants fitted to its rest."""
    import numpy as np

    speaks = kinds(measured.cases)
    # Few rows may have no block: nothing is judged then.
    rows: list[Any] = [np.zeros(0, dtype=np.intp)]
    found: list[Any] = [np.zeros(0)]
    familiar: list[str] = []
    for block in blocks:
        rest = measured.take(block.rest)
        evidence = Evidence.of(kinds(rest.cases), rest.sources)
        # Where nothing else was measured, the priors are all there is.
        others = fit(rest) if len(rest.cases) else Constants({})
        mine = np.flatnonzero(block.out)
        rows.append(mine)
        found.append(residuals(measured.take(block.out), others))
        familiar += [evidence.familiarity(speaks[i]) for i in mine]
    return LeftOut(np.concatenate(rows), np.concatenate(found), familiar)


def one_by_one(measured: Measurements, groups: Sequence[Any]) -> LeftOut:
    """Each row by constants fitted to the rows of all other groups."""
    import numpy as np

    group = np.array(groups)
    masks = [group == name for name in sorted(set(groups))]
    return of_blocks(measured, [Block(mask, ~mask) for mask in masks])


def by_source(measured: Measurements) -> LeftOut:
    return one_by_one(measured, measured.sources)


def by_model(measured: Measurements) -> LeftOut:
    """In a dozen folds, each model whole in one of them."""
    fold = {name: i % FOLDS for i, name in enumerate(sorted(set(measured.models)))}
    return one_by_one(measured, [fold[name] for name in measured.models])


def by_chip(measured: Measurements) -> LeftOut:
    return one_by_one(measured, measured.cases.chip.tolist())


def bands(measured: Measurements, left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """Half-widths, in the logarithm, that hold four fifths of the rows: of each class, and of each
    kind that was measured much.

    A source with many rows counts less a row, and still less of what was never measured together:
    one that is the only one of its stack would otherwise speak for all the others.
    """
    classes: dict[str, list[tuple[float, float]]] = defaultdict(list)
    own: dict[Kind, list[tuple[float, float]]] = defaultdict(list)
    speaks = kinds(measured.cases)
    for part in left_out:
        sources = [measured.sources[i] for i in part.rows]
        number = Counter(zip(sources, part.familiarity, strict=True))
        for row, off, familiar, source in zip(
            part.rows, part.residuals, part.familiarity, sources, strict=True
        ):
            balance = -0.6 if familiar in ("kin", "new") else -0.5
            size = (abs(float(off)), float(number[source, familiar]) ** balance)
            classes[familiar].append(size)
            if familiar == "measured":
                own[speaks[row]].append(size)
    found: dict[str, Any] = {}
    width = 0.0
    for name in CLASSES:
        if classes[name]:
            width = max(width, _holding(classes[name]))  # less known is never more certain
        found[name] = width
    found["new"] = max(found["new"], _NEW * found["kin"])
    found = {name: round(width, 4) for name, width in found.items()}
    found["kinds"] = {
        " ".join(kind): round(_between(_holding(sizes), found["measured"], len(sizes)), 4)
        for kind, sizes in sorted(own.items())
    }
    return found


def _between(own: float, common: float, rows: int) -> float:
    share = rows / (rows + _HOLD)
    return float(own**share * common ** (1 - share))


def _holding(rows: Sequence[tuple[float, float]]) -> float:
    """The weighted quantile."""
    import numpy as np

    sizes, weights = (np.array(column) for column in zip(*rows, strict=True))
    order = np.argsort(sizes)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(sizes[order][np.searchsorted(reached, HELD)])
