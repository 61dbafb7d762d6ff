"""`tradewind get`: a run's output files, and its trained weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind.base.plaintext import one_line
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.api.handle import Run
    from tradewind.api.outputs import Output


@click.command(
    "get",
    cls=Command,
    examples="""
    # the output files that run.outputs of the workload names
    tradewind get finetune --to results
    # the trained model, of the newest checkpoint
    tradewind get finetune --weights model.safetensors
    # and of a training without a run, from its folder
    tradewind get checkpoints --weights model.pt
    """,
)
@click.argument("run", metavar="RUN|FOLDER")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--to", metavar="DIR", help="Fetch into this folder. Default: the current one.")
@click.option(
    "--weights",
    metavar="FILE|DIR",
    help="The trained model: FILE.safetensors, FILE.pt, or a folder as Hugging Face has it.",
)
@click.option(
    "--part", metavar="NAME", help="With --weights: what of the session. Default: model; or ema."
)
@click.option(
    "--answers",
    metavar="FILE",
    help="The outputs of batch inference, one a line, in the order of its items.",
)
@click.option(
    "--rank", type=click.IntRange(0), default=0, help="Files of this machine. Default: 0."
)
@click.option("--force", is_flag=True, help="Overwrite files that differ.")
@click.option(
    "--unsigned",
    is_flag=True,
    help="Files too that no machine of this run has signed for, as of an earlier Tradewind.",
)
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    run: str,
    paths: tuple[str, ...],
    to: str | None,
    weights: str | None,
    part: str | None,
    answers: str | None,
    rank: int,
    force: bool,
    unsigned: bool,
    store_url: str | None,
    as_json: bool,
) -> None:
    """Fetch a run's output files, or the weights that it has trained.

    Without paths and --to, the output files are listed. While the run goes on, they are as they
    were at its last checkpoint or notice; the weights are those of its newest checkpoint."""
    if answers is not None:
        if paths or to is not None or weights is not None:
            raise click.UsageError("--answers says itself where to: leave out paths and the others")
        _answers(run, Path(answers), force, store_url, as_json)
        return
    if weights is not None:
        if paths or to is not None:
            raise click.UsageError("--weights says itself where to: leave out paths and --to")
        _weights(run, Path(weights), part or "model", force, store_url, as_json)
        return
    if part is not None:
        raise click.UsageError("--part goes with --weights")
    from tradewind.api import outputs
    from tradewind.api.handle import Run

    found = Run(run, store_url)
    there = outputs.listed(found.store, found.id, found.state, unsigned=unsigned)
    if not there:
        _nothing(found, unsigned)
    if not paths and to is None:
        _show(found, there, as_json)
        return
    wanted = outputs.chosen(there, paths, rank)
    with render.busy(f"fetching {render.count(len(wanted), 'file')}"):
        done = outputs.fetch(found.store, found.id, wanted, Path(to or "."), force=force)
    if as_json:
        render.print_json(
            [{"path": str(each.path), "bytes": each.output.size, "new": each.new} for each in done]
        )
        return
    for each in done:
        same = "" if each.new else "  (was there already)"
        click.echo(f"{one_line(str(each.path))}  {_size(each.output.size)}{same}")


def _answers(run: str, to: Path, force: bool, store_url: str | None, as_json: bool) -> None:
    from tradewind.api.handle import Run
    from tradewind.base.errors import InvalidValue
    from tradewind.batch import collect

    if to.exists() and not force:
        raise InvalidValue(f"{to} is there already", hint="--force overwrites it")
    found = Run(run, store_url)
    with render.busy("fetching outputs"):
        made = collect(to, store=found.store, run=found.id)
    if as_json:
        told = {"path": str(made.path), "items": made.items, "missing": made.missing}
        render.print_json(told)
        return
    click.echo(f"{one_line(str(made.path))}: {made.items - made.missing:,} of {made.items:,} items")


def _weights(
    run: str, to: Path, part: str, force: bool, store_url: str | None, as_json: bool
) -> None:
    from tradewind.torch.weights import export

    config = None
    if store_url is None and export.is_folder(Path(run)):
        place = export.of_folder(Path(run))
    else:
        from tradewind.api.handle import Run
        from tradewind.store import readers

        found = Run(run, store_url)
        readers.note(found.store, found.id)
        place = export.of_run(found.store, found.id)
        config = _config(found)
    warnings: list[str] = []
    with render.busy("reading the newest checkpoint"):
        made = export.export(place, to, part=part, force=force, config=config, warn=warnings.append)
    if as_json:
        told = {"path": str(made.path), "step": made.step, "leg": made.leg, "bytes": made.bytes}
        more = {"tensors": made.tensors, "missing": list(made.missing), "warnings": warnings}
        render.print_json(told | more)
        return
    for words in warnings:
        render.note(f"warning: {words}")
    of = f"{render.count(made.tensors, 'tensor')}, {_size(made.bytes)}"
    click.echo(f"{one_line(str(made.path))}: {part} at step {made.step:,}, {of}")
    for words in made.missing:
        render.note(f"without {words}")


def _config(found: Run) -> bytes | None:
    """Of the outputs, where the job has written one: the nearest to the job's folder."""
    from tradewind.api import outputs
    from tradewind.base.errors import BadFile
    from tradewind.model import bounds, places

    there = outputs.listed(found.store, found.id, found.state)
    named = [each for each in there if each.rank == 0 and Path(each.path).name == "config.json"]
    for each in sorted(named, key=lambda each: (each.path.count("/"), each.path)):
        if each.size <= bounds.RECORD:
            key = places.output_files(found.id, 0) + each.file.name
            data = found.store.get(key, most=bounds.RECORD)
            if hashlib.sha256(data).hexdigest() != each.file.sha256:
                raise BadFile(
                    f"{each.path} in {found.store.url} is not what the machine has brought",
                    hint="someone with write access to the store changed it, or it is damaged",
                )
            return data
    return None


