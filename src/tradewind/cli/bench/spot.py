"""`tradewind bench spot`: policies for spot with a deadline, against perfect foresight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.cli import render
from tradewind.cli.base import Command

TASKS = {"single": "48", "multi": "24"}
DEADLINES = {"single": "52,70", "multi": "36,48"}
SEED = 7


@click.command(
    "spot",
    cls=Command,
    examples="""
    # measured capacity, by the policies named
    tradewind bench spot --traces spot.csv \\
        --policies greedy,tradewind --windows 5
    """,
)
@click.option("--traces", required=True, metavar="FILE", help="Series of spot capacity, CSV.")
@click.option("--prices", metavar="FILE", help="Spot prices of those series, CSV.")
@click.option(
    "--mode",
    type=click.Choice(["single", "multi"]),
    default="single",
    show_default=True,
    help="One zone a case, or all zones of a group and random subsets of them.",
)
@click.option("--policies", metavar="NAMES", help="Separated by commas; all of them if not given.")
@click.option("--task", metavar="H", help="Hours of work: 48, or 24 with several zones.")
@click.option("--deadline", metavar="H,H", help="Hours: 52,70, or 36,48 with several zones.")
@click.option(
    "--overhead",
    metavar="H,H",
    default="0.05,0.2",
    show_default=True,
    help="Hours that a restart takes.",
)
@click.option(
    "--windows",
    type=click.IntRange(1, 10_000),
    default=30,
    show_default=True,
    metavar="N",
    help="Cases of a series and configuration, evenly spaced.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    metavar="N",
    help="Machines that must be had at once.",
)
@click.option(
    "--kinds",
    metavar="KINDS",
    default="availability",
    show_default=True,
    help="Kinds of series, separated by commas, or 'all'.",
)
@click.option("--harsh", is_flag=True, help="As in real life: see docs/design/006-spot.md.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def spot(
    traces: str,
    prices: str | None,
    mode: str,
    policies: str | None,
    task: str | None,
    deadline: str | None,
    overhead: str,
    windows: int,
    nodes: int,
    kinds: str,
    harsh: bool,
    as_json: bool,
) -> None:
    """What finishing by a deadline costs with spot machines, against perfect foresight."""
    from tradewind.policy.names import POLICIES, named
    from tradewind.spot import cases, compare, series
    from tradewind.spot.harsh import simulate as harshly

    chosen = list(POLICIES) if policies is None else listed(policies, "--policies")
    for name in chosen:
        named(name)
    work = _hours(TASKS[mode] if task is None else task, "--task")
    if len(work) != 1:
        raise InvalidValue(f"--task is {task!r}", hint="one number of hours")
    configs = [
        cases.Config(work[0], due, over)
        for due in _hours(DEADLINES[mode] if deadline is None else deadline, "--deadline")
        for over in _hours(overhead, "--overhead")
    ]
    wanted = [] if kinds == "all" else listed(kinds, "--kinds")
    found = series.read(Path(traces), Path(prices) if prices else None, wanted)
    if mode == "single":
        groups = [cases.single(one, nodes) for one in found]
    else:
        rng = clock.generator(SEED)
        groups = [
            part for whole in cases.groups(found, nodes) for part in cases.subsets(whole, rng)
        ]
        if not groups:
            raise NotFound(
                f"{traces} has no series of one provider, accelerator and gap that overlap in time",
                hint="--mode single takes each series alone",
            )
    with render.bars(["spot"], quiet=as_json) as bar:
        result = compare.compare(
            groups,
            configs,
            windows,
            chosen,
            harshly if harsh else None,
            lambda done, total: bar("spot", done, total),
            nodes,
        )
    document = {"mode": mode, "harsh": harsh, "seed": SEED, "windows": windows, **result.document()}
    # In a group, those without prices are left out where others have some.
    plain = [one.trace_id for one in found if prices and mode == "single" and not one.priced]
    document["unpriced"] = plain
    if as_json:
        render.print_json(document)
        return
    _print(document, chosen)


def _print(document: dict[str, Any], chosen: list[str]) -> None:
    click.echo(f"{render.count(document['cases'], 'case')}, cost of on-demand from the start = 1")
    click.echo(f"{'perfect foresight':<18}{document['optimum_vs_on_demand']:8.3f}")
    click.echo(f"{'policy':<18}{'cost':>8}{'gap':>9}{'late':>7}{'restarts':>10}{'decide':>11}")
    for name in chosen:
        figures = document["by_policy"][name]
        click.echo(
            f"{name:<18}{figures['cost_vs_on_demand']:8.3f}{_gap(figures):>9}"
            f"{figures['late']:7d}{figures['restarts']:10.1f}{figures['decide_ms']:8.3f} ms"
        )
    click.echo("gap to the optimum by deadline/restart:")
    for config, part in document["by_config"].items():
        gaps = (f"{name} {_gap(part['by_policy'][name])}" for name in chosen)
        click.echo(f"  {config:<12} {', '.join(gaps)}")
    if "planner" in document:
        click.echo(f"the planner predicted {_foretold(document['planner'])}; by deadline/restart:")
        for config, part in document["by_config"].items():
            click.echo(f"  {config:<12} {_foretold(part['planner'])}")
    for line in document["skipped"]:
        click.echo(f"skipped: {line}")
    if document["unpriced"]:
        number = render.count(len(document["unpriced"]), "series", "series")
        click.echo(f"without prices, and so at the usual ones: {number}")


def _foretold(planner: dict[str, float]) -> str:
    return f"{planner['cost_vs_on_demand']:.3f}, {100 * planner['error']:+.1f} % off"


def _gap(figures: dict[str, Any]) -> str:
    gap = figures["gap_to_optimum"]
    return "–" if gap is None else f"{100 * gap:.1f} %"


def listed(text: str, name: str) -> list[str]:
    """What an option names, separated by commas; each once."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise InvalidValue(f"{name} is {text!r}, and names nothing")
    return found


def _hours(text: str, name: str) -> list[int]:
    found = []
    for part in listed(text, name):
        try:
            found.append(round(float(part) * 3600))
        except (ValueError, OverflowError):
            raise InvalidValue(f"{name} is {text!r}", hint="hours, separated by commas") from None
    return list(dict.fromkeys(found))
