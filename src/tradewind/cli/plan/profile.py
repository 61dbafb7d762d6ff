"""`tradewind profile`: what a model of the user's own costs, counted on fake tensors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import NoAccess
from tradewind.base.units import format_bytes, format_count
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.model.profile import Layer, Profile

_SHOWN = 8  # kinds of layers


@click.command(
    "profile",
    cls=Command,
    examples="""
    # the function `make` in model.py, in this folder
    tradewind profile model:make --out model.json
    # say what goes in, and then plan with it
    tradewind profile model:make \\
        --input 'int64[8,1024]:vocab=50257' --dtype bf16
    """,
)
@click.argument("factory", metavar="MODULE:FACTORY")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="SPEC",
    help="An input, like 'int64[8,1024]:vocab=50257' or 'x=float32[8,3,224,224]'. Repeatable.",
)
@click.option(
    "--batch",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help="Run batches of N, 2N and 3N instead of the inputs' own.",
)
@click.option(
    "--dtype",
    type=click.Choice(["bf16", "fp16", "fp32"]),
    help="Convert parameters and floating inputs. Default: as the factory made them.",
)
@click.option("--forward-only", is_flag=True, help="Inference: no backward, no dropout.")
@click.option("--out", metavar="FILE", help="Write the profile into FILE, as JSON.")
@click.option("--json", "as_json", is_flag=True, help="Print the profile as JSON.")
def command(
    factory: str,
    inputs: tuple[str, ...],
    batch: int | None,
    dtype: str | None,
    forward_only: bool,
    out: str | None,
    as_json: bool,
) -> None:
    """Count what your own PyTorch model costs: parameters, FLOPs, bytes, activation memory.

    FACTORY is a function without arguments (or a class) in MODULE, which is looked for in the
    current folder first. It returns a torch.nn.Module, or (module, example inputs), or both with a
    loss function. The model runs on fake tensors: it needs no GPU and no memory, however large.
    """
    from tradewind.torch.profiling.inputs import parse_input
    from tradewind.torch.profiling.profile import profile, require_torch
    from tradewind.torch.profiling.theirs import load

    folder = Path.cwd()
    specs = [parse_input(text) for text in inputs]
    with render.busy(f"profiling {factory}"), redirect_stdout(sys.stderr):
        require_torch()
        profiled = profile(
            load(factory, folder),
            inputs=specs,
            batch=batch,
            dtype=dtype,
            forward_only=forward_only,
            name=factory,
            folder=folder,
        )
    if out is not None:
        _write(profiled, Path(out))
    if as_json:
        render.print_json(profiled.document())
    else:
        _show(profiled)
    for text in profiled.warnings:
        render.remark(f"warning: {text}")
    if out is not None:
        render.remark(f"written: {out}")


def _write(profiled: Profile, path: Path) -> None:
    from tradewind.catalog.files import replace

    try:
        replace(path, profiled.to_json().encode())
    except NoAccess as error:
        raise NoAccess(error.message, hint="check the folder and its permissions") from None


def _show(p: Profile) -> None:
    trainable = format_count(p.trainable_parameters, digits=4)
    some = f", {trainable} of them trainable" if p.trainable_parameters < p.parameters else ""
    click.echo(f"{p.name} on {p.input}")
    click.echo(f"{format_count(p.parameters, digits=4)} {p.dtype} parameters{some}\n")
    # What is nothing is left out.
    lines = [
        ("parameters", ["", _size(p.parameter_bytes)]),
        ("buffers", ["", _size(p.buffers_bytes)]),
        ("forward", [_flops(p.forward_flops_per_sample), ""]),
        ("backward", [_flops(p.backward_flops_per_sample), ""]),
        ("  of it matmul", [_share(p.matmul_flops_per_sample, p), ""]),
        ("  attention", [_share(p.attention_flops_per_sample, p), ""]),
        ("  convolution", [_share(p.convolution_flops_per_sample, p), ""]),
        ("other FLOPs", ["", _flops(p.flops_fixed)]),
        ("bytes moved", [_size(p.moved_bytes_per_sample), _size(p.moved_bytes_fixed)]),
        ("activations kept", [_size(p.saved_bytes_per_sample), _size(p.saved_bytes_fixed)]),
        ("peak memory", [_size(p.peak_bytes_per_sample), _size(p.peak_bytes_fixed)]),
    ]
    render.facts(["per sample", "fixed"], lines)
    groups = _grouped(p.layers)
    groups.sort(key=lambda g: (-sum(x.forward_flops for x in g), -sum(x.parameters for x in g)))
    click.echo()
    columns = [
        render.Column("largest layers", grow=True),
        render.Column("kind", grow=True),
        render.Column("parameters", right=True),
        render.Column("forward", right=True),
        render.Column("of all", right=True),
        render.Column("kept", right=True, keep=4),
    ]
    render.table(columns, [_row(group, p) for group in groups[:_SHOWN]])
    if len(groups) > _SHOWN:
        left = sum(len(group) for group in groups[_SHOWN:])
        render.note(f"and {render.count(left, 'smaller layer')}; --json lists all")


def _grouped(layers: Sequence[Layer]) -> list[list[Layer]]:
    """Neighbours that are alike, as the blocks of a transformer are, make one line."""

    def alike(layer: Layer) -> tuple[Any, ...]:
        return (
            layer.name.rpartition(".")[0],
            layer.kind,
            layer.parameters,
            layer.forward_flops,
            layer.saved_bytes,
        )

    return [list(group) for _, group in groupby(layers, alike)]


def _row(group: Sequence[Layer], p: Profile) -> list[str]:
    first, last, times = group[0], group[-1], len(group)
    flops, total = times * first.forward_flops, p.forward_flops_per_sample
    return [
        first.name if times == 1 else f"{first.name} … {last.name.rpartition('.')[2]}",
        first.kind if times == 1 else f"{times} × {first.kind}",
        format_count(times * first.parameters, digits=4) if first.parameters else "",
        _flops(flops),
        f"{flops / total:.1%}" if flops and total else "",
        _size(times * first.saved_bytes),
    ]


def _share(flops: int, p: Profile) -> str:
    return f"{flops / p.flops_per_sample:.1%}" if flops else ""


def _flops(number: int) -> str:
    """`1.15 PFLOP`: four digits at most, empty for none."""
    if not number:
        return ""
    value, unit = float(number), ""
    for bigger in ("k", "M", "G", "T", "P", "E"):
        if value < 999.95:
            break
        value, unit = value / 1000, bigger
    return f"{value:.4g} {unit}FLOP"


def _size(number: int) -> str:
    return format_bytes(number, digits=4) if number else ""
