"""What real runs ask: nobody sees capacity by waiting, and trying is free."""

from __future__ import annotations

from tradewind.policy import careful
from tradewind.policy.base import Known, Option

HOUR = 3600.0
SAFE = Option("safe", "on_demand", 3_000_000, 1.0, 300.0)
TAKEN = {"refused_s": 10.0, "up_s": 10.0, "history": ((True, 2 * HOUR), (False, 60.0))}


def spot(name: str, price: int, **seen: object) -> Option:
    return Option(name, "spot", price, 1.0, 300.0, **seen)  # type: ignore[arg-type]


def chosen(*options: Option, work: float = 10 * HOUR, time_s: float = 30 * HOUR) -> str | None:
    known = Known(
        work, options, time_s, tick_s=120.0, all_work=20 * HOUR, all_s=40 * HOUR, doubt=0.02
    )
    found = careful.choose(known).option
    return None if found is None else options[found].place


def test_another_zone_is_taken_when_one_was_lost() -> None:
    assert chosen(spot("a", 1_000_000, **TAKEN), spot("b", 1_300_000), SAFE) == "b"


def test_nothing_dear_is_held_while_something_cheap_is_awaited() -> None:
    assert chosen(spot("a", 1_000_000, **TAKEN), spot("b", 2_900_000), SAFE) is None
    # But what is as cheap is tried, whatever is left to do.
    assert chosen(spot("a", 1_000_000, **TAKEN), spot("b", 1_050_000), SAFE, work=600.0) == "b"
    assert chosen(spot("a", 1_000_000), SAFE, work=600.0) == "a"


def test_a_refusal_is_believed_for_a_while() -> None:
    assert chosen(spot("a", 1_000_000, **TAKEN), SAFE) is None
    assert chosen(spot("a", 1_000_000, **{**TAKEN, "refused_s": 660.0, "up_s": 660.0}), SAFE) == "a"


def test_without_slack_it_is_on_demand() -> None:
    assert chosen(spot("a", 1_000_000), SAFE, time_s=10.2 * HOUR) == "safe"


def test_what_makes_the_deadline_is_not_given_up_for_what_barely_would() -> None:
    """Nothing has a margin any more: ten hours of work, 10.1 until the deadline."""
    held = Option("held", "on_demand", 3_000_000, 1.0, 0.0, again_s=300.0)
    cheaper = Option("cheaper", "on_demand", 2_500_000, 1.0, 300.0)
    known = Known(10 * HOUR, (held, cheaper), 10.1 * HOUR, holding=0, tick_s=120.0, doubt=0.02)
    assert careful.choose(known).option == 0


def test_what_an_hour_late_is_worth() -> None:
    """The deadline is lost: ten hours at $3 are cheapest, five at $9 are worth $15 more where an
    hour late costs more than three dollars, and nothing is held that the budget does not pay."""
    fast = Option("fast", "on_demand", 9_000_000, 2.0, 300.0)

    def at(late: int, budget: int | None = None) -> str:
        known = Known(10 * HOUR, (SAFE, fast), 2 * HOUR, budget, late=late)
        found = careful.choose(known).option
        assert found is not None
        return known.options[found].place

    assert (at(0), at(2_500_000), at(4_000_000)) == ("safe", "safe", "fast")
    assert at(4_000_000, budget=40_000_000) == "safe"
