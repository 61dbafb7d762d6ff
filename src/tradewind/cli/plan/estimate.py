"""`tradewind estimate`: will it fit, and how fast will it go."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.base.errors import InvalidValue
from tradewind.base.units import format_count, parse_bandwidth, parse_count
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.plan import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tradewind.estimate.advice import Advice
    from tradewind.estimate.answer import Answer
    from tradewind.estimate.band import Evidence
    from tradewind.estimate.constants import Constants

# Where no single change that was tried helps.
_HELP = {
    "compute": "a faster accelerator",
    "memory bandwidth": "fewer bytes a value, or an accelerator with faster memory",
    "network": "machines with a faster network, or a larger global batch",
    "kernel launches": "more work at once: a larger micro-batch",
    "pipeline bubble": "more micro-batches a step: a larger --global-batch",
}
# Of models that are known by what a sample costs.
_WORK_TERMS = {"matrix": "arithmetic", "elementwise": "bytes moved"}
_SUMS = ("peak", "allocated", "reserved", "total")  # of the items
_DEGREE = click.IntRange(min=1)


@click.command(
    "estimate",
    cls=Command,
    examples="""
    # does an 8B model fit on one machine, how fast is it?
    tradewind estimate --model llama-3.1-8b --on 8xH100-SXM
    # adapters only, on a smaller one
    tradewind estimate --model llama-3.1-8b --on a10g \\
        --qlora 16 --seq 2048 --global-batch 16
    # serving: memory, throughput, latency
    tradewind estimate --serve --model llama-3.1-8b \\
        --on l40s --concurrency 32
    """,
)
@click.option(
    "--model",
    required=True,
    metavar="MODEL",
    help="A known name, a config.json, a YAML file of a shape, or a profile.",
)
@click.option(
    "--on",
    "hardware",
    required=True,
    metavar="ACCELERATORS",
    help="One machine's accelerators, e.g. 8xH100-SXM.",
)
@click.option("--nodes", type=_DEGREE, default=1, show_default=True, help="How many such machines.")
@click.option(
    "--seq",
    metavar="N",
    help="Tokens in a sequence. Default: 4096, or the model's longest if that is shorter.",
)
@click.option(
    "--global-batch",
    metavar="N",
    help="Sequences (images, samples) in an optimizer step. Default: 256, or a little more.",
)
@click.option(
    "--micro-batch", type=_DEGREE, help="Sequences at once on a device. Default: the best."
)
@click.option(
    "--precision",
    type=click.Choice(["bf16", "fp16", "fp8", "mxfp8", "fp32", "pure-bf16"]),
    help="Of the matrix work; pure-bf16: of weights, gradients and optimizer too. Default: bf16, "
    "or what the chip has.",
)
@click.option(
    "--optimizer",
    type=click.Choice(["adamw", "adamw-8bit", "sgd", "sgd-momentum", "adafactor", "lion", "muon"]),
    default="adamw",
    show_default=True,
    help="What is kept of every trained weight.",
)
@click.option(
    "--lora",
    type=_DEGREE,
    metavar="RANK",
    help="Train adapters of that rank only; with --serve, the rank of --adapters.",
)
@click.option(
    "--qlora", type=_DEGREE, metavar="RANK", help="The same, with the frozen weights in 4 bits."
)
@click.option("--no-flash-attention", is_flag=True, help="Attention without fused kernels.")
@click.option(
    "--sharding",
    type=click.Choice(["none", "zero1", "zero2", "zero3", "hybrid", "ddp", "fsdp", "hsdp"]),
    help="What is sharded over data-parallel ranks. Default: the best.",
)
@click.option("--tp", type=_DEGREE, help="Tensor-parallel degree. Default: the best.")
@click.option("--pp", type=_DEGREE, help="Pipeline-parallel degree. Default: the best.")
@click.option(
    "--vp", type=_DEGREE, default=1, show_default=True, help="Pipeline chunks on each device."
)
@click.option("--cp", type=_DEGREE, help="Context-parallel degree. Default: the best.")
@click.option("--ep", type=_DEGREE, help="Expert-parallel degree. Default: the best.")
@click.option(
    "--activation-checkpointing",
    "recompute",
    type=click.Choice(["none", "selective", "full"]),
    help="What is recomputed. Default: the best.",
)
@click.option(
    "--stack",
    metavar="NAME",
    help="The software: megatron, nanotron, fsdp-eager, fsdp-compile, xla-gpu, xla-tpu or kin. "
    "Default: fsdp-compile, on TPUs and Trainium xla-tpu.",
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
@serving.options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    model: str,
    hardware: str,
    seq: str | None,
    global_batch: str | None,
    sharding: str | None,
    lora: int | None,
    qlora: int | None,
    no_flash_attention: bool,
    network: str | None,
    measured: str | None,
    serve: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Will it fit, and how fast will it go: memory by item, step time by term, and an error band.

    What the layout leaves out is chosen: the fastest that fits.
    """
    from tradewind.estimate import models
    from tradewind.estimate.advice import advise
    from tradewind.estimate.answer import answer
    from tradewind.estimate.hardware import check_count
    from tradewind.estimate.question import SHARDING_NAMES, Question

    serving.refuse_mixed(serve)
    if serve:
        serving.serve(model, hardware, measured, given | {"lora": lora}, as_json)
        return
    for name in serving.OPTIONS:
        del given[name]
    if lora and qlora:
        raise InvalidValue("--lora and --qlora are both given", hint="give one of them")
    if hardware.strip().lower() in ("cpu", "none"):
        raise InvalidValue("training is estimated on accelerators only", hint="for example 8xA10G")
    catalog = catalogs.load()
    accelerator, given_count = catalog.variant(hardware)
    count = check_count(accelerator, given_count or 1, catalog.most_in_a_machine(accelerator.name))
    bits = _parsed("--network", parse_bandwidth, network)
    question = Question(
        model=models.load(model),
        accelerator=accelerator,
        per_node=count,
        sequence=_parsed("--seq", partial(parse_count, noun="tokens"), seq),
        global_batch=_parsed("--global-batch", parse_count, global_batch),
        lora=lora or qlora,
        quantised=bool(qlora),
        flash=not no_flash_attention,
        sharding=SHARDING_NAMES.get(sharding or "", sharding),
        network_gbps=None if bits is None else bits / 1e9,
        **given,
    )
    constants, own = sharpened(measured) if measured is not None else (None, None)
    found = answer(question, constants, own)
    advice = advise(question, found, constants)
    if as_json:
        render.print_json(asdict(found) | {"advice": [asdict(a) for a in advice]})
        return
    _show(found)
    _show_advice(found, advice)


