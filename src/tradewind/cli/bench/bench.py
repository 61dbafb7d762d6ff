"""`tradewind bench …`: our claims, measured on your machine."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import NotFound
from tradewind.cli import render
from tradewind.cli.base import Group
from tradewind.cli.bench import (
    chaos,
    checkpoint,
    front,
    inference,
    loader,
    serve_steps,
    telemetry,
    training,
)
from tradewind.cli.bench.spot import spot

if TYPE_CHECKING:
    from tradewind.providers.base import Provider


@click.group(
    "bench",
    cls=Group,
    examples="""
    # does the command line start fast?
    tradewind bench startup
    """,
)
def command() -> None:
    """Measure our claims on your machine. docs/benchmarks.md has the figures we got."""


_repeats = click.option(
    "--repeat", type=click.IntRange(1, 1000), default=15, show_default=True, help="How often."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@command.command(
    "startup",
    examples="""
    tradewind bench startup --peer 'git --version'
    """,
)
@click.option("--peer", multiple=True, metavar="COMMAND", help="Time this too, e.g. 'sky --help'.")
@_repeats
@_json
def startup(peer: tuple[str, ...], repeat: int, as_json: bool) -> None:
    """How long the command line takes to start, against `python -c pass` in the same run."""
    from tradewind.bench import startup as bench

    with render.bars(["startup"], quiet=as_json) as bar:
        result = bench.measure(repeat, peer, lambda done, total: bar("startup", done, total))
    if as_json:
        render.print_json(
            {
                "python_s": round(result.python_s, 5),
                "help_ratio": round(result.help_ratio, 2),
                "offers_ratio": round(result.offers_ratio, 2),
                "help_s": round(result.help_s, 5),
                "offers_s": round(result.offers_s, 5),
                "peers_s": {name: round(taken, 5) for name, taken in result.peers_s.items()},
                "repeats": result.repeats,
            }
        )
        return
    width = max(16, *(len(name) for name in result.peers_s), 0)
    click.echo(f"{'python -c pass':<{width}} {1e3 * result.python_s:8.1f} ms")
    for name, seconds, ratio, limit in (
        ("tradewind --help", result.help_s, result.help_ratio, bench.HELP_LIMIT),
        ("tradewind offers", result.offers_s, result.offers_ratio, bench.OFFERS_LIMIT),
    ):
        verdict = "within" if ratio <= limit else "OVER"
        figures = f"{1e3 * seconds:8.1f} ms {ratio:6.1f}×"
        click.echo(f"{name:<{width}} {figures}  {verdict} {limit:g}×")
    for name, seconds in result.peers_s.items():
        ratio = seconds / result.python_s
        click.echo(f"{name:<{width}} {1e3 * seconds:8.1f} ms {ratio:6.1f}×")


@command.command(
    "catalog",
    examples="""
    tradewind bench catalog
    """,
)
@_repeats
@_json
def catalog(repeat: int, as_json: bool) -> None:
    """How long it takes to load the catalog and to search it."""
    from tradewind.bench import catalog as bench

    with render.busy("searching the catalog"):
        result = bench.measure(repeat)
    if as_json:
        render.print_json(
            {k: round(v, 3) if isinstance(v, float) else v for k, v in asdict(result).items()}
        )
        return
    click.echo(f"{result.offers:,} offers")
    for name, taken, limit in (
        ("load", result.load_ms, bench.LOAD_LIMIT_MS),
        ("search, first time", result.first_filter_ms, bench.FILTER_LIMIT_MS),
        ("search for 8×H100 spot in eu-*", result.filter_ms, bench.FILTER_LIMIT_MS),
        ("sort all offers", result.filter_all_ms, bench.FILTER_LIMIT_MS),
    ):
        verdict = "within" if taken <= limit else "OVER"
        click.echo(f"{name:<32}{taken:7.2f} ms  {verdict} {limit:g} ms")


@command.command(
    "plan",
    examples="""
    tradewind bench plan --repeat 5
    """,
)
@_repeats
@click.option(
    "--asks",
    type=click.IntRange(min=0),
    default=500,
    show_default=True,
    help="Random asks whose plans are held against an exhaustive search; 0 for none.",
)
@_json
def plan(repeat: int, asks: int, as_json: bool) -> None:
    """How long it takes to plan, in a running program and as a command from nothing; and by how
    much plans are dearer than the least that a search without any shortcut finds."""
    from tradewind.bench import plan as bench
    from tradewind.bench import regret

    with render.busy("planning"):
        found = bench.measure(repeat)
    if asks:
        with render.bars(["asks"], quiet=as_json) as bar:
            found |= regret.measure(asks, lambda done: bar("asks", done, asks))
    _figures(found, as_json)


@command.command(
    "serve-plan",
    examples="""
    tradewind bench serve-plan --repeat 5
    """,
)
@_repeats
@_json
def serve_plan(repeat: int, as_json: bool) -> None:
    """How long a plan of serving takes, over the whole catalog and a week of hours."""
    from tradewind.bench import serve_plan as bench

    with render.busy("planning"):
        found = bench.measure(repeat)
    _figures(found, as_json)


@command.command(
    "journal",
    examples="""
    tradewind bench journal --repeat 3
    """,
)
@_repeats
@_json
def journal(repeat: int, as_json: bool) -> None:
    """How long it takes to open a journal of 100,000 events from a local folder."""
    from tradewind.bench import journal as bench

    with render.busy("reading journals"):
        found = bench.measure(repeat)
    _figures(found, as_json)


@command.command(
    "controller",
    examples="""
    tradewind bench controller --runs 1000
    # a pass over the machines that a cloud really lists
    tradewind bench controller --provider kubernetes
    """,
)
@click.option(
    "--runs",
    type=click.IntRange(1, 1_000_000),
    default=10_000,
    show_default=True,
    metavar="N",
    help="How many, at most.",
)
@click.option(
    "--provider",
    metavar="CLOUD",
    help="List the machines that this cloud has for the store, in the place of made-up ones.",
)
@click.option("--store", "store_url", metavar="URL", help="With --provider: whose machines.")
@_json
def controller(runs: int, provider: str | None, store_url: str | None, as_json: bool) -> None:
    """How long a controller takes to look after many idle runs, 20 ms away from the store."""
    from tradewind.bench import controller as bench

    real = _provider(provider, store_url) if provider or store_url else None
    with render.busy("controlling runs"):
        found = bench.measure(runs, found=real)
    runs = found["runs"]
    if as_json:
        render.print_json(found)
        return
    click.echo(f"{render.count(runs, 'idle run')}, {found['latency_ms']:g} ms a request,", nl=False)
    click.echo(f" {found['workers']} threads")
    for name, value, unit, limit in (
        ("a pass", found["pass_s"], "s", bench.PASS_LIMIT_S),
        ("requests for each run", found["requests_per_run"], "", bench.REQUESTS_LIMIT),
        ("memory at its peak", found["peak_mb"], "MB", bench.PEAK_LIMIT_MB),
    ):
        verdict = "within" if value <= limit else "OVER"
        click.echo(f"{name:<32}{value:8.2f} {unit:<2}  {verdict} {limit:g} {unit}".rstrip())
    if "list_s" in found:
        click.echo(f"{f'  {provider} lists its machines in':<32}{found['list_s']:8.2f} s")
    click.echo(f"{'requests for the pass itself':<32}{found['look_requests']:8d}")
    click.echo(f"{'the first pass, reads journals':<32}{found['cold_pass_s']:8.2f} s")
    click.echo(f"{'  its requests for each run':<32}{found['cold_requests_per_run']:8.2f}")


def _provider(name: str | None, store_url: str | None) -> Provider:
    """As controllers of that store open it."""
    from tradewind import store as stores
    from tradewind.api import fleet

    if not name or not store_url:
        raise click.UsageError("--provider and --store go together: whose machines are they?")
    opened = fleet.providers(stores.open(store_url))
    if name not in opened:
        raise NotFound(
            f"{store_url} has nothing set up at {name}", hint=f"tradewind setup {name} --store URL"
        )
    return opened[name]


_data = click.option("--data", metavar="FILE", help="Measurements, CSV or CSV.gz.")
_one_source_out = click.option(
    "--leave-one-source-out", is_flag=True, help="Fit without each source in turn, and score it."
)


def _one_of(**asked: bool) -> str | None:
    """What is to be left out, if anything."""
    chosen = [name for name, wanted in asked.items() if wanted]
    if len(chosen) > 1:
        raise click.UsageError(f"leave {' or '.join(chosen)} out, not both")
    return chosen[0] if chosen else None


@command.command(
    "estimate",
    examples="""
    # as for what nobody has measured yet: the strictest judge
    tradewind bench estimate --data data.csv.gz \\
      --leave-blocks-out
    """,
)
@click.option(
    "--data", metavar="FILE", multiple=True, help="Measurements, CSV or CSV.gz. Repeatable."
)
@_one_source_out
@click.option(
    "--leave-models-out",
    is_flag=True,
    help="Refit without each dozenth of the models, and score their rows.",
)
@click.option(
    "--leave-blocks-out",
    is_flag=True,
    help="Refit without whole blocks, and score them: a source on a generation of accelerators, "
    "later releases, networks between machines.",
)
@click.option("--speed", is_flag=True, help="Estimates a second instead.")
@_json
def estimate(
    data: tuple[str, ...],
    leave_one_source_out: bool,
    leave_models_out: bool,
    leave_blocks_out: bool,
    speed: bool,
    as_json: bool,
) -> None:
    """How near the estimates of speed come to measured training runs."""
    from tradewind.bench import estimate as bench

    left = _one_of(sources=leave_one_source_out, models=leave_models_out, blocks=leave_blocks_out)
    if speed:
        found = bench.speed()
    else:
        paths = [_needed(name) for name in data or ("",)]
        with render.busy("estimating"):
            found = bench.measure(paths, leave_out=left)
    _figures(found, as_json)


@command.command(
    "memory",
    examples="""
    # as for what nobody has tried yet
    tradewind bench memory --data data.csv.gz \\
      --leave-blocks-out
    """,
)
@_data
@_one_source_out
@click.option(
    "--leave-blocks-out",
    is_flag=True,
    help="Refit without a source on a generation of accelerators in turn, and score it.",
)
@_json
def memory(
    data: str | None, leave_one_source_out: bool, leave_blocks_out: bool, as_json: bool
) -> None:
    """How often the estimator is right about what fits, and how near its peaks are."""
    from tradewind.bench import memory as bench

    left = _one_of(sources=leave_one_source_out, blocks=leave_blocks_out)
    path = _needed(data)
    with render.busy("estimating"):
        found = bench.measure(path, leave_out=left)
    _figures(found, as_json)


@command.command(
    "other-models",
    examples="""
    # as for an accelerator that nobody has measured yet
    tradewind bench other-models --data data.csv.gz \\
      --leave-accelerators-out
    """,
)
@_data
@_one_source_out
@click.option(
    "--leave-accelerators-out",
    is_flag=True,
    help="Fit without each accelerator in turn, and score it.",
)
@_json
def other_models(
    data: str | None, leave_one_source_out: bool, leave_accelerators_out: bool, as_json: bool
) -> None:
    """How near the estimates come for convolutional, speech and recommender models."""
    from tradewind.bench import samples as bench

    left = _one_of(sources=leave_one_source_out, accelerators=leave_accelerators_out)
    path = _needed(data)
    with render.busy("estimating"):
        found = bench.measure(path, leave_out=left)
    _figures(found, as_json)


@command.command(
    "gpu-steps",
    examples="""
    tradewind bench gpu-steps
    # for docs/measurements.md, to be added to ours
    tradewind bench gpu-steps --share steps.csv
    """,
)
@click.option("--on", metavar="ACCELERATOR", help="What the GPU is. Default: what its driver says.")
@click.option("--share", metavar="FILE", help="Write the measured steps as CSV, with provenance.")
@click.option("--tiny", is_flag=True, help="A trial: a few tiny steps, on the CPU without a GPU.")
@_json
def gpu_steps(on: str | None, share: str | None, tiny: bool, as_json: bool) -> None:
    """Real training steps on this machine's GPU against their estimates."""
    from tradewind import catalog
    from tradewind.bench import gpu_shapes, sharing
    from tradewind.bench import gpu_steps as bench

    on_gpu = bench.where() == "cuda"
    driver_says = bench.device_name() if on_gpu or not tiny else "CPU"
    known = catalog.load(account=False)
    accelerator = known.variant(on or driver_says)[0] if on_gpu else None
    found, rows = [], []
    for step in bench.measure(gpu_shapes.TINY, 2) if tiny else bench.measure():
        shown = bench.compared(step, accelerator) if accelerator else asdict(step)
        found.append(shown)
        rows.append(sharing.row(step, accelerator, sharing.made_with(driver_says)))
        if share:  # what was measured so far is not lost if the rest fails
            sharing.write(Path(share), rows)
        if not as_json:
            click.echo("  ".join(f"{key} {value}" for key, value in shown.items()))
    name = accelerator.name if accelerator else "CPU"
    if as_json:
        render.print_json({"accelerator": name, "steps": found})
    elif share:
        click.echo(
            f"{render.count(len(rows), 'row')} → {share}; docs/measurements.md says where to"
        )


