"""Which runs a sweep is."""

from __future__ import annotations

import pytest

from tests.lifecycle.builders import WAY
from tradewind.api import sweeps
from tradewind.base.errors import InvalidValue
from tradewind.model.run import Spec


def test_all_combinations_the_last_changes_fastest() -> None:
    assert sweeps.combinations(["LR=1e-3,1e-4", "SEED=1,2"]) == [
        {"LR": "1e-3", "SEED": "1"},
        {"LR": "1e-3", "SEED": "2"},
        {"LR": "1e-4", "SEED": "1"},
        {"LR": "1e-4", "SEED": "2"},
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["LR"], "NAME=VALUE"),
        (["=1"], "NAME=VALUE"),
        (["TRADEWIND_RUN=1,2"], "NAME=VALUE"),
        (["LR=1", "LR=2"], "there twice"),
        (["LR=1,1"], "empty or there twice"),
        (["LR=1,"], "empty or there twice"),
        (["LR="], "empty or there twice"),
        (["A=1,2,3,4,5,6", "B=1,2,3,4,5,6"], "36 combinations"),
    ],
)
def test_what_is_no_sweep_is_said(given: list[str], said: str) -> None:
    with pytest.raises(InvalidValue, match=said) as caught:
        sweeps.combinations(given)
    assert caught.value.hint


def test_values_are_in_the_environment_and_in_the_tags() -> None:
    job = {"command": "true", "env": {"LR": "1", "HOME": "/x"}}
    plain = Spec(name="gpt", work=1.0, ways=(WAY,), job=job, tags={"team": "vision"})
    made = sweeps.of(plain, {"LR": "1e-3"})
    assert made.job == {"command": "true", "env": {"LR": "1e-3", "HOME": "/x"}}
    assert made.tags == {"team": "vision", "LR": "1e-3"}
    assert plain.job["env"]["LR"] == "1"


def test_what_may_not_be_told_is_refused() -> None:
    job = {"command": "true", "secrets": {"TOKEN": "env:TOKEN"}}
    plain = Spec(name="gpt", work=1.0, ways=(WAY,), job=job)
    with pytest.raises(InvalidValue, match=r"run\.secrets"):
        sweeps.of(plain, {"TOKEN": "1"})
    with pytest.raises(InvalidValue, match="looks like"):
        sweeps.of(plain, {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"})
