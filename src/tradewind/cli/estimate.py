"""`tradewind estimate`: will it fit, and how fast will it go."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.cli import render
from tradewind.errors import InvalidValue
from tradewind.model.shape import Shape, Work
from tradewind.units import parse_bandwidth, parse_count

if TYPE_CHECKING:
    from tradewind.estimate.constants import Constants

_HELP = {
    "compute": "a faster accelerator, a lower precision, or less recompute",
    "memory bandwidth": "fused or compiled kernels (--stack), or fewer bytes a value",
    "network": "less tensor parallelism, a larger micro-batch, or machines with RDMA",
    "kernel launches": "a larger micro-batch, or a compiled stack",
    "pipeline bubble": "more micro-batches a step (a larger --global-batch), or fewer stages",
}


@click.command("estimate")
@click.option(
    "--model", required=True, metavar="MODEL", help="A known name, or the path of a config.json."
)
@click.option(
    "--on",
    "hardware",
    required=True,
    metavar="ACCELERATORS",
    help="One machine's accelerators, e.g. 8xH100-SXM.",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many such machines.",
)
@click.option("--seq", default="4096", show_default=True, metavar="N", help="Tokens in a sequence.")
@click.option(
    "--global-batch",
    default="256",
    show_default=True,
    metavar="N",
    help="Sequences in an optimizer step.",
)
@click.option(
    "--micro-batch",
    type=click.IntRange(min=1),
    help="Sequences at once on a device. Default: the best.",
)
@click.option(
    "--precision",
    type=click.Choice(["bf16", "fp16", "fp8", "mxfp8", "fp32"]),
    default="bf16",
    show_default=True,
    help="Of the matrix work.",
)
@click.option(
    "--sharding",
    type=click.Choice(["none", "zero1", "zero2", "zero3"]),
    help="What is sharded over data-parallel ranks. Default: the best.",
)
@click.option("--tp", type=click.IntRange(min=1), help="Tensor-parallel degree. Default: the best.")
@click.option(
    "--pp", type=click.IntRange(min=1), help="Pipeline-parallel degree. Default: the best."
)
@click.option(
    "--cp",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Context-parallel degree.",
)
@click.option(
    "--ep", type=click.IntRange(min=1), default=1, show_default=True, help="Expert-parallel degree."
)
@click.option(
    "--activation-checkpointing",
    "recompute",
    type=click.Choice(["none", "selective", "full"]),
    help="What is recomputed. Default: the best.",
)
@click.option(
    "--stack",
    default="megatron",
    show_default=True,
    metavar="NAME",
    help="The software: megatron, nanotron, fsdp-eager, fsdp-compile, xla-gpu, xla-tpu.",
)
@click.option(
    "--network",
    metavar="RATE",
    help="Network of each accelerator, e.g. 400Gbps. Default: what such machines usually have.",
)
@click.option(
    "--measured",
    metavar="FILE",
    help="Your own measurements, CSV: they sharpen the estimate for your stack.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    model: str,
    hardware: str,
    nodes: int,
    seq: str,
    global_batch: str,
    precision: str,
    network: str | None,
    measured: str | None,
    as_json: bool,
    **layout: Any,
) -> None:
    """Will it fit, and how fast will it go: memory by item, step time by term, and an error band.

    What the layout leaves out is chosen: the fastest that fits.
    """
    from tradewind.estimate.question import Question, answer

    catalog = catalogs.load()
    match = catalog.names.resolve(hardware)
    accelerator = catalog.accelerators[catalog.names.one(hardware)]
    count = match.count or 1
    if count != int(count):
        raise InvalidValue(f"{hardware!r}: training needs whole accelerators")
    found = answer(
        Question(
            shape=_shape(model),
            accelerator=accelerator,
            per_node=int(count),
            nodes=nodes,
            sequence=parse_count(seq, noun="tokens"),
            global_batch=parse_count(global_batch, noun="sequences"),
            precision=precision,
            network_gbps=parse_bandwidth(network) / 1e9 if network else None,
            **layout,
        ),
        _sharpened(measured) if measured else None,
    )
    if as_json:
        render.print_json(asdict(found))
        return
    _show(found, accelerator.memory_gb, int(count) * nodes, accelerator.name)


def _sharpened(path: str) -> Constants:
    from tradewind.bench.measured import finders
    from tradewind.estimate import calibrate, constants, measurements

    own = measurements.read(measurements.rows_of(Path(path)), *finders())
    return calibrate.sharpen(own, constants.fitted())


def _shape(model: str) -> Shape:
    from tradewind.estimate import registry
    from tradewind.estimate.huggingface import from_config

    found = (
        from_config(model)
        if model.endswith(".json") or Path(model).exists()
        else registry.find(model)
    )
    if isinstance(found, Work):
        raise InvalidValue(f"{found.name} is no transformer; only those can be estimated so far")
    return found


def _show(found: Any, capacity_gb: float, devices: int, name: str) -> None:
    lay = found.layout
    click.secho(
        f"{devices}× {name}: dp {lay.dp}, tp {lay.tp}, pp {lay.pp}, cp {lay.cp}, {lay.sharding}, "
        f"micro-batch {lay.micro_batch} × {lay.accumulation}, recompute {lay.recompute}",
        bold=True,
    )
    if found.considered > 1:
        render.note(f"the best of {found.considered:,} layouts")
    peak = found.memory_gb["peak"]
    click.echo(f"\nmemory  {_bar(peak / capacity_gb)} {peak:.1f} of {capacity_gb:g} GB")
    for item, gigabytes in found.memory_gb.items():
        if item != "peak" and gigabytes >= 0.05:
            share = _bar(gigabytes / peak, 20)
            click.echo(f"  {item:<12} {gigabytes:8.1f} GB  {share}")
    if not found.fits:
        click.secho("does not fit", fg="red", bold=True)
    band = f"{found.low_tokens_per_s:,.0f} to {found.high_tokens_per_s:,.0f} in 4 of 5 cases"
    speed = f"{found.tokens_per_s:,.0f} tokens/s ({band}), {found.utilisation:.0%} of peak"
    click.echo(f"\nstep    {found.step_s:.3g} s, {speed}")
    for item, seconds in sorted(found.seconds.items(), key=lambda pair: -pair[1]):
        if seconds > 0.003 * found.step_s:
            share = _bar(seconds / found.step_s, 20)
            click.echo(f"  {item:<12} {1e3 * seconds:8.1f} ms  {share}")
    render.note(f"bound by {found.bound_by}; what would help: {_HELP[found.bound_by]}")


def _bar(share: float, width: int = 40) -> str:
    filled = max(0, min(width, round(share * width)))
    return "█" * filled + "░" * (width - filled)
