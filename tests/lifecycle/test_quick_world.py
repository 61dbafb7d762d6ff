"""Rehearsals whose world goes faster than ours: policies are asked in its time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import AT, SPEC, SPOT, WAY, a_machine, a_seen, found, requested
from tests.lifecycle.builders import submitted as submitted_as
from tradewind.base.errors import InvalidValue
from tradewind.lifecycle import fold, forecast
from tradewind.model.event import Commit, Event, LaunchRefused, LegOver, LegUp
from tradewind.model.run import Spec, Way
from tradewind.policy.base import Known

SPEED = 60.0
START = AT.timestamp()
DAY = 86_400.0


def quick(way: Way) -> Way:
    """The same machines where an hour takes a minute: so much faster, and dearer by our hour."""
    return replace(
        way, price=round(way.price * SPEED), rate=way.rate * SPEED, start_s=way.start_s / SPEED
    )


def asked(spec: Spec, times: float) -> Known:
    """After a refusal, a stay that was taken, and a while; `times` is how much longer all takes."""
    story: list[tuple[float, Event]] = [
        (0.0, submitted_as(spec)),
        (0.0, requested(1, spec.ways[1])),
        (0.0, LaunchRefused(leg=1, kind="no_capacity", reason="r")),
        (60.0, requested(2, spec.ways[1])),
        (60.0, found(a_machine("m2", leg=2))),
        (60.0, LegUp(leg=2, reason="r")),
        (7260.0, LegOver(leg=2, cause="interrupted", reason="r", saved=600.0)),
    ]
    state = fold(
        Commit(1, number, "w1", AT + timedelta(seconds=after_s * times), (event,))
        for number, (after_s, event) in enumerate(story, 1)
    )
    seen = a_seen(ago_s=300.0 * times)
    return forecast.known(state, spec, seen, spec.ways, START + 7560.0 * times, None)


def test_the_question_is_the_one_that_the_slow_world_asks() -> None:
    slow = replace(SPEC, ways=(WAY, SPOT), deadline_s=START + DAY)
    fast = replace(
        SPEC,
        ways=(quick(WAY), quick(SPOT)),
        deadline_s=START + DAY / SPEED,
        speed=SPEED,
    )
    one, other = asked(slow, 1.0), asked(fast, 1 / SPEED)
    assert len(one.options[1].history) == 3
    for mine, theirs in zip(one.options, other.options, strict=True):
        assert theirs.price == mine.price
        assert [up for up, _ in theirs.history] == [up for up, _ in mine.history]
        assert [s for _, s in theirs.history] == pytest.approx([s for _, s in mine.history])
        assert (theirs.refused_s is None) == (mine.refused_s is None) == (mine.market != "spot")
        for name in ("rate", "start_s", "again_s", "up_s"):
            assert getattr(theirs, name) == pytest.approx(getattr(mine, name), rel=1e-3), name
    assert other.options[1].refused_s == pytest.approx(one.options[1].refused_s)
    for name in ("work", "time_s", "all_s", "held_s", "notice_s", "doubt", "tick_s"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-3), name


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_a_world_that_stands_still_or_jumps_is_none(speed: float) -> None:
    with pytest.raises(InvalidValue, match="times its speed"):
        replace(SPEC, speed=speed)
