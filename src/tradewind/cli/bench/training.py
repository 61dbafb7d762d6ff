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
    help="One of each loop at once, in turns of a few steps, no checkpoints: for small models.",
)
@click.option(
    "--parts",
    is_flag=True,
    help="Time what a session does within a step, each part by itself: for small models.",
)
@click.option(
    "--processes",
    type=click.IntRange(2),
    default=3,
    show_default=True,
    help="Of each loop, with --in-turns or --parts.",
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
    parts: bool,
    processes: int,
    folder: Path,
    as_json: bool,
) -> None:
    """What a session costs a training: the same loop without and with one, a process each."""
    from tradewind import catalog
    from tradewind.bench import gpu_steps
    from tradewind.bench import training as bench
    from tradewind.bench.checkpoint.measure import best_device

    device = device or best_device()
    if parts:
        _by_parts(folder.absolute(), device, model or "", steps, processes, as_json=as_json)
        return
    if in_turns:
        _in_turns(folder.absolute(), device, model or "", steps, turns, processes, as_json=as_json)
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


_KINDS = {
    "plain": "plain loop",
    "silent": "a session without telemetry",
    "session": "a session",
}


def _by_parts(
    folder: Path, device: str, model: str, steps: int, processes: int, *, as_json: bool
) -> None:
    from tradewind.bench import training as bench

    with render.busy("training"):
        found = bench.by_parts(
            folder, device, model=model, steps=steps, processes=processes, kinds=tuple(_KINDS)
        )
    if as_json:
        render.print_json(found)
        return
    click.echo(f"{found['weights']:,} weights on {found['device']}, torch {found['torch']}")
    columns = ("batch", "hooks", "session", "beside", "step")
    click.echo(f"{'microseconds a step':<28}" + "".join(f"{name:>11}" for name in columns))
    for kind, words in _KINDS.items():
        row = "".join(f"{found['us'][kind][name]:>11,.1f}" for name in columns)
        costs = "" if kind == "plain" else f"  costs {100 * found[f'{kind}_overhead']:+.2f} %"
        click.echo(f"{words:<28}{row}{costs}")
    click.echo("beside: what threads beside the loop worked, counted as if the loop had waited")


def _in_turns(
    folder: Path,
    device: str,
    model: str,
    steps: int,
    turns: int,
    processes: int,
    *,
    as_json: bool,
) -> None:
    from tradewind.bench import training as bench

    with render.busy("training"):
        found = bench.in_turns(
            folder,
            device,
            model=model,
            steps=steps,
            turns=turns,
            processes=processes,
            kinds=tuple(_KINDS),
        )
    if as_json:
        render.print_json(found)
        return
    click.echo(f"{found['weights']:,} weights on {found['device']}, torch {found['torch']}")
    for kind, words in _KINDS.items():
        each = ", ".join(
            f"{before:.2f} → {after:.2f}"
            for before, after in zip(found[f"{kind}_before_ms"], found[f"{kind}_ms"], strict=True)
        )
        costs = (
            f"; costs {100 * found[f'{kind}_overhead']:+.2f} %"
            f" ± {100 * found[f'{kind}_margin']:.2f}"
            if kind != "plain"
            else ""
        )
        click.echo(f"plain → {words}: {each} ms a step, by process{costs}")
