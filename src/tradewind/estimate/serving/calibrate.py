"""Fits the parts of the constants to measurements.

The residual is the logarithm of predicted over measured, of throughput, time per token and time to
the first token alike. A source with many rows counts less a row; a soft loss keeps odd rows from
pulling; every part is held to nought by its spread. Gauss-Newton: how the answers move with a term
is found by trying, one term at a time, and how a term moves with its parts is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import TERMS, Constants, kinds_of, scale
from tradewind.estimate.serving.modes import predict
from tradewind.estimate.serving.rows import MEASURES, Measurements
from tradewind.estimate.solvers import sparse

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

SOURCE_POWER = 0.5  # rows of a source of n count n**-0.5 each
HOLD = 0.12  # residuals that a spread from nought is worth
SOFT = 0.15  # residuals beyond this count linearly
_STEP = 1e-4
_SETTLED = 3e-4
_FAR = 1.5  # of a logarithm that one iteration may move a part


def answers(cases: Cases, terms: Mapping[str, Column], per_token: Column) -> Column:
    """Logarithms, of throughput, TPOT and TTFT one below the other."""
    import numpy as np

    seen = predict(cases, terms)
    found: Column = np.log(np.concatenate([seen.tokens_per_s * per_token, seen.tpot, seen.ttft]))
    return found


def residuals(measured: Measurements, constants: Constants) -> dict[str, Column]:
    """log(predicted / measured), nan where nothing was measured."""
    import numpy as np

    found = answers(measured.cases, constants.terms(measured.cases), measured.per_token)
    parts = np.split(found, len(MEASURES))
    return {
        name: part - np.log(measured.measured[name])
        for name, part in zip(MEASURES, parts, strict=True)
    }


class _Design:
    """Which parts there are, and which cases each of them moves."""

    def __init__(self, cases: Cases) -> None:
        import numpy as np

        kinds = kinds_of(cases)
        self.names: list[str] = []
        self.spreads: list[float] = []
        self.blocks: dict[str, list[tuple[int, Any, Any]]] = {}
        for term, each in TERMS.items():
            if not each.spread:
                continue
            self.blocks[term] = [(len(self.names), np.zeros(len(cases), dtype=np.intp), 1.0)]
            self.names.append(term)
            self.spreads.append(each.spread)
            for kind, spread in each.parts.items():
                values, codes = kinds[kind]
                weight = scale(kind, cases)
                self.blocks[term].append((len(self.names), codes, weight))
                self.names += [f"{term}.{kind}.{value}" for value in values]
                self.spreads += [spread] * len(values)

    def slopes(self, by_term: Mapping[str, Column], rows: Any) -> Any:
        """How each measured answer moves with each part; `rows` are the cases they are of.

        Sparse: a row knows only its own family, engine … of each kind.
        """
        import numpy as np

        places, values = [], []
        for term, blocks in self.blocks.items():
            for first, codes, weight in blocks:
                places.append(first + codes[rows])
                values.append(by_term[term] * np.broadcast_to(weight, codes.shape)[rows])
        width = len(places)
        starts = np.arange(0, width * len(rows) + 1, width)
        data = np.stack(values, axis=1).ravel(), np.stack(places, axis=1).ravel(), starts
        return sparse().csr_array(data, shape=(len(rows), len(self.names)))


def fit(
    measured: Measurements, *, start: Constants | None = None, iterations: int = 25
) -> Constants:
    import numpy as np

    cases = measured.cases
    design = _Design(cases)
    target = np.log(np.concatenate([measured.measured[name] for name in MEASURES]))
    there = np.flatnonzero(~np.isnan(target))
    rows = there % len(cases)
    weights = _weights(measured.sources)[rows]
    held = (HOLD / np.array(design.spreads)) ** 2

    def constants(point: Column) -> Constants:
        return Constants(dict(zip(design.names, point.tolist(), strict=True)))

    def off(terms: Mapping[str, Column]) -> Column:
        found: Column = (answers(cases, terms, measured.per_token) - target)[there]
        return found

    def cost(point: Column, residual: Column) -> float:
        soft = 2 * SOFT**2 * (np.sqrt(1 + (residual / SOFT) ** 2) - 1)
        return float(weights @ soft + held @ point**2)

    known = start.parts if start else {}
    point = np.array([known.get(name, 0.0) for name in design.names])
    terms = constants(point).terms(cases)
    here = off(terms)
    least, damping = cost(point, here), 1e-3
    for _ in range(iterations):
        by_term = {
            name: (off({**terms, name: terms[name] * np.exp(_STEP)}) - here) / _STEP
            for name in design.blocks
        }
        slope = design.slopes(by_term, rows)
        pull = weights / np.sqrt(1 + (here / SOFT) ** 2)
        down = slope.T @ (pull * here) + held * point
        bend = (slope.T @ (slope * pull[:, None])).toarray() + np.diag(held)
        while damping < 1e6:
            move = np.linalg.solve(bend + damping * np.diag(np.diag(bend)), down)
            tried = point - np.clip(move, -_FAR, _FAR)
            terms_tried = constants(tried).terms(cases)
            residual = off(terms_tried)
            reached = cost(tried, residual)
            if reached < least:
                break
            damping *= 8
        else:
            break
        gained, point, terms, here, least = least - reached, tried, terms_tried, residual, reached
        damping = max(damping / 8, 1e-7)
        if gained < _SETTLED * least:
            break
    return constants(point)


def _weights(sources: list[str]) -> Column:
    import numpy as np

    count = Counter(sources)
    found: Column = np.array([count[source] ** -SOURCE_POWER for source in sources])
    return found
