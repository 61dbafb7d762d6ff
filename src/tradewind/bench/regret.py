"""By how much a plan is dearer than the least that looking everywhere finds.

The planner takes up to four layouts for each number of machines, tries micro-batches in steps of
two, and one zone of each region. Here all finer micro-batches and degrees compete, every zone, and
the fastest layout for each of several likelihoods to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from math import inf, isfinite
from statistics import median
from typing import TYPE_CHECKING, Any

from tradewind import catalog as catalogs
from tradewind.bench.asks import asks
from tradewind.catalog import files, ratecard
from tradewind.planning import asking
from tradewind.planning.planner import Planner
from tradewind.planning.rates import Rates
from tradewind.planning.speeds import Care
from tradewind.providers import charges

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.model import Workload

_EVERYWHERE = Care(coarse=1.2, fits=(0.8, 0.9, 0.95, 0.98, 0.995), doubt=0.0, zones=True)
_BEATEN = 1e-6


def measure(number: int, told: Callable[[int], None] = lambda done: None) -> dict[str, Any]:
    """Of so many random asks over the built-in catalog, those that have a plan: for `without_ours`
    of them only the exhaustive search finds one; `beaten` is the share of the others for which it
    finds something cheaper, and the rest is by how much."""
    loaded = catalogs.load(files.PACKAGED, account=False)
    found = []
    for done, work in enumerate(asks(loaded, number)):
        one = regret(work, loaded, loaded.facts.made_at)
        found += [] if one is None else [one]
        told(done + 1)
    both = sorted(one for one in found if isfinite(one)) or [0.0]
    return {
        "asks": number,
        "with_a_plan": len(found),
        "without_ours": sum(not isfinite(one) for one in found),
        "beaten": round(sum(one > _BEATEN for one in both) / len(both), 3),
        "regret_median": round(median(both), 4),
        "regret_p95": round(both[int(0.95 * len(both))], 4),
        "regret_worst": round(both[-1], 4),
    }


def regret(work: Workload, catalog: Catalog, now: datetime) -> float | None:
    """As a share of what is expected to be paid; None where there is no plan at all."""
    rates = Rates(ratecard.card(), charges.usual(ratecard.card()))
    planner = Planner(work, catalog, now=now, rates=rates)
    usual = planner.search()
    ours = planner.asking(usual)
    least = _least(planner, [planner.search(_EVERYWHERE), usual])
    if least is None:
        return None
    if ours.first is None:
        return inf
    return max(ours.expected(ours.first) / least - 1, 0.0)


def _least(planner: Planner, searches: Sequence[Any]) -> float | None:
    """What is expected where all ways of all searches may be asked for."""
    import numpy as np

    orders = [planner.asking(one).order for one in searches]
    weighed, had, kind = (
        np.concatenate(several)
        for several in zip(
            *(
                (one.found.weighed[at], one.found.had[at], one.goods.types[one.found.good[at]])
                for one, at in zip(searches, orders, strict=True)
            ),
            strict=True,
        )
    )
    if not len(weighed):
        return None
    order = np.argsort(weighed, kind="stable")
    last = asking.LAST_RESORT * float(weighed[order[0]])
    return asking.least(weighed[order], had[order], kind[order], last)
