"""Our policy's single decisions, where it is plain what is right."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tradewind.policy.base import Known, Option
from tradewind.policy.expected import choose

HOUR = 3600.0
SAFE = Option("c/a", "on_demand", 3_000_000, 1.0, 600.0, again_s=600.0, up=True)
SPOT = Option("c/z", "spot", 1_000_000, 1.0, 600.0, again_s=600.0, up=True, up_s=0.0)
DEAR = replace(SPOT, place="c/y", price=2_500_000)


def chosen(*options: Option, **more: Any) -> int | None:
    known = Known(24 * HOUR, options, 48 * HOUR, tick_s=300.0)
    choice = choose(replace(known, **more))
    assert choice.reason
    return choice.option


def test_with_time_it_takes_spot_and_waits_for_it() -> None:
    assert chosen(SPOT, SAFE) == 0
    assert chosen(replace(SPOT, up=False), SAFE) is None


def test_without_time_it_goes_on_demand() -> None:
    assert chosen(SPOT, SAFE, time_s=24 * HOUR + 700) == 1
    assert chosen(SPOT, SAFE, time_s=24 * HOUR - 1) == 1  # late all the same
    assert chosen(SPOT, SAFE, time_s=-5.0) == 1


def test_a_machine_that_has_lasted_is_not_left_for_a_start() -> None:
    held = replace(SPOT, start_s=0.0, up_s=5 * HOUR)
    other = replace(SPOT, place="c/x", price=990_000)
    assert chosen(held, other, SAFE, holding=0) == 0


def test_a_dear_zone_is_taken_only_if_slack_is_short() -> None:
    away = replace(SPOT, up=False, up_s=600.0, history=((True, 20 * HOUR),))
    assert chosen(away, DEAR, SAFE) is None
    gone = replace(away, up_s=30 * HOUR)
    steady = replace(DEAR, price=1_500_000, up_s=10 * HOUR)
    assert chosen(gone, steady, SAFE, time_s=25.5 * HOUR) == 1


def test_nothing_known_of_capacity_is_fine() -> None:
    bare = Option("c/z", "spot", 1_000_000, 1.0, 600.0)
    assert chosen(bare, replace(SAFE, up=None, again_s=None)) == 0
    refused = replace(bare, history=((False, 60.0),), up_s=10.0)
    assert chosen(refused, SAFE) is None


def test_without_deadline_or_price_it_still_answers() -> None:
    assert chosen(SPOT, SAFE, time_s=None) == 0
    assert chosen(SPOT, replace(SAFE, price=0)) == 1
    assert chosen(SPOT) == 0
    assert chosen(replace(SPOT, price=4_000_000), SAFE) == 1


def test_nobody_waits_blindly_for_what_was_refused_all_day() -> None:
    """Waiting and on-demand cost nearly the same then, as far as tables see; waiting costs more."""
    gone = ((True, HOUR), (False, 300.0)) + ((None, 900.0), (False, 300.0)) * 30
    unseen = replace(SPOT, up=None, up_s=300.0, history=gone)
    watched = replace(SPOT, up=False, up_s=31 * 1200.0, history=gone[:1])
    assert chosen(unseen, SAFE, time_s=27 * HOUR) == 1
    assert chosen(watched, SAFE, time_s=27 * HOUR) is None


def test_what_is_not_saved_counts_against_what_may_be_taken() -> None:
    held = replace(SPOT, start_s=0.0, up_s=5 * HOUR)
    about = {"time_s": 26 * HOUR, "holding": 0}
    assert chosen(held, SAFE, **about) == 0
    assert chosen(held, SAFE, **about, unsaved=1.5 * HOUR) == 0
    assert chosen(held, SAFE, **about, unsaved=2 * HOUR) == 1