def _parsed(option: str, parse: Callable[[str], int], text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse(text)
    except InvalidValue as error:
        raise InvalidValue(f"{option}: {error.message}", hint=error.hint) from None


def sharpened(path: str) -> tuple[Constants, Evidence]:
    """The constants, moved to one's own measurements, and what those speak of."""
    from tradewind.bench.measured import finders
    from tradewind.estimate import band, calibrate, constants, measurements

    own = measurements.read(measurements.rows_of(Path(path)), *finders())
    for why, rows in own.unsupported.most_common():
        render.remark(f"{render.count(rows, 'row')} of {path} left out: {why}")
    evidence = band.Evidence.of(band.kinds(own.cases), own.sources)
    return calibrate.sharpen(own, constants.fitted()), evidence


def _show(found: Answer) -> None:
    lay = found.layout
    size = format_count(found.parameters, digits=3)
    if found.trained_parameters < found.parameters:
        size += f", {format_count(found.trained_parameters, digits=3)} trained"
    machines = f"{found.devices}× {found.accelerator}"
    click.secho(f"{found.model} ({size}) on {machines}, {found.precision}", bold=True)
    render.paragraph(lay.words, indent="  ")
    length = f" of {render.count(found.sequence, 'token')}" if found.sequence else ""
    render.paragraph(
        f"batch {render.count(found.global_batch, found.sample)}{length}: "
        f"dp {lay.dp} × micro-batch {lay.micro_batch} × accumulation {lay.accumulation}",
        indent="  ",
    )
    if found.considered > 1:
        render.note(f"the {'best' if found.fits else 'leanest'} of {found.considered:,} layouts")
    for text in found.notes:
        render.note(text)
    _show_memory(found)
    _show_time(found)


def _show_memory(found: Answer) -> None:
    peak, capacity = found.memory_gb["peak"], found.capacity_gb
    wide = 40 if render.columns() >= 72 else 24
    click.echo(f"\nmemory  {_bar(peak / capacity, wide)} {_size(peak)} of {capacity:.1f} GB")
    for item, gigabytes in found.memory_gb.items():
        if item not in _SUMS and gigabytes > 0.002 * peak:
            click.echo(f"  {item:<13} {_size(gigabytes):>8}  {_bar(gigabytes / peak, 20)}")
    tensors = found.memory_gb["allocated"]
    render.note(f"{_size(tensors)} of it are tensors: what max_memory_allocated would report")
    if not found.fits:
        short = peak - found.usable_gb
        why = f"{_size(short)} too much" if short > 0 else "a pipeline stage has no layers"
        click.secho(f"does not fit: {why}", fg="red", bold=True)


def _show_time(found: Answer) -> None:
    has_tokens = found.tokens_per_s is not None and found.sample != "token"
    kinds = [("samples_per_s", f"{found.sample}s/s")]
    if has_tokens:
        kinds.insert(found.sample == "image", ("tokens_per_s", "tokens/s"))
    low, high = (_rate(getattr(found, f"{end}_{kinds[0][0]}")) for end in ("low", "high"))
    shown = [f"{_rate(getattr(found, kind))} {unit}" for kind, unit in kinds]
    shown[0] += f" ({low} to {high} in 4 of 5 cases)"
    click.echo()
    render.labelled(
        "step    ",
        f"{_time(found.step_s)}, {', '.join(shown)}, {found.utilisation:.0%} of peak",
    )
    render.note(f"the range: {found.band}")
    for item, seconds in sorted(found.seconds.items(), key=lambda pair: -pair[1]):
        if seconds > 0.003 * found.step_s:
            item = item if found.sequence else _WORK_TERMS.get(item, item)
            click.echo(f"  {item:<13} {_time(seconds):>8}  {_bar(seconds / found.step_s, 20)}")


def _show_advice(found: Answer, advice: Sequence[Advice]) -> None:
    if not found.fits:
        if not advice:
            render.note("no single change that was tried makes it fit: take larger accelerators")
        for each in advice:
            render.note(f"with {each.change} it would fit: {_size(each.peak_gb)}")
        return
    helps = "" if advice else f"; what would help is {_HELP[found.bound_by]}"
    render.note(f"bound by {found.bound_by}{helps}")
    for each in advice:
        twice = each.speedup >= 2
        much = f"{each.speedup:.1f} times as fast" if twice else f"{each.speedup - 1:.0%} faster"
        render.note(f"{each.change} would be {much}")


def _time(seconds: float) -> str:
    for size, unit in ((1, "s"), (1e-3, "ms")):
        if seconds >= 0.9995 * size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{_digits(seconds * 1e6)} µs"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else _digits(value)


def _digits(value: float) -> str:
    """Three of them, and no more than are there."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


def _size(gigabytes: float) -> str:
    if gigabytes >= 1000:
        return f"{gigabytes / 1000:,.3g} TB"
    return f"{gigabytes:.1f} GB" if gigabytes >= 0.1 else f"{1000 * gigabytes:.0f} MB"


def _bar(share: float, width: int = 40) -> str:
    filled = max(0, min(width, round(share * width)))
    return "█" * filled + "░" * (width - filled)
