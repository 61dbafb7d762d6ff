"""Plans by the slow end of the estimate."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.catalog.small import NOW, small
from tests.estimate.serving.test_sharpen import stack
from tests.planning.serving.test_serving_plan import SMALL, found, work
from tradewind.estimate.serving import queue
from tradewind.estimate.serving.points import Points
from tradewind.model import Limits
from tradewind.planning.serving import margin
from tradewind.planning.serving.planner import Planner

CATALOG = small(*SMALL)


@settings(max_examples=15, deadline=None)
@pytest.mark.slow
@given(
    chances=st.tuples(st.floats(0.05, 0.99), st.floats(0.05, 0.99)),
    rate=st.floats(0.5, 200),
    tpot=st.sampled_from([0.012, 0.03, 0.1]),
    ttft=st.sampled_from([0.15, 0.5, 2.0]),
)
def test_more_margin_never_costs_less(
    chances: tuple[float, float], rate: float, tpot: float, ttft: float
) -> None:
    costs = [
        np.inf if best is None else best.cost
        for best in (
            found(CATALOG, Limits(confidence=chance), rate=rate, tpot_s=tpot, ttft_s=ttft).best
            for chance in sorted(chances)
        )
    ]
    assert costs == sorted(costs)


def test_a_half_is_the_middle_of_the_estimate_and_nine_tenths_the_end_of_its_band() -> None:
    assert margin.deviations(0.3) == margin.deviations(0.5) == 0
    assert margin.deviations(0.9) == pytest.approx(1)


def test_slower_steps_raise_every_latency() -> None:
    planner = Planner(work(Limits(confidence=0.5)), CATALOG, now=NOW)
    mix = planner.traffic.mix
    table = planner.layouts.tables(mix)
    ones = np.ones(len(table))
    states = [
        queue.at_rate(table.slower(ones * token, ones * first), mix, 0.5 * ones)
        for token, first in ((1.0, 1.0), (1.2, 1.0), (1.2, 1.6), (1.5, 1.6))
    ]
    for before, after in pairwise(states):
        assert (after.tpot >= before.tpot).all()
        assert (after.first >= before.first).all()
        assert (after.wait >= before.wait).all()


def test_own_points_move_the_speed_and_narrow_the_margin() -> None:
    """A stack on which everything takes 1.6 times as long as published."""
    own = Points(stack(all=1.6), "own.csv")
    chip = str(own.measured.cases.chip[0])
    plain, moved = (
        Planner(work(Limits(confidence=0.9)), CATALOG, now=NOW, own=points).layouts
        for points in (None, own)
    )
    for i, layout in enumerate(plain.layouts):
        before, after = plain.speeds, moved.speeds
        if layout.accelerator == chip and layout.engine == own.measured.cases.engine[0]:
            assert after.margins["tpot"][i] < before.margins["tpot"][i]
            assert after.margins["ttft"][i] < before.margins["ttft"][i]
            slower = after.terms["all"][i] * after.token[i] / after.margins["tpot"][i]
            assert slower > 1.3 * before.terms["all"][i]
            assert "sharpened" in after.reasons[i]
        else:
            assert after.token[i] == before.token[i]
            assert after.terms["all"][i] == before.terms["all"][i]
    assert moved.speeds.sharpened > 0
