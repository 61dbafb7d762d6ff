"""What it costs to bring the work to machines, as part of what they cost.

A start has a price of its own where the checkpoint, or the job's data, is carried out of the store
and somebody charges for that. It is paid once a stay, so it counts for more the shorter a stay is.
Everything is exactly as without it where moving is free.
"""

from __future__ import annotations

from tradewind.policy.base import Known, Option

LEAST_STAY_H = 0.1
"""Whatever is believed of a zone's life: what is divided by must be something."""


def again(option: Option) -> int:
    """Micro-dollars for a start there, once it is not held any more."""
    return option.start_cost if option.again_cost is None else option.again_cost


def each(known: Known, option: Option) -> float:
    """Micro-dollars for so much of the work as takes an hour at a rate of one unit a second, with
    the next start spread over all that is left."""
    bare = option.price / option.rate
    return bare + option.start_cost * 3600 / known.work if known.work > 0 else bare


def lasting(option: Option, life_h: float) -> float:
    """Micro-dollars an hour for as long as the work is there, on machines that are lost every so
    often: each loss is followed by a start."""
    return option.price + again(option) / max(life_h, LEAST_STAY_H)


def later(option: Option, hours: float) -> float:
    """Micro-dollars for all later starts, if so many hours are spent on it and nothing is known of
    its capacity: spot machines are lost as often as they are on average."""
    if option.market != "spot" or not again(option):
        return 0.0
    from tradewind.policy import spot

    nodes = option.way.nodes if option.way else 1
    return again(option) * hours / spot.of(nodes).held_h
