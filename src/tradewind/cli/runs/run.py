"""`tradewind run`: carry out a plan."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.runs import runoptions
from tradewind.providers import registry

if TYPE_CHECKING:
    from tradewind.api.rented import On
    from tradewind.api.wishes import Wish
    from tradewind.model.plan import Plan
    from tradewind.model.run import Spec
    from tradewind.store.base import Store

_SHOWN = 5


@click.command(
    "run",
    cls=Command,
    examples="""
    # plan it, ask, and carry it out on this computer
    tradewind run work.yaml --local
    # machines live for about a minute: does it survive?
    tradewind run work.yaml --local --chaos 60s --yes
    # a command, on exactly these machines
    tradewind run --gpus H100:8 'torchrun train.py' --on aws
    """,
)
@click.argument("file", metavar="WORKLOAD|PLAN|COMMAND", nargs=-1, required=True)
@click.option(
    "--local", is_flag=True, help="Run on this computer, at the prices of the plan's machines."
)
@click.option(
    "--on",
    "named",
    multiple=True,
    metavar="CLOUD",
    help="Rent machines there; with local among them, use this computer too. Repeatable, or with"
    " commas. Default: every cloud that is set up.",
)
@click.option(
    "--region",
    "regions",
    multiple=True,
    metavar="REGION",
    help="Rent only in this region (with --on).",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Number of machines: with --gpus, --type or --cpus, or with --local.",
)
@runoptions.of_the_job
@click.option(
    "--folder",
    metavar="DIR",
    help="Folder to send with the job. Default: that of the workload file, or this one.",
)
@click.option(
    "--project", default="", metavar="NAME", help="Project to charge, for cost reports and budgets."
)
@click.option(
    "--tag", "tags", multiple=True, metavar="NAME=VALUE", help="Tag for cost reports. Repeatable."
)
@click.option(
    "--sweep",
    "swept",
    multiple=True,
    metavar="NAME=V1,V2",
    help="One run for each value, in the job's environment (with --detach). Repeatable.",
)
@click.option(
    "--chaos", metavar="LIFE", help="Interrupt local spot machines about this often, e.g. 60s."
)
@click.option(
    "--trace",
    metavar="FILE[:SERIES,…]",
    help="Replay measured spot availability (with --local).",
)
@click.option(
    "--trace-speed", type=float, metavar="X", help="Speed-up factor for --trace. Default 1."
)
@click.option(
    "--not-before",
    metavar="WHEN",
    help="Launch nothing before then: 2026-11-20T22:00 (UTC), or 6h from now.",
)
@click.option(
    "--window",
    "windows",
    multiple=True,
    metavar="[DAYS] FROM-TO [ZONE]",
    help="Machines may be up only then: 22:00-06:00 (UTC), 'Sat,Sun 00:00-24:00',"
    " 'Mon-Fri 20:00-07:00 Europe/Berlin'. Repeatable.",
)
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("-d", "--detach", is_flag=True, help="Continue in the background.")
@click.option(
    "--attended",
    is_flag=True,
    help="With --detach: a controller looks in any case. Needed for a budget on clouds that bill a"
    " machine until a controller ends it.",
)
@click.option("--yes", is_flag=True, help="Do not ask before spending.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the run's id and how it ended.")
def command(
    file: tuple[str, ...],
    local: bool,
    named: tuple[str, ...],
    regions: tuple[str, ...],
    nodes: int | None,
    folder: str | None,
    project: str,
    tags: tuple[str, ...],
    swept: tuple[str, ...],
    chaos: str | None,
    trace: str | None,
    trace_speed: float | None,
    not_before: str | None,
    windows: tuple[str, ...],
    store_url: str | None,
    detach: bool,
    attended: bool,
    yes: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Run a workload: rent machines, survive interruptions, finish, account for it.

    The plan is made from a workload file, or was saved by `tradewind plan --out`; options stand
    over the file. Or it is a COMMAND on exactly the machines that --gpus, --type or --cpus name,
    where they are cheapest. Ctrl-C leaves the run to a process in the background, and says how to
    come back."""
    on_clouds, local = _where(named, local, regions)
    _check_rehearsal(local, chaos, trace, trace_speed)
    if swept and not detach:
        raise click.UsageError("--sweep makes several runs: add --detach")
    from tradewind import store as stores
    from tradewind.api import attended as unended
    from tradewind.api import clouds, rented, scheduled, submit, sweeps, wishes
    from tradewind.base import clock
    from tradewind.cli.runs import crontab, follow

    when = None
    if windows or not_before is not None:
        when = scheduled.schedule(windows, not_before, clock.now())
    tagged, combinations = _tags(tags), sweeps.combinations(swept)
    for name in on_clouds:
        if name != registry.LOCAL:
            clouds.check_library(registry.rentable(name))
    asked = runoptions.asked(file, nodes, given, local)
    opened = stores.open(store_url)
    on = None if local else rented.On(opened, on_clouds, regions)
    with render.busy("planning"):
        wanted = submit.wanted(asked.what, on, when)
    if wanted.workload.machines is not None:
        nodes = None  # they are named already, here too
    speed = 1.0 if trace_speed is None else trace_speed
    spec = submit.spec_of(
        wanted, local=local, on=on, nodes=nodes, project=project, tags=tagged, speed=speed,
        when=when,
    )  # fmt: skip
    spec, otherwise = submit.as_begun(spec)
    if detach:
        unended.check(spec, attended=attended)
    wish = _wish(spec, chaos, trace)
    if not as_json:
        _show(wanted.plan, spec)
        if otherwise:
            render.paragraph(f"  begins    {otherwise}", indent=" " * 12)
        if isinstance(wish, wishes.ChaosWish) and wish.everywhere:
            click.echo("  chaos     no spot among them: machines on demand are interrupted too")
        if on is not None:
            _may_cost(wanted.plan, spec)
            if not attended:
                crontab.asleep(opened.url)
            _left_out(on)
    else:
        for words in filter(None, (unended.words(spec), runoptions.ends(spec))):
            click.echo(words, err=True)
    where = Path(folder) if folder else asked.folder
    _not_sent(where, spec, as_json)
    every = [sweeps.of(spec, each) for each in combinations]
    if swept and not as_json:
        _show_sweep(every)
    if not yes:
        _ask()
    if swept:
        _sweep(opened, every, where, wish, as_json)
        return
    run_id = submit.submit(opened, spec, where, wish)
    follow.carry_out(opened, run_id, detach=detach, as_json=as_json)


