"""`tradewind bench checkpoint`: what saving costs training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tradewind.base.units import parse_bytes, parse_count
from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "checkpoint",
    cls=Command,
    examples="""
    # 256 MB, on the disk of this folder
    tradewind bench checkpoint --bytes 256MB --device cpu
    """,
)
@click.option("--params", metavar="COUNT", help="Weights, in 32 bits, with AdamW. Or --bytes.")
@click.option("--bytes", "state", metavar="SIZE", help="Of the state. Default 18.4GB; CPU: 64MB.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="On the disk to be measured. Default: here.",
)
@click.option(
    "--device", type=click.Choice(["cuda", "cpu"]), help="Default: a GPU if there is one."
)
@click.option("--ways", metavar="NAMES", help="Which, in which order, e.g. ours,dcp-async.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    params: str | None,
    state: str | None,
    folder: Path,
    device: str | None,
    ways: str | None,
    as_json: bool,
) -> None:
    """What a checkpoint costs training, by PyTorch's ways and ours, in the same run."""
    import warnings

    from tradewind.bench.checkpoint import measure as bench
    from tradewind.bench.checkpoint.trainer import BYTES_A_WEIGHT
    from tradewind.bench.checkpoint.ways import WAYS

    if params and state:
        raise click.UsageError("--params or --bytes, not both")
    device = device or bench.best_device()
    size = float(parse_bytes(state or ("18.4GB" if device == "cuda" else "64MB")))
    if params:
        size = float(BYTES_A_WEIGHT * parse_count(params))
    names = ways.split(",") if ways else list(WAYS)
    with warnings.catch_warnings(), render.busy("saving checkpoints"):
        warnings.simplefilter("ignore")
        found = bench.measure(size, folder.absolute(), device, names)
    if as_json:
        render.print_json(found)
        return
    _show(found)


def _show(found: dict[str, Any]) -> None:
    from tradewind.bench.checkpoint import measure as bench
    from tradewind.bench.checkpoint.ways import WAYS

    disk = found["disk"]
    click.echo(
        f"{found['bytes'] / 1e9:.2f} GB in {found['tensors']} tensors on {found['device']},"
        f" a step takes {1e3 * found['step_s']:.0f} ms; the disk writes {disk['write'] / 1e9:.2f}"
        f" and reads {disk['read'] / 1e9:.2f} GB/s"
    )
    titles = ("stall", "first", "worst step", "durable", "restore", "wrong tensors")
    click.echo(f"{'':<32}" + "".join(f"{title:>14}" for title in titles))
    for name, way in found["ways"].items():
        line = f"{WAYS[name][1]:<32}"
        if "step_s" not in way:
            click.echo(line + (way.get("failed") or way["left_out"]))
            continue
        keys = ("steady_stall_s", "first_stall_s", "worst_step_s", "durable_s", "restore_s")
        for value in (way[key] for key in keys):
            line += f"{'' if value is None else f'{value:.3f} s':>14}"
        click.echo(line + f"{way['wrong_tensors']:>14}")
    ours = found["ways"].get("ours", {})
    if "write_share" not in ours or found["device"] == "cpu":  # the limits are for a GPU's state
        return
    for title, value, limit, most, unit in (
        ("ours: stall", ours["steady_stall_s"], bench.STEADY_LIMIT_S, True, " s"),
        ("  of the first", ours["first_stall_s"], bench.FIRST_LIMIT_S, True, " s"),
        ("  of what the disk writes", ours["write_share"], bench.WRITE_LIMIT, False, "×"),
        ("  of what it reads", ours["restore_share"], bench.READ_LIMIT, False, "×"),
    ):
        good = value <= limit if most else value >= limit
        verdict = "within" if good else "OVER" if most else "UNDER"
        click.echo(f"{title:<32}{value:12.3f}{unit:<2}  {verdict} {limit:g}{unit}")
