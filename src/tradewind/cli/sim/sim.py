"""`tradewind sim …`: our promises, tried in a simulated world on your machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import TradewindError
from tradewind.cli import render
from tradewind.cli.base import Group
from tradewind.cli.sim.simmarket import market
from tradewind.cli.sim.simserve import serve
from tradewind.cli.sim.simtrace import trace

if TYPE_CHECKING:
    from tradewind.sim.campaign import Tally

_DEFAULT_SEEDS = 1000
_DEFAULT_SERVICES = 20


@click.group(
    "sim",
    cls=Group,
    examples="""
    # a thousand runs through crashes and lies
    tradewind sim faults
    """,
)
def command() -> None:
    """Put simulated runs through everything that can go wrong."""


command.add_command(trace)
command.add_command(serve)
command.add_command(market)


@command.command(
    "faults",
    examples="""
    # other runs than last time, by two processes
    tradewind sim faults --from 1000 --seeds 200 --jobs 2
    # what happened in one of them
    tradewind sim faults --seed 7 --story
    """,
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100_000_000),
    metavar="N",
    help=f"How many runs to simulate. Default: {_DEFAULT_SEEDS}.",
)
@click.option(
    "--from", "first", type=click.IntRange(min=0), metavar="SEED", help="The first. Default: 0."
)
@click.option("--seed", type=click.IntRange(min=0), metavar="SEED", help="This one only.")
@click.option("--story", is_flag=True, help="Tell what happened; with --seed.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    metavar="N",
    help="Processes to share the work.",
)
@click.option(
    "--services", is_flag=True, help="Services instead of runs; 20 seeds, a few seconds each."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def faults(
    seeds: int | None,
    first: int | None,
    seed: int | None,
    story: bool,
    jobs: int,
    services: bool,
    as_json: bool,
) -> None:
    """Runs through crashes, lost answers and lies.

    A referee that knows what really happened looks for what must never happen. One seed is one
    run, and always the same one."""
    if seed is not None and (seeds is not None or first is not None):
        raise click.UsageError("--seed is one seed: leave out --seeds and --from")
    if story and seed is None:
        raise click.UsageError("--story tells of one seed: say which with --seed SEED")
    if story and jobs > 1:
        raise click.UsageError("--story tells of one seed: there is no work to share by --jobs")
    if services:
        if story or jobs > 1:
            raise click.UsageError("--services goes without --story and --jobs")
        many = 1 if seed is not None else seeds or _DEFAULT_SERVICES
        _of_services(seed if seed is not None else first or 0, many, as_json)
        return
    if story and seed is not None:
        _story(seed, as_json)
        return
    start = (first or 0) if seed is None else seed
    _campaign((seeds or _DEFAULT_SEEDS) if seed is None else 1, start, jobs, as_json)


def _of_services(first: int, seeds: int, as_json: bool) -> None:
    from tradewind.sim import services

    with render.bars(["seeds"], quiet=as_json) as bar:
        tally = services.campaign(first, seeds, lambda done, total: bar("seeds", done, total))
    if as_json:
        render.print_json(
            {
                "seeds": tally.seeds,
                "violations": tally.violations,
                "first_violation_seed": tally.first_violation_seed,
                "faults_injected": tally.faults,
                "requests": tally.asked,
                "reached_a_replica": tally.answered,
                "by_fault": _by_frequency(tally.kinds),
                "first_violation": tally.first_violation or None,
            }
        )
    else:
        for name, value in (
            ("seeds", tally.seeds), ("violations", tally.violations),
            ("faults injected", tally.faults), ("requests", tally.asked),
            ("reached a replica", tally.answered),
        ):  # fmt: skip
            click.echo(f"{name:<32}{value:>9,}")
        click.echo("faults")
        for name, number in _by_frequency(tally.kinds).items():
            click.echo(f"  {name:<30}{number:>9,}")
    if tally.first_violation_seed is not None:
        raise TradewindError(
            f"{render.count(tally.violations, 'seed')} of {seeds:,} broke a promise; seed"
            f" {tally.first_violation_seed} first: {tally.first_violation}",
            hint="this is a bug in Tradewind",
        )


def _campaign(seeds: int, first: int, jobs: int, as_json: bool) -> None:
    from tradewind.base import clock
    from tradewind.sim import campaign

    began = clock.stopwatch()
    with render.bars(["seeds"], quiet=as_json) as bar:
        tally = campaign.run(
            seeds, first=first, jobs=jobs, progress=lambda done, total: bar("seeds", done, total)
        )
    a_second = seeds / (clock.stopwatch() - began)
    if as_json:
        render.print_json(
            {
                "seeds": tally.seeds,
                "violations": tally.violations,
                "first_violation_seed": tally.first_violation_seed,
                "seeds_per_s": round(a_second, 1),
                "crash_points": tally.crash_points,
                "faults_injected": tally.faults,
                "by_outcome": _by_frequency(tally.by_outcome),
                "by_fault": _by_frequency(tally.by_fault),
                "first_violation": tally.first_violation or None,
            }
        )
    else:
        _figures(tally, first, a_second)
    if tally.first_violation_seed is not None:
        raise TradewindError(
            f"{render.count(tally.violations, 'seed')} of {seeds:,} broke a promise; seed"
            f" {tally.first_violation_seed} first: {tally.first_violation}",
            hint=f"`tradewind sim faults --seed {tally.first_violation_seed} --story` tells how",
        )


def _figures(tally: Tally, first: int, a_second: float) -> None:
    last = first + tally.seeds - 1
    for name, value, more in (
        ("seeds", f"{tally.seeds:,}", f"{first} to {last}" if last > first else f"number {first}"),
        ("violations", f"{tally.violations:,}", ""),
        ("seeds a second", f"{a_second:,.0f}", ""),
        ("crash points", f"{tally.crash_points:,}", ""),
        ("faults injected", f"{tally.faults:,}", ""),
    ):
        click.echo(f"{name:<32}{value:>9}  {more}".rstrip())
    for title, counts in (("runs ended", tally.by_outcome), ("faults", tally.by_fault)):
        click.echo(title)
        for name, number in _by_frequency(counts).items():
            click.echo(f"  {name.replace('_', ' '):<30}{number:>9,}")


def _by_frequency(counts: dict[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _story(seed: int, as_json: bool) -> None:
    from msgspec import to_builtins

    from tradewind.cli.sim import simstory
    from tradewind.sim import campaign

    scenarios, outcome = campaign.told(seed)
    scenario, *others = scenarios
    lines = outcome.story[len(scenarios) :]
    if as_json:
        found: dict[str, Any] = {
            "seed": seed,
            "outcome": outcome.outcome or None,
            "violation": outcome.violation or None,
            "crash_points": outcome.crash_points,
            "faults_injected": outcome.faults,
            "by_fault": _by_frequency(outcome.kinds),
            "scenario": to_builtins(scenario),
            "second_scenario": to_builtins(others[0]) if others else None,
            "story": lines,
        }
        render.print_json(found)
    else:
        click.secho(f"seed {seed}", bold=True)
        for name, words in simstory.described(scenario, *others):
            render.paragraph(f"  {name:<12} {words}", indent=" " * 15)
        click.echo()
        for line in lines:
            click.echo(line.rstrip())
        click.echo()
        faults = render.count(outcome.faults, "fault")
        click.echo(f"outcome: {outcome.outcome or 'the run did not end'}, with {faults}")
    if outcome.violation:
        raise TradewindError(
            f"seed {seed} broke a promise: {outcome.violation}",
            hint="this is a bug in Tradewind; `tradewind sim faults --seed"
            f" {seed} --story` tells the same story again",
        )
    if not as_json:
        click.echo("nothing happened that never may")
