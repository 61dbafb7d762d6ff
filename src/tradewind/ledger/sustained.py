"""Sustained-use discounts: what a month of machines on demand costs less, the longer they are up.

A provider gives them on all that one account uses in a region in a month, so they are reckoned over
all runs of a store, and not over one. Of machines of one type, those that are up at once lie above
each other in layers; in each layer, machines that follow one another are one that was up for
longer. The discount of a month is rounded down to the micro-dollar once, as one line of a bill, and
each machine has the part of it that its own time has brought.

Whatever else the account uses is not known here, and can only make the discount larger.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from msgspec.structs import replace

from tradewind.ledger.periods import month_start, next_month
from tradewind.ledger.postings import MACHINE, SUSTAINED, Lasting, Posting, RunCost
from tradewind.model.sustained import WHOLE, unpaid

_HOUR_S = 3600
_Group = tuple[str, str, str, int]
"""Provider, region, type, and the month's start."""


def is_any(runs: Iterable[RunCost]) -> bool:
    """Whether other runs of the store would change what these cost."""
    return any(run.lasting for run in runs)


def credited(runs: Iterable[RunCost]) -> list[RunCost]:
    """The same with the discounts, each a posting below 0 beside its machine's. `runs`: all of the
    store, else it is less than it will be."""
    known = list(runs)
    found: dict[str, list[Posting]] = {}
    groups: dict[_Group, list[tuple[str, Lasting]]] = {}
    for run in known:
        for use in run.lasting:
            for part in _by_month(use):
                key = (use.provider, use.region, use.instance_type, month_start(part.from_s))
                groups.setdefault(key, []).append((run.run_id, part))
    machines = {
        (run.run_id, posting.machine_id): posting
        for run in known
        if run.lasting
        for posting in run.postings
        if posting.kind == MACHINE
    }
    for (*_, month_s), parts in groups.items():
        for run_id, part, micros in _shares(parts, next_month(month_s) - month_s):
            whose = machines[run_id, part.machine_id]
            found.setdefault(run_id, []).append(_posting(whose, part, micros))
    return [
        replace(run, postings=(*run.postings, *found[run.run_id])) if run.run_id in found else run
        for run in known
    ]


def _by_month(use: Lasting) -> Iterator[Lasting]:
    start_s = use.from_s
    while start_s < use.to_s:
        end_s = min(use.to_s, next_month(start_s))
        yield replace(use, from_s=start_s, to_s=end_s)
        start_s = end_s


def _shares(parts: list[tuple[str, Lasting]], month_s: int) -> Iterator[tuple[str, Lasting, int]]:
    parts = sorted(parts, key=lambda each: (each[1].from_s, each[0], each[1].machine_id))
    moments = sorted({at for _, part in parts for at in (part.from_s, part.to_s)})
    used_s = [0] * len(parts)  # by layer
    off = [0] * len(parts)  # by part; micro-dollars × hours in seconds × WHOLE
    for since_s, until_s in pairwise(moments):
        up = [n for n, (_, part) in enumerate(parts) if part.from_s <= since_s < part.to_s]
        for layer, number in enumerate(up):
            part, length_s = parts[number][1], until_s - since_s
            off[number] += part.price * unpaid(part.steps, used_s[layer], length_s, month_s)
            used_s[layer] += length_s
    total = 0
    for (run_id, part), more in zip(parts, off, strict=True):
        before, total = total // (_HOUR_S * WHOLE), total + more
        if micros := total // (_HOUR_S * WHOLE) - before:
            yield run_id, part, micros


def _posting(machine: Posting, part: Lasting, micros: int) -> Posting:
    """What is taken off on demand is saved."""
    return replace(
        machine, kind=SUSTAINED, seconds=0, paid_s=0, micros=-micros, from_s=part.from_s,
        to_s=part.to_s, stop_s=None, price=0, on_demand_price=None, on_demand=0, open=False,
    )  # fmt: skip