def _where(
    named: Sequence[str], local: bool, regions: Sequence[str]
) -> tuple[tuple[str, ...], bool]:
    """The clouds to rent from, and whether this computer rehearses the plan instead of them."""
    on_clouds = registry.chosen(named)
    if on_clouds == (registry.LOCAL,):
        on_clouds, local = (), True
    if local and on_clouds:
        raise click.UsageError(
            "--local rehearses all of the plan on this computer, and excludes --on;"
            f" --on {','.join(dict.fromkeys((*on_clouds, registry.LOCAL)))} uses this computer too"
        )
    if regions and local:
        raise click.UsageError("--region goes with --on")
    return on_clouds, local


def _check_rehearsal(
    local: bool, chaos: str | None, trace: str | None, speed: float | None
) -> None:
    """Options that shape a rehearsal mean nothing without one."""
    if not local and (chaos or trace):
        raise click.UsageError("--chaos and --trace go with --local")
    if chaos and trace:
        raise click.UsageError("--chaos and --trace exclude each other")
    if speed is not None and not trace:
        raise click.UsageError("--trace-speed goes with --trace")


def _show_sweep(every: Sequence[Spec]) -> None:
    from tradewind.base.units import format_money

    first, cost = every[0], ""
    if first.predicted_cost is not None:
        cost = f": about {format_money(first.predicted_cost * len(every), digits=2)} in all"
    if first.budget is not None:
        cost += f"; the budget of {format_money(first.budget, digits=2)} is for each"
    click.echo(f"  sweep     {render.count(len(every), 'run')}{cost}")


def _sweep(
    store: Store, specs: Sequence[Spec], folder: Path, wish: Wish | None, as_json: bool
) -> None:
    """Each is told as soon as it is submitted: whatever comes then, it is there."""
    from tradewind.api import follow, submit

    for spec in specs:
        run_id = submit.submit(store, spec, folder, wish)
        follow.leave(store, run_id)
        if as_json:
            render.print_line({"run": run_id, "store": store.url, "tags": spec.tags})
        else:
            click.echo(f"{run_id}  {' '.join(f'{k}={v}' for k, v in spec.tags.items())}")
    if not as_json:
        click.echo(f"{render.count(len(specs), 'run')} in the background: tradewind ps")


def _wish(spec: Spec, chaos: str | None, trace: str | None) -> Wish | None:
    from tradewind.api import wishes
    from tradewind.base.units import parse_duration

    if chaos is not None:
        return wishes.chaos(parse_duration(chaos), spec)
    return None if trace is None else wishes.traced(trace, spec)


def _tags(tags: Sequence[str]) -> dict[str, str]:
    from tradewind.model import sensitive

    found = {}
    for text in tags:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise click.UsageError(f"--tag {text}: it is NAME=VALUE")
        if name in found:
            raise click.UsageError(f"--tag {name} is there twice")
        if seen := sensitive.variable(name, value):
            raise click.UsageError(
                f"--tag {name} looks like {seen}, and reports and bills show it to all"
            )
        found[name] = value
    return found


