"""What bringing a run's work to machines will likely cost. Micro-dollars.

These are expectations, from the way's own figures: for choosing, for what a purchase needs in
reserve, and for how long machines may be up. What is really read and written is measured and booked
by the bytes (usage.py), so nothing here is ever booked.
"""

from __future__ import annotations

from tradewind.lifecycle.state import RunState
from tradewind.model.run import Way
from tradewind.model.usage import Usage, cost


def start(state: RunState, way: Way) -> int:
    """The next one there. Nothing was saved before machines were had at all; what the job reads, it
    reads again on each machine."""
    found = way.start_cost + way.bring_once
    return found + way.bring if state.machines else found


def again(way: Way) -> int:
    """Each one after that."""
    return way.start_cost + way.bring_once + way.bring


def saving(state: RunState, way: Way, seconds: int) -> int:
    """What a leg writes in so much more time, and with its last save: it makes one when it ends,
    however long the one before is ago."""
    if not way.save:
        return 0
    last = 0
    if state.spec and way.rates:
        last = cost(Usage(bytes_in=state.spec.checkpoint_bytes), way.rates)
    return last - (-way.save * seconds // 3600)
