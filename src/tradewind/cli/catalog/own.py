"""`tradewind catalog build`, `reset` and `observe`: a catalog of your own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import parse_duration
from tradewind.catalog import doubts, files
from tradewind.catalog.files import BUILT_IN
from tradewind.catalog.query import literal
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.model import MARKETS


@click.command(
    "build",
    cls=Command,
    examples="""
    # from tables of your own (docs/catalog-data.md)
    tradewind catalog build --from tables --out mine.json.gz
    """,
)
@click.option(
    "--from",
    "folder",
    required=True,
    metavar="DIR",
    help="Folder with offers.csv, accelerators.csv, instances.csv, rates.csv (or .csv.gz).",
)
@click.option(
    "--out", metavar="FILE", help="Where to write it. Default: your own catalog, which then serves."
)
def build(folder: str, out: str | None) -> None:
    """Compile a folder of facts into a catalog."""
    from tradewind.catalog.build import build as compile_folder

    path = Path(out) if out else files.home() / "catalog.json.gz"
    with render.busy(f"compiling {folder}"):
        facts = compile_folder(Path(folder), made_at=clock.now().replace(microsecond=0))
        size = files.save(facts, path)
    click.echo(
        f"{len(facts.offers):,} offers, {len(facts.accelerators)} accelerators, "
        f"{len(facts.instances)} instance types, {len(facts.rates)} rates → {path} ({size:,} bytes)"
    )
    marks = Counter(
        doubts.kind(columns.mark[row])
        for columns in facts.offers.prices.values()
        for row in range(len(facts.offers))
        if columns.mark[row]
    )
    if marks:
        words = ", ".join(
            f"{number:,} {doubts.KINDS[kind]}" for kind, number in marks.most_common()
        )
        render.note(f"Prices marked: {words}; `tradewind catalog doctor` says why.")
    for line in facts.refused[:20]:
        render.remark(f"refused: {line}")
    if len(facts.refused) > 20:
        render.remark(f"refused: … and {len(facts.refused) - 20:,} more rows")


@click.command(
    "reset",
    cls=Command,
    examples="""
    tradewind catalog reset
    """,
)
def reset() -> None:
    """Go back to the catalog that came with Tradewind. Your account file stays."""
    path = files.home() / "catalog.json.gz"
    if files.discard(path):
        click.echo(f"{path} is gone; the {BUILT_IN} serves.")
    else:
        click.echo(f"The {BUILT_IN} serves already.")


@click.command(
    "observe",
    cls=Command,
    examples="""
    # it could not be had just now: not for two hours
    tradewind catalog observe aws us-east-1 p5.48xlarge \\
        --no-capacity --for 2h
    """,
)
@click.argument("provider")
@click.argument("region")
@click.argument("instance_type", metavar="TYPE")
@click.option("--zone", default="", metavar="ZONE", help="The zone; default: the whole region.")
@click.option(
    "--market",
    type=click.Choice(MARKETS),
    default="on_demand",
    show_default=True,
    help="The market.",
)
@click.option("--available/--no-capacity", required=True, help="Could it be had?")
@click.option(
    "--for",
    "lasts",
    metavar="TIME",
    help="For how long that holds. Default: 6h if available, else 1h.",
)
def observe(
    provider: str,
    region: str,
    instance_type: str,
    zone: str,
    market: Any,
    available: bool,
    lasts: str | None,
) -> None:
    """Record that something could, or could not, be had just now."""
    from dataclasses import replace
    from datetime import timedelta

    from tradewind.catalog.observations import observed
    from tradewind.model import Observation

    catalog, now = files.load(), clock.now().replace(microsecond=0)
    known = catalog.offers(
        provider=provider,
        region=literal(region),
        instance_type=literal(instance_type),
        zone=literal(zone) if zone else None,
        include_marked=True,
    )
    if not known:
        raise NotFound(
            f"{provider} sells no {instance_type!r} in {zone or region!r}, as far as we know",
            hint=f"`tradewind offers -p {provider} -t {instance_type}` lists the places",
        )
    offer = known[0]
    seen = observed(
        Observation(
            provider=offer.provider, region=offer.region, zone=offer.zone if zone else "",
            instance_type=offer.instance_type, market=market, available=available,
            seen_at=now, expires_at=now, source="you",
        )
    )  # fmt: skip
    if lasts:
        seconds = parse_duration(lasts)
        if not 0 < seconds <= 30 * 86_400:
            raise InvalidValue(f"--for {lasts}: from 1s to 30d makes sense")
        seen = replace(seen, expires_at=now + timedelta(seconds=seconds))
    files.record([seen], files.home(), now)
    words = "available" if available else "no capacity"
    until = f"{seen.expires_at:%Y-%m-%d %H:%M} UTC"
    click.echo(f"{offer.instance_type} in {zone or offer.region}: {words} until {until}")
