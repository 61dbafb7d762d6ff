"""How long it takes to load the catalog and to search it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from tradewind import catalog
from tradewind.base import clock

LOAD_LIMIT_MS = 50.0
FILTER_LIMIT_MS = 10.0


@dataclass(frozen=True, slots=True)
class CatalogSpeed:
    """Medians in milliseconds. `first` counts the work that later searches share."""

    offers: int
    load_ms: float
    first_filter_ms: float
    filter_ms: float
    filter_all_ms: float


def measure(repeats: int) -> CatalogSpeed:
    loads, firsts = [], []
    for _ in range(repeats):
        start = clock.stopwatch()
        loaded = catalog.load()
        loads.append(clock.stopwatch() - start)
        firsts.append(_timed(loaded.offers, 1))
    narrow = _timed(
        lambda: loaded.offers("H100-SXM", count=8, region="eu-*", market="spot"), repeats
    )
    return CatalogSpeed(
        offers=len(loaded.table),
        load_ms=1e3 * median(loads),
        first_filter_ms=median(firsts),
        filter_ms=narrow,
        filter_all_ms=_timed(loaded.offers, repeats),
    )


def _timed(work: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        start = clock.stopwatch()
        work()
        taken.append(clock.stopwatch() - start)
    return 1e3 * median(taken)
