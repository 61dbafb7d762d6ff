"""`tradewind bench serve-steps`: prefills and decoding steps against their estimates."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import click

from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "serve-steps",
    cls=Command,
    examples="""
    tradewind bench serve-steps
    # in the schema of measurements of serving
    tradewind bench serve-steps --share serve.csv
    """,
)
@click.option("--on", metavar="ACCELERATOR", help="What the GPU is. Default: what its driver says.")
@click.option("--share", metavar="FILE", help="Write what was timed as CSV, with provenance.")
@click.option("--tiny", is_flag=True, help="A trial: a tiny model, on the CPU without a GPU.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(on: str | None, share: str | None, tiny: bool, as_json: bool) -> None:
    """Real prefills and decoding steps on this machine's GPU against their estimates."""
    from tradewind import catalog
    from tradewind.bench import gpu_steps, sharing
    from tradewind.bench import serve_steps as bench
    from tradewind.measure import table

    on_gpu = gpu_steps.where() == "cuda"
    driver_says = gpu_steps.device_name() if on_gpu or not tiny else "CPU"
    accelerator = catalog.load(account=False).variant(on or driver_says)[0] if on_gpu else None
    found, rows = [], []
    for step in bench.measure(bench.TINY, 2) if tiny else bench.measure():
        line = bench.compared(step, accelerator) if accelerator else bench.shown(step)
        found.append(line)
        rows.append(bench.row(step, accelerator, sharing.made_with(driver_says)))
        if share:  # what was timed so far is not lost if the rest fails
            table.write(Path(share), rows)
        if not as_json:
            click.echo("  ".join(f"{key} {value}" for key, value in line.items()))
    ratios = {
        kind: median([line["ratio"] for line in found if line["kind"] == kind and "ratio" in line])
        for kind in ("prefill", "decode")
        if any(line["kind"] == kind and "ratio" in line for line in found)
    }
    name = accelerator.name if accelerator else "CPU"
    if as_json:
        render.print_json({"accelerator": name, "steps": found, "median_ratio": ratios})
        return
    for kind, ratio in ratios.items():
        click.echo(f"{kind}: estimated over measured, median {ratio}")
    if share:
        click.echo(f"{render.count(len(rows), 'row')} → {share}")
