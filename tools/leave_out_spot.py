"""Score the spot policy on series that it has not learned from.

    python tools/leave_out_spot.py TRACES.csv [PRICES.csv] [--windows N] [--harsh | --own]

Each series is left out in turn, and so is all that was measured at the same time with the same
machines; then each campaign (everything of one start) as a whole. What is left is fitted, and the
cases of what was left out are simulated. Prints the gap to the optimum, late cases, and of
single zones in campaigns how far off what would have been foretold of their mean cost is.

`--own` is the opposite: each series is judged by its own hazards, which no policy can know while it
runs. What is left of the gap then is the price of not knowing the future.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import log
from pathlib import Path
from unittest import mock

import click
from msgspec.structs import replace

from tradewind.base import clock
from tradewind.policy import backward, learned, regimes, value
from tradewind.policy import spot as gangs
from tradewind.spot import cases, fit, harsh, outlook
from tradewind.spot.compare import OURS, Comparison, Simulate, compare
from tradewind.spot.series import Series, read

CONFIGS = {
    "single": [cases.Config(172800, d * 3600, o) for d in (52, 70) for o in (180, 720)],
    "multi": [cases.Config(86400, d * 3600, o) for d in (36, 48) for o in (180, 720)],
}


def use(model: learned.Learned) -> None:
    learned.learned.cache_clear()
    regimes.learned = lambda: model
    regimes.forget()
    backward.few.cache_clear()
    value.forget()
    gangs.believed.cache_clear()
    gangs.of.cache_clear()


def own_model(series: Series) -> learned.Learned:
    """One regime that never changes: the hazards by age of this series, and nothing to find out."""
    with mock.patch.multiple(fit, LEVELS=(0.0,), DRIFT=0.0, JUMP=0.0):
        model = fit.fit([series], "")
    # Of one regime they are changes by ten minutes exactly; rates that make these as likely:
    steps = 3600 / fit.STEP_S
    up, down = (
        tuple(-steps * log(1 - rate / steps) for rate in rates) for rates in (model.up, model.down)
    )
    return replace(model, up=up, down=down)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", type=Path)
    parser.add_argument("prices", type=Path, nargs="?")
    parser.add_argument("--windows", type=int, default=10)
    parser.add_argument("--harsh", action="store_true", help="campaigns only, by the harsh rules")
    parser.add_argument("--own", action="store_true", help="one zone, by its own hazards")
    given = parser.parse_args()
    run = harsh.simulate if given.harsh else None
    found = read(given.traces, given.prices, ["availability"])
    plain = read(given.traces, None, ["availability"])
    if given.own:
        own(plain, given.windows)
        return
    offs: dict[str, list[float]] = {}
    sums = {"series": [0.0, 0.0, 0], "campaign": [0.0, 0.0, 0], "campaign, multi": [0.0, 0.0, 0]}
    for one in [] if given.harsh else plain:
        use(fit.fit([s for s in plain if s.trace_id != one.trace_id], ""))
        score("series", [cases.single(one, 1)], "single", given.windows, sums, run)
    for start in sorted({s.start_s for s in found}):
        use(fit.fit([s for s in found if s.start_s != start], ""))
        left = [cases.single(s, 1) for s in plain if s.start_s == start]
        result = score("campaign", left, "single", given.windows, sums, run)
        for config in CONFIGS["single"]:
            off = off_by(result, left, config, given.windows)
            offs.setdefault(config.name, []).append(off)
            click.echo(f"  foretold of {config.name}: {100 * off:+.1f} % off")
        groups = cases.groups([s for s in found if s.start_s == start], 1)
        parts = [p for g in groups for p in cases.subsets(g, clock.generator(7))]
        if parts:
            score("campaign, multi", parts, "multi", given.windows, sums, run)
    scored = {name: found for name, found in sums.items() if found[1]}
    for name, (cost, best, late) in scored.items():
        click.echo(f"left out by {name}: gap {100 * (cost / best - 1):.2f} %, {late} late")
    all_offs = [abs(off) for found_offs in offs.values() for off in found_offs]
    click.echo(f"foretold of campaigns: {100 * sum(all_offs) / len(all_offs):.1f} % off on average")


def own(series: Sequence[Series], windows: int) -> None:
    sums: dict[str, list[float]] = {}
    for one in series:
        use(own_model(one))
        for config in CONFIGS["single"]:
            result = compare([cases.single(one, 1)], [config], windows, [OURS])
            for part in result.sums.values():
                for name in (config.name, "all"):
                    total = sums.setdefault(name, [0.0, 0.0])
                    total[0] += part.cost
                    total[1] += part.optimum
    for name, (cost, best) in sums.items():
        click.echo(f"by its own hazards, {name}: gap {100 * (cost / best - 1):.2f} %")


def off_by(
    result: Comparison, groups: Sequence[cases.Group], config: cases.Config, windows: int
) -> float:
    """Of the mean cost, by the tables of what is learned now; prices are as where none is given."""
    work_h, time_h, restart_h = (
        seconds / 3600 for seconds in (config.work_s, config.deadline_s, config.overhead_s)
    )
    ups = [case.up[0][0] for group in groups for case in cases.cut(group, config, windows)]
    price = float(groups[0].prices[0, 0] / groups[0].on_demand)
    slack_s, start_s = config.deadline_s - config.work_s, config.overhead_s
    table = value.values(config.deadline_s, slack_s, start_s, start_s, price, 0.0)
    told = 0.0
    for up in (True, False):
        cost_h = outlook.cost_h(table, work_h, time_h, restart_h, up, 1)
        spot_h = (work_h + restart_h - cost_h) / (1 - table.price)
        told += ups.count(up) * (cost_h + (price - table.price) * spot_h)
    ours = [part for key, part in result.sums.items() if key[0] == config.name and key[2] == OURS]
    paid = sum(part.cost / part.on_demand * part.cases for part in ours) * work_h
    return told / paid - 1


def score(
    name: str,
    groups: Sequence[cases.Group],
    mode: str,
    windows: int,
    sums: dict[str, list[float]],
    run: Simulate | None,
) -> Comparison:
    result = compare(groups, CONFIGS[mode], windows, ["tradewind"], run)
    cost = sum(part.cost for part in result.sums.values())
    best = sum(part.optimum for part in result.sums.values())
    late = sum(part.late for part in result.sums.values())
    sums[name] = [a + b for a, b in zip(sums[name], (cost, best, late), strict=True)]
    click.echo(f"  {name} {groups[0].name}: gap {100 * (cost / best - 1):.2f} %")
    return result


if __name__ == "__main__":
    main()
