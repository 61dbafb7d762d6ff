"""How likely machines are to be had: priors, and what was seen of late."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.small import NOW
from tradewind.catalog import capacity
from tradewind.catalog.capacity import Seen, chance, priors, sharpened, weight

doubts = st.floats(1e-3, 1e3)
seens = st.lists(st.builds(Seen, doubts, st.booleans(), st.floats(0, 1)), max_size=6)


@given(doubts, doubts, seens)
def test_it_is_a_chance_and_larger_gangs_have_less(
    one: float, other: float, seen: list[Seen]
) -> None:
    small, large = sorted((one, other))
    assert 0 < chance(large) <= chance(small) <= 1
    found = sharpened(np.array([small, large]), seen)
    assert (found > 0).all()
    assert (found <= 1 + 1e-12).all()


@given(doubts, seens, st.floats(0.01, 1))
def test_a_launch_raises_it_and_a_refusal_lowers_it(
    doubt: float, seen: list[Seen], fresh: float
) -> None:
    before = float(sharpened(doubt, seen))
    assert float(sharpened(doubt, [*seen, Seen(doubt, True, fresh)])) >= before - 1e-12
    assert float(sharpened(doubt, [*seen, Seen(doubt, False, fresh)])) <= before + 1e-12


def test_what_was_seen_of_one_says_little_of_a_hundred_and_the_other_way_round() -> None:
    one, hundred = 0.5, 50.0
    launched = [Seen(one, True, 1.0)] * 3
    assert sharpened(one, launched) > 0.9
    assert sharpened(hundred, launched) < 0.1
    refused = [Seen(hundred, False, 1.0)] * 3
    assert sharpened(one, refused) > 0.9 * chance(one)
    assert sharpened(hundred, [Seen(one, False, 1.0)]) < 0.5 * chance(hundred)


def test_it_ages_and_is_forgotten() -> None:
    def after(**late: float) -> float:
        return weight(NOW - timedelta(**late), NOW)

    assert weight(NOW + timedelta(hours=5), NOW) == 1
    assert after(hours=0) == 1
    assert after(hours=12) == pytest.approx(0.5)
    assert after(hours=24) == pytest.approx(0.25)
    assert after(days=7) == 0


def test_the_table_answers_for_everybody() -> None:
    known = priors()
    assert known.kind("aws", "p5.48xlarge") == "hyperscaler"
    assert known.kind("runpod", "8x_H100-SXM_COMMUNITY") == "marketplace"
    assert known.kind("runpod", "8x_H100-SXM_SECURE") == "gpu-cloud"
    assert known.kind("whoever", "box") == "small-cloud"
    assert known.scarcity("B200") > known.scarcity("H100-SXM") > known.scarcity("A100-80GB")
    assert known.scarcity("A100-80GB") > known.scarcity("T4") == 1
    kinds = {kind for several in known.kinds.values() for _, kind in several}
    assert set(known.doubts) == {(k, m) for k in kinds for m in ("on_demand", "spot")}


def test_the_words() -> None:
    from tests.catalog.test_observations import seen

    several = [seen(minutes_ago=90), seen(available=False, minutes_ago=30)]
    words = capacity.words(several)
    assert words == "seen 1 time there and 1 time not, the last on 2026-11-15 11:30"
