from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.lifecycle.builders import WAY
from tradewind.policy.base import Known, Option
from tradewind.policy.plain import BETTER, REFUSED_S, choose

# An hour of work for 3.6 dollars, and ten minutes to start.
SAFE = Option(place="c/a", market="on_demand", price=3_600_000, rate=1.0, start_s=600.0)
SPOT = replace(SAFE, market="spot", price=1_200_000)
FAST = replace(SAFE, place="c/b", price=9_000_000, rate=2.0)


def chosen(*options: Option, **more: Any) -> int | None:
    choice = choose(replace(Known(3600.0, options), **more))
    assert choice.reason
    return choice.option


def test_the_cheapest_where_there_is_no_deadline() -> None:
    assert chosen(SAFE, SPOT, FAST) == 1
    assert chosen(SAFE, FAST) == 0


def test_spot_only_while_there_is_slack() -> None:
    """4,200 s by itself, a start of 600 s on safe machines after it was taken, and a tenth."""
    assert chosen(SAFE, SPOT, time_s=4200 + 600 + 420) == 1
    assert chosen(SAFE, SPOT, time_s=4200 + 600 + 419) == 0


def test_the_faster_one_when_the_cheaper_would_be_late() -> None:
    assert chosen(SAFE, SPOT, FAST, time_s=4200.0) == 0
    assert chosen(SAFE, SPOT, FAST, time_s=4199.0) == 2


def test_the_soonest_when_all_would_be_late() -> None:
    assert chosen(SAFE, SPOT, FAST, time_s=10.0) == 2
    assert chosen(SAFE, SPOT, FAST, time_s=-10.0) == 2


def test_the_soonest_that_can_be_paid() -> None:
    """FAST would cost 6.0 dollars, SAFE 4.2, and a slow one 2.7."""
    slow = replace(SAFE, place="c/c", price=1_800_000, rate=0.75)
    assert chosen(SAFE, slow, FAST, time_s=10.0) == 2
    assert chosen(SAFE, slow, FAST, time_s=10.0, budget=5_000_000) == 0
    assert chosen(SAFE, slow, FAST, time_s=10.0, budget=4_000_000) == 1
    assert chosen(SAFE, slow, FAST, time_s=10.0, budget=1) == 1  # too dear, all: the least so


def test_what_it_costs_to_get_there_counts() -> None:
    near, far = SAFE, replace(SAFE, place="c/far", price=3_000_000, start_cost=1_000_000)
    assert chosen(near, far) == 0
    assert chosen(near, replace(far, start_cost=100_000)) == 1


def test_a_refusal_is_believed_for_a_while() -> None:
    assert chosen(SAFE, replace(SPOT, refused_s=REFUSED_S - 1)) == 0
    assert chosen(SAFE, replace(SPOT, refused_s=REFUSED_S)) == 1
    assert chosen(replace(SAFE, refused_s=1.0), replace(SPOT, refused_s=1.0)) is None


def test_what_is_held_is_not_refused() -> None:
    assert chosen(replace(SAFE, start_s=0.0, refused_s=1.0), holding=0) == 0


def test_what_is_held_is_left_only_for_something_better_by_a_tenth() -> None:
    held = replace(SAFE, start_s=0.0)

    def other(share: float) -> Option:
        """Costs that share of what is held would, its start included."""
        return replace(SAFE, place="c/b", price=int(3_600_000 * share * 3600 / 4200))

    assert chosen(held, other(BETTER + 0.01), holding=0) == 0
    assert chosen(held, other(BETTER - 0.01), holding=0) == 1
    assert chosen(held, other(BETTER + 0.01)) == 1  # if it is not held yet, the cheaper one


def test_late_already_it_moves_only_to_be_sooner_by_a_tenth() -> None:
    held = replace(SAFE, start_s=0.0)
    hardly = replace(FAST, rate=3600 / 2700)  # 3,300 s with its start
    much = replace(FAST, rate=3600 / 2600)  # 3,200 s
    assert chosen(held, hardly, holding=0, time_s=100.0) == 0
    assert chosen(held, much, holding=0, time_s=100.0) == 1


def test_a_spot_machine_without_slack_is_left_for_a_safe_one() -> None:
    held = replace(SPOT, start_s=0.0)
    assert chosen(held, SAFE, holding=0, time_s=3600 + 600 + 360) == 0
    assert chosen(held, SAFE, holding=0, time_s=3600 + 600 + 359) == 1


def test_the_reason_names_what_when_and_how_much() -> None:
    way = replace(WAY, nodes=2)
    reason = choose(Known(3600.0, (replace(SAFE, way=way),), 9000.0)).reason
    for words in ("2 × small on-demand in cloud/r1-a", "$4.20", "1h 10m", "2h 30m"):
        assert words in reason


_options = st.lists(
    st.builds(
        Option,
        place=st.just("c/a"),
        market=st.sampled_from(("spot", "on_demand")),
        price=st.integers(0, 10**8),
        rate=st.floats(0.01, 100),
        start_s=st.floats(0, 3600),
        start_cost=st.integers(0, 10**7),
        refused_s=st.none() | st.floats(0, 2000),
    ),
    min_size=1,
    max_size=6,
)


@given(
    work=st.floats(0, 1e6),
    options=_options,
    time_s=st.none() | st.floats(-1e5, 1e6),
    budget=st.none() | st.integers(-(10**9), 10**9),
    held=st.booleans(),
)
def test_any_question_has_an_answer_that_may_be_had(
    work: float, options: list[Option], time_s: float | None, budget: int | None, held: bool
) -> None:
    known = Known(work, tuple(options), time_s, budget, 0 if held else None)
    choice = choose(known)
    assert choose(known) == choice
    assert choice.reason
    if choice.option is None:
        assert not held
        assert all(o.refused_s is not None and o.refused_s < REFUSED_S for o in options)
    else:
        refused_s = options[choice.option].refused_s
        assert (held and choice.option == 0) or refused_s is None or refused_s >= REFUSED_S


@given(options=_options, time_s=st.floats(0, 1e6))
def test_whoever_can_be_in_time_is(options: list[Option], time_s: float) -> None:
    """With a safe machine that makes it, what is chosen makes it."""
    free = [replace(option, refused_s=None) for option in options]
    finish = [option.start_s + 3600.0 / option.rate for option in free]
    choice = choose(Known(3600.0, tuple(free), time_s))
    safe = any(
        option.market != "spot" and seconds <= time_s
        for option, seconds in zip(free, finish, strict=True)
    )
    assert choice.option is not None
    if safe:
        assert finish[choice.option] <= time_s
