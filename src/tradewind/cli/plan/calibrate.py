"""`tradewind calibrate`: refit the estimator's constants to measurements."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.catalog import files
from tradewind.cli import render
from tradewind.cli.base import Command


@click.command(
    "calibrate",
    cls=Command,
    examples="""
    # to what you have measured (docs/measurements.md)
    tradewind calibrate --data mine.csv --out fitted.json
    """,
)
@click.option(
    "--data",
    multiple=True,
    metavar="FILE",
    help="Measurements of throughput, CSV or CSV.gz. May be given several times.",
)
@click.option("--memory", metavar="FILE", help="Outcomes of memory, CSV or CSV.gz.")
@click.option("--other", metavar="FILE", help="Samples/s of other models, CSV or CSV.gz.")
@click.option(
    "--spot", metavar="FILE", help="Series of spot capacity, CSV: learn how it comes and goes."
)
@click.option(
    "--outlook",
    is_flag=True,
    help="Work out what the policy expects of spot, for plans, from what it has learned.",
)
@click.option("--serving", metavar="FILE", help="Measurements of serving, CSV or CSV.gz.")
@click.option("--models", metavar="FILE", help="Shapes of the models in --serving, CSV.")
@click.option("--out", required=True, metavar="FILE", help="Where to write what was fitted, JSON.")
def command(
    data: tuple[str, ...],
    memory: str | None,
    other: str | None,
    spot: str | None,
    outlook: bool,
    serving: str | None,
    models: str | None,
    out: str,
) -> None:
    """Refit the constants of the estimator, and the error bands, to measurements.

    Every constant is held to its prior, so that accelerators and stacks with few rows stay near
    their kin. The bands come from leaving whole blocks of rows and chips out in turn.
    """
    if serving:
        if data or memory or other or spot or outlook:
            raise InvalidValue("--serving is fitted alone", hint="leave the others out")
        _fit_serving(Path(serving), Path(models) if models else None, Path(out))
        return
    if models:
        raise InvalidValue("--models goes with --serving", hint="leave it out")
    if spot or outlook:
        if data or memory or other or (spot and outlook):
            alone = "--spot is fitted alone" if spot else "--outlook is worked out alone"
            raise InvalidValue(alone, hint="leave --data and the others out")
        if spot:
            _fit_spot(Path(spot), Path(out))
        else:
            _work_out(Path(out))
        return
    if not data:
        raise InvalidValue(
            "there is nothing to fit to", hint="give --data, --serving, --spot or --outlook"
        )
    from tradewind.bench.measured import finders
    from tradewind.estimate import (
        band,
        calibrate,
        constants,
        judges,
        left_out,
        measurements,
        outcomes,
    )
    from tradewind.estimate import samples as others

    find = finders()
    with render.busy("fitting"):
        rows = [row for path in data for row in measurements.rows_of(Path(path))]
        measured = measurements.read(rows, *find)
        values = dict(calibrate.fit(measured).values)
        if memory:
            values |= calibrate.fit_memory(outcomes.read(measurements.rows_of(Path(memory)), *find))
        else:
            values |= {
                k: v for k, v in constants.fitted().values.items() if k in constants.MEMORY_PRIORS
            }
    coefficients = constants.calibration().get("samples", {})
    if other:
        coefficients = others.fit(others.read(measurements.rows_of(Path(other)), find[0]))
    with render.busy("leaving blocks and chips out in turn"):
        parts = [left_out.of_blocks(measured, judge(measured)) for judge in judges.JUDGES.values()]
        parts.append(left_out.by_chip(measured))
    evidence = band.Evidence.of(band.kinds(measured.cases), measured.sources)
    sources = {name: measured.sources.count(name) for name in sorted(set(measured.sources))}
    document = {
        "format": 1,
        "made_at": clock.now().replace(microsecond=0).isoformat(),
        "rows": len(measured.sources),
        "sources": sources,
        "bands": left_out.bands(measured, parts),
        "measured": sorted([*kind, *counts] for kind, counts in evidence.counts.items()),
        "samples": coefficients,
        "constants": {name: float(f"{value:.6g}") for name, value in values.items()},
    }
    files.replace(Path(out), (json.dumps(document, indent=1) + "\n").encode())
    click.echo(f"{len(measured.sources):,} rows of {len(sources)} sources → {out}")


def _fit_serving(data: Path, models: Path | None, out: Path) -> None:
    from tradewind.bench import inference

    with render.busy("fitting, and leaving sources, models and accelerators out in turn"):
        document = inference.document(data, models)
    files.replace(out, (json.dumps(document, indent=1) + "\n").encode())
    click.echo(f"{document['rows']:,} rows of {len(document['sources'])} sources → {out}")


def _fit_spot(traces: Path, out: Path) -> None:
    import msgspec

    from tradewind.spot import fit, series

    with render.busy("fitting"):
        found = series.read(traces, kinds=["availability"])
        model = fit.fit(found, clock.now().replace(microsecond=0).isoformat())
    files.replace(out, msgspec.json.format(msgspec.json.encode(model), indent=1) + b"\n")
    hours = sum(model.sources.values())
    click.echo(f"{hours:,.0f} hours of {len(model.sources)} series → {out}")


def _work_out(out: Path) -> None:
    import msgspec

    from tradewind.spot import outlook

    with render.bars(["outlook"], quiet=False) as bar:
        found = outlook.make(
            clock.now().replace(microsecond=0).isoformat(),
            lambda done, total: bar("outlook", done, total),
        )
    files.replace(out, msgspec.json.encode(found) + b"\n")
    click.echo(f"{len(found.costs):,} cases, worked out from {found.learned[:12]} → {out}")
