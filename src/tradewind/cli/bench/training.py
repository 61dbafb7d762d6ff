"""`tradewind bench training`: what a session costs a training."""

from __future__ import annotations

from pathlib import Path

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "training",
    cls=Command,
    examples="""
    tradewind bench training --device cpu --steps 20
    """,
)
@click.option(
    "--device", type=click.Choice(["cuda", "cpu"]), help="Default: a GPU if there is one."
)
@click.option("--steps", type=click.IntRange(10), default=100, show_default=True, help="A turn.")
@click.option(
    "--model",
    type=click.Choice(["big", "launches", "small"]),
    help="Default: big on a GPU, small on a CPU. launches: steps bound by launching kernels.",
)
@click.option("--turns", type=click.IntRange(1), default=2, show_default=True, help="Of each loop.")
@click.option("--save-every", type=click.IntRange(1), default=100, show_default=True, help="Steps.")
@click.option(
    "--in-turns",
    is_flag=True,
    help="All loops at once, in turns of a few steps, without checkpoints: for small models.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    metavar="FOLDER",
    help="For checkpoints. Default: here.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    device: str | None,
    steps: int,
    model: str | None,
    turns: int,
    save_every: int,
    in_turns: bool,
    folder: Path,
    as_json: bool,
) -> None:
    """What a session costs a training: the same loop without and with one, a process each."""
    from tradewind import catalog
    from tradewind.bench import gpu_steps
    from tradewind.bench import training as bench
    from tradewind.bench.checkpoint.measure import best_device

    device = device or best_device()
    if in_turns:
        _in_turns(folder.absolute(), device, model or "", steps, turns, as_json=as_json)
        return
    with render.busy("training"):
        found = bench.measure(
            folder.absolute(),
            device,
            model=model or "",
            steps=steps,
            turns=turns,
            save_every=save_every,
        )
    if device == "cuda" and model in (None, "big"):
        known = catalog.load(account=False)
        accelerator = known.accelerators[known.names.one(gpu_steps.device_name())]
        found["estimated_tokens_s"] = round(bench.estimated_tokens_s(accelerator))
    if as_json:
        render.print_json(found)
        return
    click.echo(f"{found['weights']:,} weights on {found['device']}, torch {found['torch']}")
    click.echo(f"plain loop      {found['plain_tokens_s']:>12,} tokens/s")
    click.echo(f"with a session  {found['session_tokens_s']:>12,} tokens/s")
    if "estimated_tokens_s" in found:
        click.echo(f"estimate        {found['estimated_tokens_s']:>12,} tokens/s")
    cost, limit = 100 * found["overhead"], 100 * bench.LIMIT
    click.echo(
        f"the session costs {cost:+.2f} %, {'within' if cost <= limit else 'OVER'} {limit:g} %,"
        f" with {render.count(found['saves'], 'checkpoint')} in {found['steps']} steps;"
        f" its end takes {found['end_s']:.2f} s"
    )


def _in_turns(
    folder: Path, device: str, model: str, steps: int, turns: int, *, as_json: bool
) -> None:
    from tradewind.bench import training as bench

    kinds = ("plain", "silent", "session")
    with render.busy("training"):
        found = bench.in_turns(folder, device, model=model, steps=steps, turns=turns, kinds=kinds)
    if as_json:
        render.print_json(found)
        return
    words = {"silent": "a session without telemetry", "session": "a session"}
    click.echo(f"{found['weights']:,} weights on {found['device']}, torch {found['torch']}")
    click.echo(f"plain loop: {found['plain_ms']:.2f} ms a step")
    for kind in kinds[1:]:
        low, high = found[f"{kind}_half_within"]
        click.echo(
            f"{words[kind]} costs {100 * found[f'{kind}_overhead']:+.2f} %,"
            f" in half of {turns} turns {100 * low:+.2f} to {100 * high:+.2f} %"
        )
