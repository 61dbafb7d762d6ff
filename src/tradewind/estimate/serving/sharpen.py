"""A few points measured on a stack of one's own, and what they say of its other loads.

The points move the terms of the formulas, each held to the published fit by its spread, and a
factor for each of throughput, time per token and time to the first token, which takes what a
harness or a host adds and no term speaks of. What is left at the points is carried over to loads
near them. So a decode that is slower than published is slower at every batch, and a point at 32
clients says most of 30. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue
from tradewind.estimate.serving.calibrate import answers
from tradewind.estimate.serving.cases import Cases
from tradewind.estimate.serving.constants import TERMS
from tradewind.estimate.serving.rows import MEASURES, Measurements

if TYPE_CHECKING:
    from tradewind.estimate.serving.cases import Column

    Terms = Mapping[str, Column]

# Standard deviations, of logarithms: of a measured point; of the factor of a measure; and of what
# neither explains, which is alike at loads that are within REACH of each other.
NOISE = {"throughput": 0.04, "tpot": 0.04, "ttft": 0.10}
FACTOR = {"throughput": 0.10, "tpot": 0.10, "ttft": 0.35}
REST = {"throughput": 0.10, "tpot": 0.10, "ttft": 0.25}
REACH = 2.0
FREEDOM = 1.0  # of what the spreads of a term and its parts allow
STRANGE = 3.0  # times as much where nothing like the accelerator was ever measured
# Half of the 80 % band, in the logarithm: what held rows of stacks whose whole source was left out,
# by three points of theirs (`tradewind bench inference --own-points 3 --leave-out sources`).
WIDTH = {"throughput": 0.15, "tpot": 0.2, "ttft": 0.4}
_ROUNDS = 12
_STEP = 1e-4
_FAR = 1.0  # of a logarithm that a round may move a term
_STACK = (
    "model", "chip", "software", "weight_bytes", "kv_bytes", "group", "stages", "replicas",
    "spread_attention", "prefill_group", "prefill_workers", "speculative", "mode", "year",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Sharpened:
    """What the points of one stack say. All but `points` are logarithms."""

    moved: dict[str, float]  # by term
    factors: dict[str, float]  # by measure
    points: dict[str, Column]  # by measure: loads, one a row
    pulls: dict[str, Column]  # by measure, of each of its points on loads near it

    def terms(self, terms: Terms) -> dict[str, Column]:
        import numpy as np

        return {name: column * np.exp(self.moved[name]) for name, column in terms.items()}

    def corrections(self, cases: Cases) -> dict[str, Column]:
        """By measure, what is added to the logarithm of the answer with the moved terms."""
        where = load(cases)
        return {
            name: self.factors[name] + _near(where, self.points[name]) @ self.pulls[name]
            for name in MEASURES
        }


def stacks(measured: Measurements) -> list[tuple[Any, ...]]:
    """Of each row: what a user would call one set-up, under different loads."""
    columns = [getattr(measured.cases, name).tolist() for name in _STACK]
    return list(zip(measured.sources, *columns, strict=True))


def spread_out(measured: Measurements, number: int) -> Any:
    """Which rows to take as points, as True: from the lightest load to the heaviest."""
    import numpy as np

    order = np.argsort(load(measured.cases).sum(axis=1), kind="stable")
    places = np.linspace(0, len(order) - 1, number).round().astype(int)
    found = np.zeros(len(order), dtype=bool)
    found[order[places]] = True
    return found


def load(cases: Cases) -> Column:
    """Where a case lies among loads: logarithms of its lengths and of how many are at once."""
    import numpy as np

    many = np.maximum(np.maximum(cases.concurrency, cases.batch), cases.rate)
    found: Column = np.log(
        np.stack([np.maximum(each, 1e-3) for each in (cases.input, cases.output, many)], axis=1)
    )
    found[:, 2] = np.where(many > 0, found[:, 2], 0.0)
    return found


def _near(one: Column, other: Column) -> Column:
    """How alike loads are, 1 where they are the same."""
    import numpy as np

    apart = ((one[:, None, :] - other[None, :, :]) ** 2).sum(axis=2)
    found: Column = np.exp(-apart / (2 * REACH**2))
    return found


def freedom(strange: bool) -> Column:
    """How far each term may be off, as a standard deviation of its logarithm."""
    import numpy as np

    wide = STRANGE if strange else 1.0
    total = [
        np.sqrt(term.spread**2 + sum(spread**2 for spread in term.parts.values())) if term.spread
        else 1e-6
        for term in TERMS.values()
    ]  # fmt: skip
    found: Column = FREEDOM * wide * np.array(total)
    return found


def sharpen(measured: Measurements, terms: Terms, *, strange: bool = False) -> Sharpened:
    """By the points of one stack; `terms` are what the published fit gives for them."""
    import numpy as np

    cases = measured.cases
    if not len(cases):
        raise InvalidValue("there is no point to sharpen by", hint="measure one: tradewind measure")
    names = list(TERMS)
    target = np.log(np.concatenate([measured.measured[name] for name in MEASURES]))
    there = np.flatnonzero(~np.isnan(target))
    kind = there // len(cases)
    noise = np.array([NOISE[name] for name in MEASURES])[kind]
    rest = np.array([REST[name] for name in MEASURES])[kind]
    where = load(cases)[there % len(cases)]
    # Points of one measure share what no term explains; the fit must not take it for a term's.
    alike = _near(where, where) * (kind[:, None] == kind[None, :])
    spread = np.diag(noise**2) + alike * np.outer(rest, rest)
    weight = np.linalg.inv(spread)
    held = 1 / np.concatenate([freedom(strange), [FACTOR[name] for name in MEASURES]]) ** 2
    of_measure = np.eye(len(MEASURES))[kind]

    def off(tried: Column) -> Column:
        """Of several points at once, one a row: small arrays cost as much as large ones."""
        many, size = len(tried), len(cases)
        copies = cases.take(np.tile(np.arange(size), many))
        moved = {
            name: np.tile(terms[name], many) * np.repeat(np.exp(tried[:, i]), size)
            for i, name in enumerate(names)
        }
        found = answers(copies, moved, np.tile(measured.per_token, many))
        each: Column = found.reshape(len(MEASURES), many, size).transpose(1, 0, 2)
        each = (each.reshape(many, -1) - target)[:, there]
        return each + tried[:, len(names) :] @ of_measure.T

    def cost(point: Column, residual: Column) -> float:
        return float(residual @ weight @ residual + held @ point**2)

    point = np.zeros(len(held))
    here = off(point[None])[0]
    least, damping = cost(point, here), 1e-3
    for _ in range(_ROUNDS):
        slope = ((off(point + _STEP * np.eye(len(held))) - here) / _STEP).T
        down = slope.T @ weight @ here + held * point
        bend = slope.T @ weight @ slope + np.diag(held)
        while damping < 1e6:
            move = np.linalg.solve(bend + damping * np.diag(np.diag(bend)), down)
            tried = point - np.clip(move, -_FAR, _FAR)
            residual = off(tried[None])[0]
            reached = cost(tried, residual)
            if reached < least:
                break
            damping *= 8
        else:
            break
        gained, point, here, least = least - reached, tried, residual, reached
        damping = max(damping / 8, 1e-7)
        if gained < 1e-4 * least:
            break
    pulls, points = {}, {}
    for i, name in enumerate(MEASURES):
        mine = kind == i
        points[name] = where[mine]
        pulls[name] = (
            -(REST[name] ** 2) * np.linalg.solve(spread[np.ix_(mine, mine)], here[mine])
            if mine.any()
            else np.zeros(0)
        )
    moved = dict(zip(names, point[: len(names)].tolist(), strict=True))
    factors = dict(zip(MEASURES, point[len(names) :].tolist(), strict=True))
    return Sharpened(moved, factors, points, pulls)


def residuals(measured: Measurements, terms: Terms, own: Sharpened) -> dict[str, Column]:
    """log(predicted / measured) of other points of the stack; nan where nothing was measured."""
    import numpy as np

    found = np.split(answers(measured.cases, own.terms(terms), measured.per_token), len(MEASURES))
    more = own.corrections(measured.cases)
    return {
        name: part + more[name] - np.log(measured.measured[name])
        for name, part in zip(MEASURES, found, strict=True)
    }
