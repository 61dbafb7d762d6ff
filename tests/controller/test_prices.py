"""Prices of now are asked for seldom, of those that tell them; who does not holds up nobody."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import pytest

from tests.controller.test_listings import Quick
from tradewind.base import clock
from tradewind.base.errors import SourceFailed
from tradewind.controller import prices
from tradewind.controller.prices import Prices
from tradewind.model.run import Way
from tradewind.providers.base import AskPrices


def way(zone: str, provider: str = "moving") -> Way:
    return Way(
        provider=provider,
        region="r",
        zone=zone,
        instance_type="t",
        market="spot",
        nodes=1,
        price=100,
        rate=1.0,
        start_s=60.0,
    )


class Moving(Quick):
    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.now = {"a": 120, "b": 90}

    def prices(self, ways: Sequence[Way]) -> Mapping[str, int]:
        self.asked.append([each.zone for each in ways])
        return {each.what: self.now[each.zone] for each in ways if each.zone in self.now}


@pytest.fixture
def time_(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    held = [1000.0]
    monkeypatch.setattr(clock, "epoch", lambda: held[0])
    return held


def test_what_was_asked_a_moment_ago_is_not_asked_again(time_: list[float]) -> None:
    moving = Moving()
    ask = Prices({"moving": moving, "still": Quick()})
    first = AskPrices((way("a"), way("z"), way("s", "still")))
    assert ask(first) == ask(first) == {way("a").what: 120}  # nobody tells what z and s cost
    assert ask(AskPrices((way("a"), way("b")))) == {way("a").what: 120, way("b").what: 90}
    assert moving.asked == [["a", "z"], ["b"]]
    moving.now["a"] = 300
    time_[0] += 601
    assert ask(first) == {way("a").what: 300}


@pytest.mark.parametrize("trouble", [SourceFailed("it is down"), ValueError("a bug")])
def test_who_does_not_tell_costs_what_it_told_last(time_: list[float], trouble: Exception) -> None:
    moving = Moving()
    ask = Prices({"moving": moving})
    step = AskPrices((way("a"),))
    assert ask(step) == {way("a").what: 120}

    def fails(ways: Sequence[Way]) -> Mapping[str, int]:
        raise trouble

    moving.prices = fails  # type: ignore[method-assign]
    time_[0] += 601
    assert ask(step) == {way("a").what: 120}


def test_who_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prices, "_PATIENCE_S", 0.05)
    may, times = threading.Event(), []

    class Hanging(Quick):
        def prices(self, ways: Sequence[Way]) -> Mapping[str, int]:
            times.append(1)
            may.wait()
            return {way("a").what: 70}

    ask = Prices({"moving": Hanging()})
    assert ask(AskPrices((way("a"),))) == ask(AskPrices((way("a"),))) == {}
    assert len(times) == 1
    may.set()
