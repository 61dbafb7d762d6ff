"""What is shown before a run is submitted is what a controller then buys."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import NOW, SPOT, WAY, a_seen, state_of, submitted
from tradewind.api import submit
from tradewind.base import clock
from tradewind.lifecycle.decide import decide
from tradewind.lifecycle.first import first
from tradewind.model.action import Record
from tradewind.model.event import LegRequested
from tradewind.model.run import Way
from tradewind.policy import careful

SLOW = replace(WAY, instance_type="slow", zone="z2", price=10 * WAY.price, rate=WAY.rate / 10)


def bought(ways: tuple[Way, ...]) -> LegRequested:
    state = state_of(submitted(ways=ways))
    found = decide(state, a_seen(ago_s=1e9), ways, NOW, careful.choose)
    events = [act.event for act in found if isinstance(act, Record)]
    return next(event for event in events if isinstance(event, LegRequested))


@pytest.mark.parametrize("ways", [(WAY, SLOW), (SLOW, WAY), (SLOW, SPOT, WAY), (SPOT,)])
def test_it_is_what_a_controller_buys(
    ways: tuple[Way, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = submitted(ways=ways).spec
    begun = first(spec, NOW, careful.choose)
    assert begun is not None
    real = bought(ways)
    assert (begun[0].way, begun[1]) == (real.request.way, real.reason)
    monkeypatch.setattr(clock, "now", lambda: datetime.fromtimestamp(NOW, UTC))
    shown, why = submit.as_begun(spec)
    assert shown.ways[0] == real.request.way
    assert sorted(w.words for w in shown.ways) == sorted(w.words for w in ways)
    assert bool(why) == (real.request.way != ways[0])
    # Once it is in front, it is the plan's own choice: nothing else is said, nor picked.
    again = bought(shown.ways)
    assert again.request.way == shown.ways[0]
    assert "plan's own choice" not in again.reason
