"""What the fit says of rows that it has not seen: whole sources, models or chips left out in turn.

A row of a source left out shows how a newcomer's measurement will compare; a model left out, how a
shape nobody measured will; a chip left out, how an accelerator nobody measured will. Each residual
goes with how familiar the rest still was with what the row speaks of, and `bands` takes the widths
from that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.estimate.band import CLASSES, Evidence, Kind, kinds
from tradewind.estimate.calibrate import fit, residuals
from tradewind.estimate.constants import Constants
from tradewind.estimate.measurements import Measurements

if TYPE_CHECKING:
    from tradewind.estimate.calibrate import Vector

FOLDS = 12  # of models
_HOLD = 30  # rows that a kind's own width is worth its class's
_NEW = 1.3  # what nobody measured is this much less certain than what has kin


@dataclass(frozen=True, slots=True)
class LeftOut:
    residuals: Vector
    familiarity: list[str]  # with the row's kind, of the rows that stayed


def one_by_one(measured: Measurements, groups: Sequence[Any], start: Constants) -> LeftOut:
    """Each row by constants fitted to the rows of all other groups."""
    import numpy as np

    group, speaks = np.array(groups), kinds(measured.cases)
    found = np.zeros(len(group))
    familiar = [""] * len(group)
    for name in sorted(set(groups)):
        out = group == name
        rest = measured.take(~out)
        evidence = Evidence.of(kinds(rest.cases), rest.sources)
        # Where nothing else was measured, the priors are all there is.
        others = fit(rest, start=start.values, evaluations=10) if len(rest.cases) else Constants({})
        found[out] = residuals(measured.take(out), others)
        for i in np.flatnonzero(out):
            familiar[i] = evidence.familiarity(speaks[i])
    return LeftOut(found, familiar)


def by_source(measured: Measurements, start: Constants) -> LeftOut:
    return one_by_one(measured, measured.sources, start)


def by_model(measured: Measurements, start: Constants) -> LeftOut:
    """In a dozen folds, each model whole in one of them."""
    fold = {name: i % FOLDS for i, name in enumerate(sorted(set(measured.models)))}
    return one_by_one(measured, [fold[name] for name in measured.models], start)


def by_chip(measured: Measurements, start: Constants) -> LeftOut:
    return one_by_one(measured, measured.cases.chip.tolist(), start)


def bands(measured: Measurements, left_out: Sequence[LeftOut]) -> dict[str, Any]:
    """Half-widths, in the logarithm, that hold four fifths of the rows: of each class, and of each
    kind that was measured much.

    Of what was never measured together, a source with many rows counts less a row: one that is the
    only one of its stack would otherwise speak for all that nobody has seen.
    """
    classes: dict[str, list[tuple[float, float]]] = defaultdict(list)
    own: dict[Kind, list[tuple[float, float]]] = defaultdict(list)
    for part in left_out:
        number = Counter(zip(measured.sources, part.familiarity, strict=True))
        rows = zip(
            part.residuals, part.familiarity, kinds(measured.cases), measured.sources, strict=True
        )
        for off, familiar, kind, source in rows:
            few = familiar in ("kin", "new")
            weight = number[source, familiar] ** -0.5 if few else 1.0
            classes[familiar].append((abs(float(off)), weight))
            if familiar == "measured":
                own[kind].append((abs(float(off)), 1.0))
    found: dict[str, Any] = {}
    width = 0.0
    for name in CLASSES:
        if classes[name]:
            width = max(width, _four_fifths(classes[name]))  # less known is never more certain
        found[name] = width
    found["new"] = max(found["new"], _NEW * found["kin"])
    found = {name: round(width, 4) for name, width in found.items()}
    found["kinds"] = {
        " ".join(kind): round(_between(_four_fifths(sizes), found["measured"], len(sizes)), 4)
        for kind, sizes in sorted(own.items())
    }
    return found


def _between(own: float, common: float, rows: int) -> float:
    share = rows / (rows + _HOLD)
    return float(own**share * common ** (1 - share))


def _four_fifths(rows: Sequence[tuple[float, float]]) -> float:
    """The weighted quantile."""
    import numpy as np

    sizes, weights = (np.array(column) for column in zip(*rows, strict=True))
    order = np.argsort(sizes)
    reached = np.cumsum(weights[order]) / weights.sum()
    return float(sizes[order][np.searchsorted(reached, 0.8)])
