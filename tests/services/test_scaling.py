"""How many replicas there should be."""

from __future__ import annotations

import numpy as np

from tradewind.services import scaling
from tradewind.services.replay import Replicas, outcome

KIND = Replicas(cold_s=180, slack_s=0.9, drain_s=10)
DAY = 86_400


def tides(days: float, seed: int = 0) -> np.ndarray:
    """A day's tide between 2 and 8 replicas, with noise by the second."""
    at = np.arange(int(days * DAY))
    mean = 5 - 3 * np.cos(2 * np.pi * at / DAY)
    return np.random.default_rng(seed).poisson(20 * mean) / 20


def test_the_chosen_rule_keeps_the_goal_on_what_it_was_chosen_from() -> None:
    load = tides(0.5)
    rule = scaling.chosen(load, load, KIND, 0.01)
    assert rule is not None
    ordered = scaling.wanted(rule, scaling.periods(load), 1)
    told = outcome(load, load, np.concatenate([ordered[:1], ordered[:-1]]), KIND)
    assert told.attainment >= 0.99
    always = outcome(load, load, np.full(len(ordered), ordered.max()), KIND)
    assert told.seconds < 0.9 * always.seconds


def test_where_no_rule_would_have_kept_the_goal_the_old_one_stays() -> None:
    sudden = np.zeros(3600)
    sudden[1800:1900] = 50.0
    assert scaling.chosen(sudden, sudden, KIND, 0.01) is None
