"""What the fit says of rows it has not seen: sources, models, accelerators … left out in turn.

Each residual goes with how familiar the rest still was with what the row speaks of (`band.py`), and
`bands` takes the widths from that.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.estimate.serving.band import CLASSES, Evidence
from tradewind.estimate.serving.calibrate import fit, residuals
from tradewind.estimate.serving.constants import Constants
from tradewind.estimate.serving.rows import MEASURES, Measurements
from tradewind.estimate.serving.sharpen import stacks

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

FOLDS = 10  # of models and accelerators
HELD = 0.82  # a band of four fifths takes a little more: what comes is stranger
_ITERATIONS = 6
_MANY = 700  # rows of a source that are enough to judge by: every second or third of more
_NARROWEST = 0.05
_WIDEST = 1.6  # what nobody measured may be off by a factor of five, and is not said to be more
KINDS = ("sources", "models", "accelerators", "engines", "families", "stacks")


@dataclass(frozen=True, slots=True)
class LeftOut:
    residuals: dict[str, Column]  # of every row
    familiarity: list[str]  # with the row, of the rows that stayed


def by(measured: Measurements, kind: str) -> LeftOut:
    """Each row by constants fitted without its source, model, accelerator, engine or family."""
    import numpy as np

    cases = measured.cases
    off = {name: np.full(len(cases), np.nan) for name in MEASURES}
    familiar = ["strange"] * len(cases)
    for out, constants in refits(measured, kind):
        rest, mine = measured.take(~out), measured.take(out)
        found = residuals(mine, constants)
        known = Evidence.of(rest.cases).familiarity(mine.cases)
        for place, row in enumerate(np.flatnonzero(out)):
            familiar[row] = known[place]
        for name in MEASURES:
            off[name][out] = found[name]
    return LeftOut(off, familiar)


def refits(measured: Measurements, kind: str) -> Iterator[tuple[Any, Constants]]:
    """Which rows were left out, as True, and the constants fitted without them; fold by fold."""
    import numpy as np

    cases = measured.cases
    names: Sequence[Hashable] = {
        "sources": measured.sources,
        "models": cases.model.tolist(),
        "accelerators": cases.chip.tolist(),
        "engines": cases.engine.tolist(),
        "families": cases.family.tolist(),
        "stacks": stacks(measured),
    }[kind]
    folds = _folds(names, kind in ("models", "accelerators", "stacks"))
    for fold in sorted(set(folds)):
        out = np.array([each == fold for each in folds])
        if not out.all():
            yield out, fit(_thinned(measured.take(~out)), iterations=_ITERATIONS)


def _thinned(measured: Measurements) -> Measurements:
    """Without many of the rows of large sources, evenly: a dozen fits in the time of four."""
    import numpy as np

    count, so_far = Counter(measured.sources), Counter[str]()
    keep = []
    for source in measured.sources:
        so_far[source] += 1
        keep.append(so_far[source] % max(round(count[source] / _MANY), 1) == 0)
    return measured.take(np.array(keep))


def _folds(names: Sequence[Hashable], few: bool) -> list[int]:
    """Which fold each row is in: one for each name, or ten, the most frequent ones apart."""
    order = [name for name, _ in Counter(names).most_common()]
    place = {name: i % FOLDS if few else i for i, name in enumerate(order)}
    return [place[name] for name in names]


def bands(
    measured: Measurements, fitted: Mapping[str, Column], parts: Sequence[LeftOut]
) -> dict[str, dict[str, float]]:
    """Half-widths, in the logarithm: the mean of what holds four fifths of the rows that were
    fitted, and of each class's that were left out (in the logarithm again).

    What comes is stranger than what was fitted, and less strange than a whole source or family
    that is missing. A source with many rows counts less a row: the largest would speak for all.
    """
    found: dict[str, dict[str, float]] = {}
    for measure in MEASURES:
        same = [("", source) for source in measured.sources]
        near = _sizes(fitted[measure].tolist(), same)[""]
        sizes: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for part in parts:
            pairs = list(zip(part.familiarity, measured.sources, strict=True))
            for name, more in _sizes(part.residuals[measure].tolist(), pairs).items():
                sizes[name] += more
        inside = max(_quantile(near, HELD), _NARROWEST) if near else _NARROWEST
        widths: dict[str, float] = {}
        narrowest = inside
        for name in CLASSES:
            far = _quantile(sizes[name], HELD) if sizes[name] else narrowest
            narrowest = min(max(math.sqrt(inside * far), narrowest), _WIDEST)
            widths[name] = round(narrowest, 4)  # less known is never surer
        found[measure] = widths
    return found


def _sizes(
    residuals: Sequence[float], pairs: Sequence[tuple[str, str]]
) -> dict[str, list[tuple[float, float]]]:
    """By class: how far off each row is, and what it counts. Pairs are of class and source."""
    number = Counter(pairs)
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for off, pair in zip(residuals, pairs, strict=True):
        if not math.isnan(off):
            found[pair[0]].append((abs(off), number[pair] ** -0.5))
    return found


def _quantile(sizes: Sequence[tuple[float, float]], share: float) -> float:
    total, so_far = sum(weight for _, weight in sizes), 0.0
    for size, weight in sorted(sizes):
        so_far += weight
        if so_far >= share * total:
            return size
    return max(size for size, _ in sizes)
