"""What machines pay for being away from the run's store, on the way that they are bought by.

By the store's own prices there (`Way.rates`), which everything that they ask of it is booked at
later, and by how much they will likely ask: the checkpoint with each start, the job's data where it
lies in the same bucket, and a checkpoint as often as one is saved. Data of elsewhere is not
measured: bringing it is booked as the plan has reckoned it.
"""

from __future__ import annotations

from msgspec.structs import replace

from tradewind.base.units import format_money
from tradewind.model.run import Spec, Way
from tradewind.model.usage import Usage, cost
from tradewind.planning import finish
from tradewind.supervisor import cadence


def priced(spec: Spec, way: Way, store_url: str) -> Way:
    """A way as its cloud has priced it, with what moving costs and how long it takes."""
    if way.rates is None:
        return unmeasured(way)
    here = lies_in(spec.data, store_url)
    data = Usage(bytes_out=spec.data_bytes if here else 0)
    checkpoint = spec.checkpoint_bytes
    # As often as fresh machines save: older ones do less often, where it depends on that.
    every_s = cadence.of(spec, way, 0.0)
    a_save = cost(Usage(bytes_in=checkpoint), way.rates)
    far = way.rates.gb_in or way.rates.gb_out
    return replace(
        way,
        start_cost=0 if here else way.start_cost + way.bring_once,
        bring=cost(Usage(bytes_out=checkpoint), way.rates),
        bring_once=cost(data, way.rates),
        save=round(a_save * 3600 / every_s),
        start_s=way.start_s + (checkpoint / way.nodes / finish.FAR_RATE if far else 0.0),
    )


def unmeasured(way: Way) -> Way:
    """Where nobody counts what is moved, what the plan has reckoned is booked with each start."""
    return replace(
        way, start_cost=way.start_cost + way.bring_once + way.bring, bring=0, bring_once=0, save=0
    )


def lies_in(data: str, store_url: str) -> bool:
    """Whether it is in the store's own bucket, whose traffic is counted."""
    return bool(data) and _bucket(data) == _bucket(store_url)


def _bucket(url: str) -> tuple[str, str]:
    scheme, _, rest = url.partition("://")
    return scheme, rest.partition("/")[0]


def in_words(way: Way) -> str:
    """Empty where it costs nothing."""
    parts = []
    if once := way.bring_once:
        parts.append(f"{format_money(once, digits=2)} to bring the data")
    if start := way.start_cost + way.bring:
        parts.append(f"{format_money(start, digits=2)} a start")
    if way.save:
        parts.append(f"{format_money(way.save, digits=2)} an hour for checkpoints")
    return ", ".join(parts)