@command.command(
    "recovery",
    examples="""
    tradewind bench recovery --repeat 3
    """,
)
@click.option(
    "--repeat", type=click.IntRange(1, 1000), default=7, show_default=True, help="How often."
)
@_json
def recovery(repeat: int, as_json: bool) -> None:
    """How soon a job that was killed gets on, against torchrun in the same run. Needs torch."""
    from tradewind.bench import recovery as bench

    with render.bars(["killing"], quiet=as_json) as bar:
        found = bench.measure(repeat, lambda done, total: bar("killing", done, total))
    if as_json:
        render.print_json(found)
        return
    click.echo(f"from SIGKILL to the next new step, {render.count(repeat, 'time')} each")
    click.echo(f"{'torchrun, its worker killed':<32}{found['torchrun_s']:8.2f} s")
    ratio, excess_s = found["job_ratio"], found["machine_excess_s"]
    for name, value, verdict in (
        ("tradewind, its job killed", "job_killed_s", _by(ratio, bench.RATIO_LIMIT, "×")),
        (
            "  its machine killed",
            "machine_killed_s",
            _by(excess_s, bench.EXCESS_LIMIT_S, " s more"),
        ),
    ):
        click.echo(f"{name:<32}{found[value]:8.2f} s  {verdict}")


def _by(value: float, limit: float, unit: str) -> str:
    return f"{value:6.2f}{unit}  {'within' if value <= limit else 'OVER'} {limit:g}{unit}"


def _needed(data: str | None) -> Path:
    if not data:
        raise click.UsageError("--data FILE is missing: what to compare with")
    return Path(data)


def _figures(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        render.print_json(found)
        return
    by_source = found.pop("by_source", {})
    for name, value in found.items():
        if not isinstance(value, dict):
            click.echo(f"{name:<20} {value}")
    for reason, rows in found.get("unsupported_reasons", {}).items():
        click.echo(f"  unsupported {rows:>6}  {reason}")
    for name, figures in {**found.get("by_judge", {}), **by_source}.items():
        click.echo(f"  {name:<28} " + "  ".join(f"{k} {v}" for k, v in figures.items()))


for each in (chaos, checkpoint, front, inference, loader, serve_steps, telemetry, training):
    command.add_command(each.command)
command.add_command(spot)
