"""What a unit of the work has cost: a million tokens, an epoch, a thousand requests. Pure.

Done is what is kept: saved, or finished. So what was lost and made again, and runs that ended with
nothing, are in the price: it is what a token that one has came to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from tradewind.ledger.postings import RunCost

SCALES = {
    "tokens": (1_000_000, "1M tokens trained"),
    "samples": (1_000, "1,000 samples"),
    "epochs": (1, "epoch"),
    "steps": (1_000, "1,000 steps"),
    "requests": (1_000, "1,000 requests"),
}


class UnitCost(Struct, frozen=True, kw_only=True):
    what: str
    """Of whom."""
    unit: str
    """One of SCALES."""
    done: float
    micros: int
    runs: int

    @property
    def words(self) -> str:
        return SCALES[self.unit][1]

    @property
    def usd(self) -> float | None:
        """For so many as SCALES says; None where nothing is done yet."""
        return self.micros * SCALES[self.unit][0] / self.done / 1e6 if self.done > 0 else None


def unit_costs(
    runs: Iterable[RunCost], key: Callable[[RunCost], str], asked: Iterable[tuple[str, float]] = ()
) -> list[UnitCost]:
    """By group and unit; a run counts in the units that it was told in. `asked`: requests that a
    service has answered, with its id: its replicas are runs with that in their tag `service`."""
    found: dict[tuple[str, str], list[tuple[float, int]]] = {}
    services: dict[str, list[RunCost]] = {}
    for run in runs:
        if run.spec is None:
            continue
        service = run.spec.tags.get("service")
        if service:
            services.setdefault(service, []).append(run)
            continue
        share = run.done / run.spec.work if run.spec.work else 0.0
        for unit, amount in run.spec.amounts.items():
            if unit in SCALES:
                found.setdefault((key(run), unit), []).append((amount * share, run.micros))
        if run.spec.steps:
            found.setdefault((key(run), "steps"), []).append((run.done, run.micros))
    for service, requests in asked:
        replicas = services.get(service, [])
        if replicas:
            cost = sum(run.micros for run in replicas)
            found[service, "requests"] = [(requests, cost), *((0.0, 0) for _ in replicas[1:])]
    order = list(SCALES)
    return [
        UnitCost(
            what=what,
            unit=unit,
            done=sum(done for done, _ in each),
            micros=sum(micros for _, micros in each),
            runs=len(each),
        )
        for (what, unit), each in sorted(
            found.items(), key=lambda item: (item[0][0], order.index(item[0][1]))
        )
    ]
