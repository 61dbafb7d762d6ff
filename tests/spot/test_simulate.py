"""A case, tick by tick, by the written rules; and nobody is late who has the net."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradewind.base import clock
from tradewind.policy.base import Choice, Known, Policy
from tradewind.policy.names import NETLESS, POLICIES
from tradewind.spot import harsh
from tradewind.spot.cases import Case, Config
from tradewind.spot.simulate import simulate

SAFE = [name for name in POLICIES if name not in NETLESS]


def case_of(
    up: list[bool], *, work_s: int = 300, deadline_s: int = 600, overhead_s: int = 100
) -> Case:
    config = Config(work_s, deadline_s, overhead_s)
    window = config.window(60)
    ups = (up + [False] * window)[:window]
    return Case(config, ("z",), 60, [ups], [[1] * window], 4)


def script(*picks: int | None) -> Policy:
    left = list(picks)
    return lambda known: Choice(left.pop(0) if left else 1, "as told")


def test_a_restart_is_burned_first_and_every_tick_is_billed_whole() -> None:
    # 100 s of overhead: nothing, then 20 s, then 60 s a tick.
    found = simulate(case_of([True] * 20), script(*[0] * 20))
    assert found == found._replace(cost=60 * 7, late=False, restarts=0, finish_s=400, decisions=7)


def test_another_machine_needs_a_whole_restart_again() -> None:
    # 60 of 100 s are burned on spot; on-demand begins with 100 again, not with 40 or 140.
    found = simulate(case_of([True] * 20), script(0, 1))
    assert (found.restarts, found.finish_s) == (1, 60 + 100 + 300)


def test_a_machine_that_is_taken_keeps_the_work() -> None:
    up = [True, True, True, False, True, True, True, True, True, True, True]
    found = simulate(case_of(up), script(0, 0, 0, None, 0, 0, 0, 0, 0, 0, 0))
    # 80 s done by the third tick, then a new restart.
    assert (found.restarts, found.finish_s) == (1, 240 + 100 + 220)


def test_late_is_to_the_second() -> None:
    assert not simulate(case_of([], deadline_s=400), script()).late
    found = simulate(case_of([], deadline_s=459), script(None))
    assert (found.finish_s, found.late) == (460, True)
    assert not simulate(case_of([], deadline_s=460), script(None)).late


def test_picking_what_is_not_there_is_an_error() -> None:
    with pytest.raises(AssertionError, match="is not available"):
        simulate(case_of([False] * 20), script(0))


configs = st.builds(
    lambda work, slack, overhead: Config(work, work + overhead + slack, overhead),
    st.integers(1, 7200),
    st.integers(0, 5400),
    st.sampled_from([0, 1, 59, 180, 700]),
)


@settings(max_examples=60, deadline=None)
@given(config=configs, gap=st.sampled_from([60, 195, 600]), often=st.floats(0, 1), data=st.data())
def test_nobody_with_the_net_is_ever_late(
    config: Config, gap: int, often: float, data: st.DataObject
) -> None:
    rng = random.Random(data.draw(st.integers(0, 10**6), label="seed"))
    zones, window = rng.randint(1, 3), config.window(gap)
    up = [[rng.random() < often for _ in range(window)] for _ in range(zones)]
    prices = [[rng.randint(1, 6) for _ in range(window)] for _ in range(zones)]
    case = Case(config, tuple("abc"[:zones]), gap, up, prices, 5)
    for name in SAFE:
        assert not simulate(case, POLICIES[name]).late, name


class Adversary(list[bool]):
    """Takes spot whenever it is held, after so many ticks; offers it whenever it is not."""

    def __init__(self, after: int) -> None:
        super().__init__([True])
        self.after, self.held = after, 0

    def __getitem__(self, tick: Any) -> Any:
        return self.held <= self.after

    def watching(self, policy: Policy) -> Policy:
        def watched(known: Known) -> Choice:
            choice = policy(known)
            self.held = self.held + 1 if choice.option == 0 else 0
            return choice

        return watched


class LongAdversary(Adversary):
    def __init__(self, after: int, ticks: int) -> None:
        super().__init__(after)
        self.ticks = ticks

    def __len__(self) -> int:
        return self.ticks


@pytest.mark.parametrize("after", [0, 1, 2, 5])
@pytest.mark.parametrize("overhead_s", [1, 180, 720])
@pytest.mark.parametrize("slack_s", [0, 100, 1900, 7000])
def test_an_adversary_makes_nobody_late(after: int, overhead_s: int, slack_s: int) -> None:
    config = Config(9000, 9000 + overhead_s + slack_s, overhead_s)
    for gap in (195, 600):
        window = config.window(gap)
        for name in SAFE:
            up = LongAdversary(after, window)
            case = Case(config, ("z",), gap, [up], [[1] * window], 4)
            found = simulate(case, up.watching(POLICIES[name]))
            assert not found.late, (name, gap)


@pytest.mark.parametrize("name", SAFE)
def test_nobody_with_the_net_is_late_in_harsh_cases(name: str) -> None:
    config = Config(6 * 3600, 10 * 3600, 180)
    for seed in range(25):
        rng = random.Random(seed)
        window, up, now = config.window(195), [], True
        for _ in range(window):
            now = now if rng.random() < 0.9 else not now
            up.append(now)
        case = Case(config, ("z",), 195, [up], [[1] * window], 3)
        found = harsh.simulate(case, POLICIES[name], seed)
        assert not found.late, f"seed {seed}"
        assert found[:4] == harsh.simulate(case, POLICIES[name], seed)[:4], "a seed repeats all"


class Refusals:
    """On-demand is refused as often in a row as the reserve covers, each time it is asked for."""

    def __init__(self) -> None:
        self.row = 0

    def random(self) -> float:
        return 0.0 if self.row <= harsh.RESERVE_TICKS - 1 else 1.0

    def watching(self, policy: Policy) -> Policy:
        def watched(known: Known) -> Choice:
            choice, safe = policy(known), len(known.options) - 1
            asks = choice.option == safe and known.holding != safe
            self.row = self.row + 1 if asks else 0
            return choice

        return watched


@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("after", [0, 2, 9, 40])
@pytest.mark.parametrize("overhead_s", [180, 720])
def test_the_worst_that_the_harsh_rules_allow_makes_nobody_late(
    monkeypatch: pytest.MonkeyPatch, name: str, after: int, overhead_s: int
) -> None:
    """Spot is offered and then taken, never with a notice, and then on-demand is refused."""
    refusals = Refusals()
    monkeypatch.setattr(harsh, "NOTICED", 0.0)
    monkeypatch.setattr(harsh, "FAILS", 0.0)
    monkeypatch.setattr(clock, "generator", lambda seed: refusals)
    for gap, slack_s in ((195, 3 * 3600), (600, 3 * 3600), (600, 5 * 3600)):
        config = Config(8 * 3600, 8 * 3600 + slack_s, overhead_s)
        window = config.window(gap)
        up = LongAdversary(after, window)
        case = Case(config, ("z",), gap, [up], [[1] * window], 4)
        policy = refusals.watching(up.watching(POLICIES[name]))
        assert not harsh.simulate(case, policy, 0).late, (gap, slack_s)
