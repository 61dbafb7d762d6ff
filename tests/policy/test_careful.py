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
