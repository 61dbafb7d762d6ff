"""How a loop takes its batches, from what is seen of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tradewind.torch.sessions.pace import Pace


def loop(pace: Pace, steps: int, per_step: int, ahead: int, given_before: int = 0) -> int:
    """Runs one that fetches so many ahead; returns how many it was given."""
    count = given_before

    def give(number: int) -> None:
        nonlocal count
        for _ in range(number):
            pace.gave(lambda here=count: here)  # type: ignore[misc]
            count += 1

    give(ahead)
    for _ in range(steps):
        give(per_step)
        pace.optimizer_stepped()
        pace.made()
    return count


@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 3))
def test_what_no_step_was_made_with_is_not_consumed(steps: int, per_step: int, ahead: int) -> None:
    pace = Pace()
    given = loop(pace, steps, per_step, ahead)
    assert pace.ahead == ahead
    assert pace.per_step == per_step
    assert pace.mark() == (given - ahead if ahead else None)
    again = Pace()
    again.restore(pace.state())
    given = loop(again, 1, per_step, ahead, given - ahead)
    assert again.known()
    assert again.mark() == (given - ahead if ahead else None)


def test_one_step_is_not_enough_to_know_where_several_batches_were_given() -> None:
    pace = Pace()
    loop(pace, 1, 1, 1)
    assert not pace.known()
    pace = Pace()
    loop(pace, 1, 1, 0)
    assert pace.known()


@pytest.mark.parametrize(("before", "after", "said"), [(8, 4, False), (6, 2, False), (6, 4, True)])
def test_another_rhythm_is_said(before: int, after: int, said: bool) -> None:
    """Steps of the optimizer after every fourth batch; the checkpoint is after `before` batches."""

    def take(pace: Pace, batches: range, every: int) -> list[str]:
        told = []
        for number in batches:
            pace.gave(lambda: None)
            if number % every == 0:
                told.append(pace.optimizer_stepped())
            pace.made()
        return [words for words in told if words]

    pace = Pace()
    assert take(pace, range(1, 25 + before - 8), 4) == []
    state = pace.state()
    assert state["usual"] == 4
    again = Pace()
    again.restore(state)
    told = take(again, range(1, after + 1), after)
    assert bool(told) is said
    assert not said or "came after 6 batches, and before it each came after 4" in told[0]
