"""Score the spot policy on series that it has not learned from.

    python tools/leave_out_spot.py TRACES.csv [PRICES.csv] [--windows N]

Each series is left out in turn, and so is all that was measured at the same time with the same
machines; then each campaign (everything of one start) as a whole. What is left is fitted, and the
cases of what was left out are simulated. Prints the gap to the optimum, and late cases.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import click

from tradewind import clock
from tradewind.policy import backward, learned, regimes, value
from tradewind.spot import cases, fit
from tradewind.spot.compare import compare
from tradewind.spot.series import Series, read

CONFIGS = {
    "single": [cases.Config(172800, d * 3600, o) for d in (52, 70) for o in (180, 720)],
    "multi": [cases.Config(86400, d * 3600, o) for d in (36, 48) for o in (180, 720)],
}


def use(series: Sequence[Series]) -> None:
    model = fit.fit(series, "")
    learned.learned.cache_clear()
    regimes.learned = lambda: model
    regimes.forget()
    backward.few.cache_clear()
    value.forget()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", type=Path)
    parser.add_argument("prices", type=Path, nargs="?")
    parser.add_argument("--windows", type=int, default=10)
    given = parser.parse_args()
    found = read(given.traces, given.prices, ["availability"])
    plain = read(given.traces, None, ["availability"])
    sums = {"series": [0.0, 0.0, 0], "campaign": [0.0, 0.0, 0], "campaign, multi": [0.0, 0.0, 0]}
    for one in plain:
        use([s for s in plain if s.trace_id != one.trace_id])
        score("series", [cases.single(one, 1)], "single", given.windows, sums)
    for start in sorted({s.start_s for s in found}):
        use([s for s in found if s.start_s != start])
        left = [cases.single(s, 1) for s in plain if s.start_s == start]
        score("campaign", left, "single", given.windows, sums)
        groups = cases.groups([s for s in found if s.start_s == start], 1)
        parts = [p for g in groups for p in cases.subsets(g, clock.generator(7))]
        if parts:
            score("campaign, multi", parts, "multi", given.windows, sums)
    for name, (cost, best, late) in sums.items():
        click.echo(f"left out by {name}: gap {100 * (cost / best - 1):.2f} %, {late} late")


def score(
    name: str,
    groups: Sequence[cases.Group],
    mode: str,
    windows: int,
    sums: dict[str, list[float]],
) -> None:
    result = compare(groups, CONFIGS[mode], windows, ["tradewind"])
    cost = sum(part.cost for part in result.sums.values())
    best = sum(part.optimum for part in result.sums.values())
    late = sum(part.late for part in result.sums.values())
    sums[name] = [a + b for a, b in zip(sums[name], (cost, best, late), strict=True)]
    click.echo(f"  {name} {groups[0].name}: gap {100 * (cost / best - 1):.2f} %")


if __name__ == "__main__":
    main()
