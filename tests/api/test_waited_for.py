"""Machines that cost less, or can be had at all, for whoever waits: runs take them, not plans."""

from __future__ import annotations

from typing import ClassVar

from msgspec.structs import replace

from tests.lifecycle.builders import SPEC, WAY
from tradewind.api.rented import At, at_prices_of_now
from tradewind.catalog import ratecard
from tradewind.model.ratecard import RateCard
from tradewind.model.run import Facts, Way


class Queueing:
    """A cloud that has machines of one type for half of their price, for whoever waits."""

    name = "aws"

    def waited_for(self, way: Way, card: RateCard) -> Way | None:
        half = replace(way, market="waited", price=way.price // 2)
        return half if way.instance_type == "big" else None


def test_on_demand_machines_can_be_waited_for_too() -> None:
    class Record:
        places: ClassVar = {"here": ("",)}

    at = At(Queueing(), Record(), "s3://bucket")  # type: ignore[arg-type]
    big = replace(WAY, provider="aws", instance_type="big", market="on_demand", price=10)
    ways = [
        big,
        replace(big, market="spot"),
        replace(big, instance_type="small"),
        replace(big, provider="other"),
    ]
    assert at.waited_for(ways, ratecard.card()) == [replace(big, market="waited", price=5)]


def test_no_prediction_counts_on_a_queue() -> None:
    slow = replace(WAY, price=10_000_000, facts=Facts())
    queued = replace(slow, market="waited", price=1_000_000, facts=Facts(queues=True))
    spec = replace(SPEC, ways=(slow,), predicted_cost=5_000_000)
    assert at_prices_of_now(spec, [slow, queued]) == 5_000_000
    assert at_prices_of_now(spec, [queued]) == 500_000
