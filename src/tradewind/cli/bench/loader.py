"""`tradewind bench loader`: what a loader's settings are worth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "loader",
    cls=Command,
    examples="""
    # datasets made for it
    tradewind bench loader
    # yours, with steps of 50 ms
    tradewind bench loader mine:dataset --step-ms 50
    """,
)
@click.argument("dataset", required=False, metavar="[MODULE:DATASET]")
@click.option(
    "--batch",
    type=click.IntRange(1, 1_000_000),
    default=32,
    show_default=True,
    metavar="N",
    help="Samples in a batch of your dataset.",
)
@click.option(
    "--step-ms",
    type=click.FloatRange(0.01, 1e6),
    default=20.0,
    show_default=True,
    metavar="MS",
    help="What a training step takes with it.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.05, 600),
    default=1.5,
    show_default=True,
    help="For each setting, twice.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(dataset: str | None, batch: int, step_ms: float, seconds: float, as_json: bool) -> None:
    """Compare usual settings of a DataLoader with those that tw.loader chooses. Needs torch.

    On four datasets made for it, or on your own: DATASET is a dataset in MODULE, which is looked
    for in the current folder first, or a function without arguments (or a class) that makes one.
    """
    from tradewind.bench import loader as bench
    from tradewind.torch.profiling.profile import require_torch

    require_torch()
    many = bench.kinds
    if dataset is not None:
        own = bench.Kind(dataset, _theirs(dataset), batch, step_ms / 1e3)

        def many(folder: Path) -> Iterator[bench.Kind]:
            yield own

    with render.bars(["datasets"], quiet=as_json) as bar:
        found = bench.measure(
            many, seconds=seconds, progress=lambda done, total: bar("datasets", done, total)
        )
    if as_json:
        render.print_json(found)
        return
    _show(found)


def _theirs(target: str) -> Any:
    from tradewind.base.errors import InvalidValue
    from tradewind.torch.profiling import theirs

    folder = Path.cwd()
    found = theirs.find(target, folder)
    if isinstance(found, type) or not hasattr(found, "__getitem__"):
        if not callable(found):
            raise InvalidValue(
                f"{target} is a {type(found).__name__}, and no dataset",
                hint="name a dataset with __getitem__ and __len__, or a function that makes one",
            )
        with theirs.calling(target, folder):
            found = theirs.ready(found, target)()
    if not hasattr(found, "__getitem__") or not hasattr(found, "__len__"):
        raise InvalidValue(
            f"{target} gives a {type(found).__name__}, which has no __getitem__ and __len__",
            hint="streams are not compared: their number of workers is part of their order",
        )
    with theirs.calling(f"sample 0 of {target}", folder):
        if not len(found):
            raise InvalidValue(f"{target} has no samples")
        found[0]
    return found


def _show(found: dict[str, Any]) -> None:
    click.echo(f"{found['cores']:g} cores; samples a second through steps and loader")
    for name, about in found["datasets"].items():
        click.echo(f"{name}: batches of {about['batch']}, steps of {about['step_ms']:g} ms")
        for setting, speed in about["samples_per_s"].items():
            more = ""
            if setting == "ours":
                chosen = about["ours"]
                workers = render.count(chosen["num_workers"], "worker")
                more = f"  {workers}, chosen in {chosen['chosen_in_s']:.1f} s;"
                more += f" {about['ours_against_best']:.2f}× the best of the others"
            click.echo(f"  {setting:<24}{speed:10,.0f}{more}")
