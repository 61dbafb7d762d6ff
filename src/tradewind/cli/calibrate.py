"""`tradewind calibrate`: refit the estimator's constants to measurements."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tradewind import clock
from tradewind.catalog import files
from tradewind.cli import render


@click.command("calibrate")
@click.option(
    "--data", required=True, metavar="FILE", help="Measurements of throughput, CSV or CSV.gz."
)
@click.option("--memory", metavar="FILE", help="Outcomes of memory, CSV or CSV.gz.")
@click.option("--other", metavar="FILE", help="Samples/s of other models, CSV or CSV.gz.")
@click.option("--out", required=True, metavar="FILE", help="Where to write the calibration, JSON.")
def command(data: str, memory: str | None, other: str | None, out: str) -> None:
    """Refit the constants of the estimator, and the error bands, to measurements.

    Every constant is held to its prior, so that accelerators and stacks with few rows stay near
    their kin. The bands come from leaving each source out in turn.
    """
    from tradewind.bench.measured import finders
    from tradewind.estimate import calibrate, constants, measurements, outcomes, samples

    find = finders()
    with render.busy("fitting"):
        measured = measurements.read(measurements.rows_of(Path(data)), *find)
        values = dict(calibrate.fit(measured).values)
        if memory:
            values |= calibrate.fit_memory(outcomes.read(measurements.rows_of(Path(memory)), *find))
        else:
            values |= {
                k: v for k, v in constants.fitted().values.items() if k in constants.MEMORY_PRIORS
            }
    coefficients = constants.calibration().get("samples", {})
    if other:
        coefficients = samples.fit(samples.read(measurements.rows_of(Path(other)), find[0]))
    with render.busy("leaving each source out in turn"):
        left_out = calibrate.leave_one_source_out(measured, constants.Constants(values))
    pairs = sorted(
        set(zip(measured.cases.stack.tolist(), measured.cases.generation.tolist(), strict=True))
    )
    sources = {name: measured.sources.count(name) for name in sorted(set(measured.sources))}
    document = {
        "format": 1,
        "made_at": clock.now().replace(microsecond=0).isoformat(),
        "rows": len(measured.sources),
        "sources": sources,
        "bands": {k: round(v, 4) for k, v in calibrate.bands(measured, left_out).items()},
        "measured": pairs,
        "samples": coefficients,
        "constants": {name: float(f"{value:.6g}") for name, value in values.items()},
    }
    files.replace(Path(out), (json.dumps(document, indent=1) + "\n").encode())
    click.echo(f"{len(measured.sources):,} rows of {len(sources)} sources → {out}")