def _nothing(found: Run, unsigned: bool) -> None:
    from tradewind.api import outputs
    from tradewind.base.errors import NotFound

    weights = f"the trained weights are another matter: tradewind get {found.id} --weights model.pt"
    if not outputs.patterns(found.state):
        raise NotFound(
            f"the workload of {found.id} names no output files",
            hint=f"run: {{outputs: [out/*.pt, log.csv]}} does; {weights}",
        )
    if not unsigned and outputs.listed(found.store, found.id, found.state, unsigned=True):
        raise NotFound(
            f"no machine of {found.id} has signed for the output files that are there: an earlier"
            " Tradewind has brought them, or a machine of another run has put them there",
            hint="--unsigned takes them nevertheless: look at them before you use them",
        )
    named = ", ".join(outputs.patterns(found.state))
    raise NotFound(
        f"{found.id} has brought no output files yet: {named}",
        hint=f"they come when the job has saved, is asked to save, or has ended; {weights}",
    )


def _show(found: Run, there: Sequence[Output], as_json: bool) -> None:
    if as_json:
        render.print_json(
            [
                {
                    "path": each.path,
                    "bytes": each.size,
                    "rank": each.rank,
                    "leg": each.leg,
                    "step": each.step,
                    "sha256": each.file.sha256,
                }
                for each in there
            ]
        )
        return
    several = len({each.rank for each in there}) > 1
    columns = [
        render.Column("PATH", grow=True),
        render.Column("SIZE", right=True),
        render.Column("LEG", right=True),
        render.Column("STEP", right=True),
    ]
    rows = [[each.path, _size(each.size), str(each.leg), f"{each.step:,.0f}"] for each in there]
    if several:
        columns.append(render.Column("RANK", right=True))
        rows = [[*row, str(each.rank)] for row, each in zip(rows, there, strict=True)]
    render.table(columns, rows)
    render.note(f"Fetch them: tradewind get {found.id} --to FOLDER")


def _size(size: int) -> str:
    from tradewind.base.units import format_bytes

    return format_bytes(size, digits=3)