def _show(best: Plan, spec: Spec) -> None:
    from tradewind.base.units import format_money
    from tradewind.cli.plan import plantable

    click.echo(plantable.in_words(best))
    if spec.untold:
        render.paragraph("  time      nobody has said how long it takes", indent=" " * 12)
        render.paragraph(f"  stops     {runoptions.stops(spec)}", indent=" " * 12)
    first, more = spec.ways[0], len(spec.ways) - 1
    others = f", and {render.count(more, 'other option')}" if more else ""
    click.echo(f"  machines  {first.words}{others}")
    if words := _queue(spec):
        render.paragraph(f"  queue     {words}", indent=" " * 12)
    if first.units != best.nodes and spec.predicted_cost is not None:
        money = format_money(spec.predicted_cost, digits=2)
        click.echo(f"  cost      {money}, since the plan has {render.count(best.nodes, 'machine')}")
    click.echo(f"  command   {spec.shown_command}")
    if spec.schedule:
        from tradewind.api import scheduled
        from tradewind.base import clock

        told = scheduled.words(spec, clock.now().timestamp())
        render.paragraph(f"  when      {told}", indent=" " * 12)
    for name, where in spec.job.get("secrets", {}).items():
        click.echo(f"  secret    {name} from {where}")


def _not_sent(folder: Path, spec: Spec, as_json: bool) -> None:
    """Before anything is spent: a job that misses its data fails on machines that are paid."""
    from tradewind.api import submit

    found = submit.not_sent(folder, spec.job.get("include"), spec.job.get("outputs"))
    if found is None:
        return
    names, advice = found
    if as_json:
        click.echo(f"not sent, because git ignores them: {names}; {advice}", err=True)
        return
    render.paragraph(f"  not sent  {names}: git ignores them", indent=" " * 12)
    click.echo(f"            {advice}")


def _may_cost(best: Plan, spec: Spec) -> None:
    """On rented machines: at the prices of now, and at worst."""
    from tradewind.api import attended
    from tradewind.base.units import format_duration, format_money
    from tradewind.lifecycle.money import hard_stop_s

    first = spec.ways[0]
    price = f"{format_money(first.price_all, digits=2)} an hour now, with disks and addresses"
    if spec.predicted_cost is not None and spec.predicted_cost != best.cost:
        price += f": about {format_money(spec.predicted_cost, digits=2)} in all"
    click.echo(f"  price     {price}")
    for words in _moving(spec):
        render.paragraph(f"  moving    {words}", indent=" " * 12)
    if spec.untold and spec.budget is None:
        return  # said already, with when it stops
    if spec.budget is not None:
        most = f"{format_money(spec.budget, digits=2)}, its budget"
        if unended := attended.words(spec):
            most += f", while a controller looks: {unended}"
    else:
        needed_s = first.start_s + spec.work / first.rate
        stop_s = hard_stop_s(first, None, spec.max_duration_s, needed_s)
        hung = format_money(first.price_all * stop_s // 3600, digits=2)
        after = format_duration(stop_s, parts=2)
        ended = f"they end after {after}"
        if first.facts.ends == "never":
            ended = f"a controller ends them after {after}, and nothing else does"
        most = f"{hung} for machines that hang: {ended}; limits.budget limits all"
    render.paragraph(f"  at most   {most}", indent=" " * 12)


def _queue(spec: Spec) -> str:
    """What no plan counts on, and a run may yet wait for."""
    from tradewind.base.units import format_money

    waited = [way for way in spec.ways if way.facts.queues]
    if not waited or len(waited) == len(spec.ways):
        return ""
    first, more = min(waited, key=lambda way: way.price_all), len(waited) - 1
    price = format_money(first.price_all, digits=2)
    others = f", and {more} more" if more else ""
    return (
        f"{first.words} for {price} an hour{others}: a run stands in it where that is cheaper and"
        " there is time"
    )


def _moving(spec: Spec) -> list[str]:
    """What it costs to bring the work to where the store is not, by region."""
    from tradewind.api import moving

    found: dict[str, str] = {}
    for way in spec.ways:
        if words := moving.in_words(way):
            found.setdefault(f"{way.provider} {way.region}".strip(), words)
    shown = [f"{place}: {words}" for place, words in list(found.items())[:_SHOWN]]
    more = len(found) - len(shown)
    return shown + ([f"and to {render.count(more, 'other region')}"] if more else [])


def _left_out(on: On) -> None:
    for words in on.rejected[:_SHOWN]:
        render.paragraph(f"  not       {words}", indent=" " * 12)
    if len(on.rejected) > _SHOWN:
        click.echo(f"            and {render.count(len(on.rejected) - _SHOWN, 'other option')}")
    for words in on.warnings:
        render.note(words)


def _ask() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("not a terminal, cannot ask: add --yes")
    if not click.confirm("Start?"):
        raise click.exceptions.Exit(0)
