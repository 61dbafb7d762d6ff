"""The markets that come with Tradewind, and how such files are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from tradewind.base.errors import BadFile, NotFound
from tradewind.controller import Controller
from tradewind.lifecycle import leg
from tradewind.policy import careful, safety
from tradewind.policy.base import Choice, Known
from tradewind.sim.market import bounds, draw
from tradewind.sim.market.judged import judged
from tradewind.sim.market.play import play
from tradewind.sim.market.script import load, read, shipped

MARKET = """
work: 4h
ways:
  here: {market: spot, price: $1.00}
  sure: {market: on-demand, price: $3.00, speed: 2}
limits: {deadline: 8h}
happens:
  - {at: 1h, way: here, taken: yes}
  - {at: 1h, way: here, gone: 30m}
  - {at: 3h, way: here, price: $2.00}
"""


@pytest.mark.parametrize("name", shipped())
def test_a_run_does_well_in_it(name: str) -> None:
    script = load(name)
    assert bounds.broken(script, play(script)) == []


def test_hindsight() -> None:
    """An hour less its start, half an hour of waiting, and the rest with another start, an hour and
    a half of it at the first price."""
    script = read(MARKET, "market.yaml")
    here, sure = (bounds.fixed(script, each) for each in script.offered)
    assert here.done_s == pytest.approx(3600 * 4.5 + 360)
    assert here.cost == pytest.approx(1e6 + 1.5e6 + 2e6 * (here.done_s / 3600 - 3))
    assert sure.done_s == pytest.approx(7380)
    assert sure.cost == pytest.approx(6.15e6)
    assert bounds.best(script) == here
    late = replace(script, deadline_s=3 * 3600)
    assert bounds.best(late) == bounds.fixed(late, late.offered[1])


def on_demand(known: Known) -> Choice:
    return safety.safest(known)


def with_policy(policy: Callable[[Known], Choice]) -> Any:
    def make(*args: Any, **more: Any) -> Controller:
        return Controller(*args, **(more | {"policy": policy}))

    return make


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("sold-out-cheaper-zone", on_demand),
        (
            "rare-saves-lost-twice",
            lambda known: careful.choose(replace(known, unsaved=0, between=0)),
        ),
        ("late-anyway", on_demand),
    ],
)
def test_a_worse_policy_is_found_out(name: str, policy: Callable[[Known], Choice]) -> None:
    script = load(name)
    assert bounds.broken(script, play(script, make=with_policy(policy)))


def test_what_works_is_not_drained_for_what_is_sold_out(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load("sold-out-cheaper-zone")
    monkeypatch.setattr(leg, "asked_beside", lambda *of: [])
    assert bounds.broken(script, play(script))


def test_a_rising_price_passes_a_budget_where_machines_are_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = load("price-rises-then-asleep")
    monkeypatch.setattr(leg, "_limited", lambda *of: [])
    assert bounds.broken(script, play(script))


def test_shares_of_what_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leg, "_limited", lambda *of: [])
    found = list(judged([draw.drawn(0), load("price-rises-then-asleep")], 1))
    assert [bool(each.bounds) for each in found] == [False, True]
    assert found[1].bounds["over"] > 1


@pytest.mark.slow
def test_many_markets_by_chance() -> None:
    """One in fifteen costs more than 1.3 times the best in hindsight; no budget is passed."""
    found = list(judged([draw.drawn(seed) for seed in range(100, 160)], 1))
    assert sum(bool(each.broken) for each in found) <= 7
    assert not any("over" in each.bounds for each in found)


@pytest.mark.parametrize("seed", [*range(8), 10188])
def test_markets_by_chance(seed: int) -> None:
    """The last was late: slow spot was tried, which alone could not make it."""
    script = draw.drawn(seed)
    assert bounds.broken(script, play(script)) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("work: 4h", "ways is missing"),
        ("work: 4h\nways: {a: {market: spot}}", "price is missing"),
        ("work: 4h\nways: {a: {price: $1, market: auction}}", "none of spot, on_demand"),
        ("work: 4h\nways: {a: {price: $1}}\nhappens: [{at: 1h, way: b, taken: yes}]", "no way 'b'"),
        (
            "work: 4h\nways: {a: {price: $1}}\nhappens: [{at: 1h, taken: yes}]",
            "taken is of one way",
        ),
        ("work: 4h\nways: {a: {price: $1}}\nhappens: [{at: 1h, way: a}]", "one thing that happens"),
        ("work: 4h\nways: {a: {price: $1, speed: 0}}", "not more than nothing"),
        ("work: 4h\nways: {a: {price: $1}}\ngood: {outcome: fine}", "none of succeeded"),
        ("wrok: 4h", "did you mean 'work'?"),
        ("- 1", "expected fields"),
    ],
)
def test_bad_files_are_named(text: str, words: str) -> None:
    with pytest.raises(BadFile) as found:
        read(text, "market.yaml")
    assert words in str(found.value)


def test_a_name_that_there_is_not() -> None:
    with pytest.raises(NotFound, match="cannot be read") as found:
        load("no-such-market")
    assert "sold-out-cheaper-zone" in (found.value.hint or "")
