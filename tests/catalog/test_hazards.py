"""Spot hazards: by size of machine, by who was measured, and by what our own runs met with."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.catalog.small import NOW
from tradewind.catalog.hazards import hazard
from tradewind.model import Observation


def held(hours: float, *, taken: bool) -> Observation:
    return Observation(
        provider="gcp", region="r", zone="", instance_type="t", market="spot", available=not taken,
        seen_at=NOW, expires_at=NOW + timedelta(hours=1), source="run", held_h=hours,
    )  # fmt: skip


def test_machines_of_eight_are_taken_more_often() -> None:
    small, large = hazard("aws", 1), hazard("aws", 8)
    assert small.factor < 1 < large.factor
    assert large.factor / small.factor == pytest.approx((1049 / 1090.5) / (1049 / 3515.6))
    assert small.factor < hazard("aws", 4).factor < large.factor
    assert hazard("aws", 16).factor == large.factor, "beyond what was measured nothing is guessed"


def test_whoever_was_not_measured_has_aws_s_as_a_prior() -> None:
    assert hazard("gcp", 8).factor == hazard("aws", 8).factor
    assert "prior" in hazard("gcp", 8).words
    assert "prior" not in hazard("aws", 8).words


def test_own_runs_sharpen_it() -> None:
    before = hazard("gcp", 1).factor
    calm = hazard("gcp", 1, [held(40, taken=False)] * 3)
    harsh = hazard("gcp", 1, [held(0.2, taken=True)] * 3)
    assert calm.factor < before / 5
    assert harsh.factor > 2 * before
    assert "0 times in 120 h" in calm.words
    launched = held(0, taken=False)  # says nothing of how long it is held
    assert hazard("gcp", 1, [launched]).factor == before
