"""What is believed of a zone follows from what was seen of it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tradewind.policy.learned import learned
from tradewind.policy.regimes import _filled, _together, regimes, watch

HOUR = 3600.0


def test_steady_zones_are_believed_to_hold_longer_than_nervous_ones() -> None:
    calm = ((True, 30 * HOUR), (False, 600.0))
    jumpy = ((True, 600.0), (False, 600.0)) * 10
    steady, nervous = watch(((calm, True, 600.0),)), watch(((jumpy, True, 600.0),))
    assert steady.life_h() > 2 * nervous.life_h()


def test_what_has_lasted_will_last() -> None:
    lives = [watch((((), True, hours * HOUR),)).life_h() for hours in (0, 0.5, 2, 8, 40)]
    assert lives == sorted(lives)
    assert lives[-1] > 3 * lives[0]


def test_a_belief_is_one_even_after_years() -> None:
    for up in (True, False):
        for hours in (0.0, 0.1, 7.0, 500.0, 1e5):
            seen = watch((((), up, hours * HOUR),))
            assert seen.belief.sum() == pytest.approx(1)
            assert (seen.belief >= 0).all()


def test_a_spell_weighs_the_same_in_one_piece_and_in_ticks() -> None:
    """The filter of whole spells agrees with one that goes step by step."""
    now, belief = regimes(), regimes().first(1, True)
    step_s = 60.0
    for n in range(600):
        age = now.age(n * step_s)
        belief = belief * np.exp(-now.hazards[:, 1, age] * step_s / HOUR)
        belief = belief @ now.moved(step_s / HOUR)
        belief /= belief.sum()
    whole = watch((((), True, 600 * step_s),)).belief
    assert whole == pytest.approx(belief, abs=0.01)


def test_nothing_seen_for_long_is_nothing_known() -> None:
    now = regimes()
    sure = watch((((), False, 300 * HOUR),)).belief
    assert now.unseen(sure, 1, 1e9) == pytest.approx(now.start(1))
    assert now.unseen(sure, 1, 0.0) == pytest.approx(sure)


@pytest.mark.parametrize("seed", range(20))
def test_several_zones_are_up_when_any_is(seed: int) -> None:
    rng = random.Random(seed)
    rows = [[rng.random() < 0.4 for _ in range(40)] for _ in range(rng.randint(2, 4))]
    zones = []
    for row in rows:
        spells: list[tuple[bool, float]] = []
        for up in row:
            if spells and spells[-1][0] == up:
                spells[-1] = (up, spells[-1][1] + 1)
            else:
                spells.append((up, 1.0))
        zones.append((tuple(spells[:-1]), *spells[-1]))
    found = [up for up, ticks in _together(tuple(zones)) for _ in range(int(ticks))]
    assert found == [any(tick) for tick in zip(*rows, strict=True)]


def test_refused_again_and_again_is_down_all_along() -> None:
    """Not many short spells, from which one would learn that capacity comes back soon."""
    looks = ((True, HOUR), (False, 60.0), (None, 1140.0)) + ((False, 60.0), (None, 1140.0)) * 8
    assert _filled((looks, False, 60.0)) == (((True, HOUR),), False, 9 * 1200 + 60.0)
    often, once = watch(((looks, False, 60.0),)), watch(((looks[:1], False, 60.0),))
    assert often.life_h() > 2 * once.life_h()
    whole = watch(((looks[:1], False, 9 * 1200 + 60.0),))
    assert often.belief == pytest.approx(whole.belief)


def test_what_changed_unseen_changed_halfway_or_nobody_knows() -> None:
    seen = ((False, 60.0), (None, 600.0))
    assert _filled((seen, True, 5.0)) == (((False, 360.0),), True, 305.0)
    later = (*seen, (True, 60.0), (None, 50 * HOUR))
    assert _filled((later, True, 5.0)) == (
        ((False, 360.0), (True, 360.0), (None, 50 * HOUR)),
        True,
        5.0,
    )
    assert _filled((((None, 600.0),), True, 5.0)) == (((None, 600.0),), True, 5.0)


def test_what_was_learned_says_from_what() -> None:
    found = learned()
    assert sum(found.sources.values()) > 5000
    assert len(found.up) == len(found.down) == len(found.ages_s)
    for start in found.start.values():
        assert len(start) == len(found.levels) ** 2
        assert sum(start) == pytest.approx(1, abs=1e-3)


def test_a_history_may_be_long() -> None:
    spells = tuple((n % 2 == 0, 600.0 + n) for n in range(5000))
    assert watch(((spells, True, 60.0),)).belief.sum() == pytest.approx(1)
