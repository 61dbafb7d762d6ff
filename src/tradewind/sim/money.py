"""Whether what a run cost is booked, and no more than it may cost: promises 5 and 6 of referee.py,
which itself counts the time that machines may be up for."""

from __future__ import annotations

from tradewind.ledger.postings import postings, stored
from tradewind.model.event import MachineUsed
from tradewind.model.timing import UNATTENDED_S
from tradewind.model.usage import GB
from tradewind.sim.history import History
from tradewind.sim.world import START_S, Violation


def balanced(run: History) -> bool:
    """Whether the ledger equals the bill; a last correction may still be on its way."""
    return sum(posting.micros for posting in postings(run.events)) == run.rented.charged()


def check_ledger(run: History) -> None:
    """When all is over: to the micro-dollar."""
    charged, posted = run.rented.charged(), postings(run.events)
    if any(posting.seconds is None for posting in posted):
        raise Violation(f"{run.run_id} is closed, and its ledger still has open machines")
    total = sum(posting.micros for posting in posted)
    if total != charged:
        raise Violation(f"{run.run_id}: the ledger says {total}, the cloud {charged}")


def check_moved(run: History) -> None:
    """No bytes move without a price: all that machines have told of, at the place's own."""
    used = {e.machine_id: e for e in run.events if isinstance(e, MachineUsed)}
    owed = 0
    for event in used.values():
        at = run.requests[event.leg].way.provider
        rates = next(way.rates for way in run.scenario.spec.ways if way.provider == at)
        assert rates is not None
        owed += -(-event.usage.bytes_in * rates.gb_in // GB)
        owed += -(-event.usage.bytes_out * rates.gb_out // GB)
    booked = sum(p.micros for p in stored(run.events) if p.line and p.line.moved)
    if booked != owed:
        raise Violation(f"{run.run_id} has moved bytes for {owed}, and {booked} is booked")


def check_budget(run: History) -> None:
    spec, month = run.spec, run.scenario.month
    limits = [] if spec.budget is None else [spec.budget]
    # Where the rest of the work costs less than the reserve it is bought with less: then one that
    # never reports has the time until whoever launched it looks, and nobody may.
    unheard = sum(
        rental.way.price * UNATTENDED_S // 3600
        for _, rental in run.rented
        if rental.machine.machine_id not in run.heard
    )
    if month and run.world.now < START_S + month[1]:
        limits.append(month[0])
    if not limits:
        return
    charged = run.rented.charged() + run.moved
    step = max(way.nodes * (way.price * way.facts.billing_step_s // 3600 + 1) for way in spec.ways)
    if charged > min(limits) + step + unheard:
        raise Violation(f"{run.run_id} cost {charged}, more than {min(limits)} + {step}")
