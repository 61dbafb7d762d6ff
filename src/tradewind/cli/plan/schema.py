"""`tradewind schema`: how files of the user's are written, for editors and other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tradewind.base.units import format_bytes, format_count, format_duration, format_money
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.model import Workload


@click.command(
    "schema",
    cls=Command,
    examples="""
    # is the file right, and what does it ask for?
    tradewind schema --check work.yaml
    # for your editor
    tradewind schema --out workload.schema.json
    """,
)
@click.argument("name", type=click.Choice(["workload"]), default="workload")
@click.option("--out", metavar="FILE", help="Write it into FILE.")
@click.option(
    "--check", metavar="FILE", help="Instead: read a workload file and say what it asks for."
)
def command(name: str, out: str | None, check: str | None) -> None:
    """Print the JSON Schema of workload files, or check one."""
    if check is not None:
        from tradewind import workload

        _show(workload.load(check))
        return
    from tradewind.workload import schema

    text = schema.text()
    if out is None:
        click.echo(text, nl=False)
        return
    from tradewind.catalog.files import replace

    replace(Path(out), text.encode())
    render.remark(f"written: {out}")


def _show(work: Workload) -> None:
    click.secho(work.name, bold=True)
    for title, words in (
        ("work", work_words(work)),
        ("data", _data(work)),
        ("limits", limit_words(work)),
    ):
        if words:
            render.labelled(f"  {title:<7} ", words)


def work_words(work: Workload) -> str:
    if work.work:
        many = f"{work.work.count}x{work.work.accelerator}"
        return f"{format_duration(round(work.work.seconds))} on {many}"
    if work.machines:
        return work.machines.words
    train = work.train
    assert train is not None
    model = train.model if isinstance(train.model, str) else train.model.name
    if train.total_tokens is not None:
        amount = f"{format_count(train.total_tokens, digits=4)} tokens"
        each = f"{train.sequences_per_step:,} sequences"
    else:
        amount = f"{format_count(train.total_samples, digits=4)} samples"
        each = f"{train.sequences_per_step:,}"
    return f"{model}, {amount}: {render.count(train.total_steps, 'step')} of {each}"


def _data(work: Workload) -> str:
    if not work.data:
        return ""
    size = f", {format_bytes(work.data.size_bytes)}" if work.data.size_bytes else ""
    place = f", in {work.data.provider}/{work.data.region}" if work.data.region else ""
    return work.data.uri + size + place


def limit_words(work: Workload) -> str:
    limits = work.limits
    sure = f" ({100 * limits.sure:.4g} % sure)"
    words = []
    if limits.within_s is not None:
        words.append(f"done in {format_duration(limits.within_s)}{sure}")
    if limits.deadline is not None:
        words.append(f"done by {limits.deadline.isoformat(' ', 'minutes')}{sure}")
    if limits.late is not None:
        words.append(f"{format_money(limits.late)} an hour late")
    if limits.budget is not None:
        alone = work.serve is None and limits.within_s is None and limits.deadline is None
        words.append(f"for {format_money(limits.budget)}{sure if alone else ''}")
    for title in ("providers", "regions", "markets", "accelerators"):
        if getattr(limits, title) is not None:
            words.append(f"{title} {' '.join(getattr(limits, title))}")
    if limits.exclude is not None:
        words.append(f"without {' '.join(limits.exclude)}")
    for most, noun in ((limits.max_nodes, "node"), (limits.max_accelerators, "accelerator")):
        if most is not None:
            words.append(f"at most {render.count(most, noun)}")
    if limits.commit is not None:
        words.append(f"commitments up to {limits.commit}")
    if limits.assume_capacity is not None:
        words.append(f"capacity assumed {' '.join(limits.assume_capacity)}")
    if limits.carbon is not None:
        words.append(f"carbon {limits.carbon}")
    return "; ".join(words)
