"""How long a plan of serving takes: the whole catalog, and a week of hours."""

from __future__ import annotations

from statistics import median
from typing import Any

from tradewind import catalog
from tradewind.base import clock
from tradewind.catalog import files
from tradewind.model import Workload
from tradewind.model.lengths import Lengths
from tradewind.model.serve import Serve
from tradewind.planning.serving.planner import plan

LIMIT_S = 2.0
_DAY = (2, 2, 1, 1, 1, 2, 4, 8, 12, 14, 15, 15, 14, 15, 15, 14, 12, 10, 8, 7, 6, 5, 4, 3)


def measure(repeats: int = 15) -> dict[str, Any]:
    """`warm` with the catalog loaded; `explained` with what targets cost, alternatives, growth and
    why others lost, as the command shows it."""
    loaded = catalog.load(files.PACKAGED, account=False)
    now = loaded.facts.made_at
    work = workload()
    taken: dict[bool, list[float]] = {False: [], True: []}
    found = plan(work, catalog=loaded, now=now)
    for _ in range(max(repeats, 3)):
        for explain, times in taken.items():
            start = clock.stopwatch()
            plan(work, catalog=loaded, now=now, explain=explain)
            times.append(clock.stopwatch() - start)
    return {
        "offers": found.offers,
        "layouts": found.layouts,
        "hours": found.hours,
        "warm_ms_median": round(1e3 * median(taken[False]), 1),
        "explained_ms_median": round(1e3 * median(taken[True]), 1),
        "within_2s": median(taken[False]) <= LIMIT_S,
        "repeats": max(repeats, 3),
    }


def workload() -> Workload:
    week = tuple(float(rate * (0.6 if day > 4 else 1)) for day in range(7) for rate in _DAY)
    return Workload(
        name="chat",
        serve=Serve(
            model="llama-3.1-8b", rate=40.0, curve=week, quantise=("fp8",), ttft_s=0.5, tpot_s=0.04,
            input=Lengths.lognormal(median=600, p95=3000),
            output=Lengths.lognormal(median=150, p95=600), availability=0.999,
        ),
    )  # fmt: skip
