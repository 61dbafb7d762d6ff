"""A few points of a stack, and what they say of its other loads. The truth is the model itself,
with terms that differ from the published ones."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimate.serving.test_rows import chip, row
from tradewind.base.errors import InvalidValue
from tradewind.estimate.serving import rows, served, sharpen
from tradewind.estimate.serving.calibrate import answers
from tradewind.estimate.serving.constants import fitted
from tradewind.estimate.serving.points import Points
from tradewind.estimate.serving.rows import MEASURES, Measurements

LOADS = [(200, 100, 1), (1000, 200, 4), (1000, 200, 32), (4000, 100, 16), (300, 400, 128)]


def stack(**changed: float) -> Measurements:
    """Loads of one set-up on which terms are so many times what is published."""
    cells = [
        row(input_len=str(i), output_len=str(o), concurrency=str(c), tpot_ms_mean="9",
            ttft_ms_mean="80")
        for i, o, c in LOADS
    ]  # fmt: skip
    found = rows.read(cells, chip, served.find)
    terms = fitted().terms(found.cases)
    moved = {name: column * changed.get(name, 1.0) for name, column in terms.items()}
    truth = np.exp(np.split(answers(found.cases, moved, found.per_token), len(MEASURES)))
    found.measured = dict(zip(MEASURES, truth, strict=True))
    return found


def worst(found: Measurements, given: np.ndarray) -> dict[str, float]:
    terms = fitted().terms(found.cases)
    told, asked = found.take(given), found.take(~given)
    own = sharpen.sharpen(told, {name: column[given] for name, column in terms.items()})
    rest = {name: column[~given] for name, column in terms.items()}
    off = sharpen.residuals(asked, rest, own)
    return {name: float(np.abs(np.expm1(column)).max()) for name, column in off.items()}


@pytest.mark.parametrize(
    "changed",
    [
        {"all": 1.6}, {"weights": 1.5, "cache": 1.4}, {"matrix": 0.7, "launch": 2.0},
        {"start": 3.0}, {"step": 3.0, "sequence": 2.0},
    ],
)  # fmt: skip
def test_three_points_bring_the_other_loads_within_fifteen_percent(
    changed: dict[str, float],
) -> None:
    found = stack(**changed)
    given = sharpen.spread_out(found, 3)
    assert given.sum() == 3
    for name, error in worst(found, given).items():
        assert error < 0.15, f"{name} of {changed}"


def test_points_that_are_as_published_change_nothing() -> None:
    found = stack()
    assert max(worst(found, sharpen.spread_out(found, 3)).values()) < 1e-3


def test_a_load_that_is_measured_is_answered_as_it_was() -> None:
    found = stack(all=2.0, start=2.0)
    point = Points(found, "own.csv")
    told = point.told(found.cases.take(np.arange(len(found.cases)) == 2))
    seen = answers(
        found.cases.take(np.arange(len(found.cases)) == 2), told.terms, found.per_token[2:3]
    )
    for place, name in enumerate(MEASURES):
        made = float(np.exp(seen[place] + told.corrections[name][0]))
        assert made == pytest.approx(float(found.measured[name][2]), rel=0.05)


def test_one_point_is_enough_and_none_is_not() -> None:
    found = stack(all=1.5)
    one = np.arange(len(found.cases)) == 1
    assert worst(found, one)["tpot"] < 0.35
    with pytest.raises(InvalidValue, match="no point"):
        sharpen.sharpen(found.take(one & ~one), {})


def test_points_are_taken_from_the_lightest_load_to_the_heaviest() -> None:
    chosen = sharpen.spread_out(stack(), 2)
    assert chosen.tolist() == [True, False, False, False, True]


def test_a_stack_is_one_set_up_under_different_loads() -> None:
    cells = [row(concurrency="1"), row(concurrency="8"), row(tp="4", accelerators_per_replica="4")]
    names = sharpen.stacks(rows.read(cells, chip, served.find))
    assert names[0] == names[1] != names[2]
