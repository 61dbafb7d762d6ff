"""`tradewind catalog rates`: what is charged for beside machines, and who says so."""

from __future__ import annotations

from dataclasses import asdict

import click

from tradewind.base.errors import NotFound
from tradewind.catalog import files, ratecard
from tradewind.catalog.globs import fits
from tradewind.catalog.names import nearest, provider_name
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column
from tradewind.model.rate import Rate
from tradewind.model.ratecard import CATEGORIES, price


@click.command(
    "rates",
    cls=Command,
    examples="""
    # what disks, addresses, buckets and traffic cost at AWS
    tradewind catalog rates -p aws
    # egress of all providers
    tradewind catalog rates --category egress_internet
    """,
)
@click.option(
    "-p", "--provider", multiple=True, metavar="GLOB", help="Only this provider. Repeatable."
)
@click.option("--region", metavar="NAME", help="Only what counts in this region.")
@click.option(
    "--category",
    multiple=True,
    metavar="NAME",
    help=f"Only this category: {', '.join(CATEGORIES)}. Repeatable.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also rates that nothing is computed with: commitments, surcharges, on-premises costs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with notes.")
def rates(
    provider: tuple[str, ...],
    region: str | None,
    category: tuple[str, ...],
    everything: bool,
    as_json: bool,
) -> None:
    """Prices of storage, requests, disks, public addresses and data transfer (egress), each with
    its date and source. Plans, reserves and the ledger are computed with them."""
    known = ratecard.card().rates
    if everything:
        known += tuple(
            rate
            for rate in files.load().rates
            if rate.category not in CATEGORIES and rate.value is not None
        )
    found = [rate for rate in known if region is None or _counts_in(rate, region)]
    if provider:
        wanted = [provider_name(each) for each in provider]
        _check("provider", wanted, sorted({rate.provider for rate in known}))
        found = [rate for rate in found if any(fits(rate.provider, each) for each in wanted)]
    if category:
        _check("category", category, sorted({rate.category for rate in known}))
        found = [rate for rate in found if any(fits(rate.category, each) for each in category)]
    if as_json:
        render.print_json([asdict(rate) for rate in found])
        return
    render.table(
        [
            Column("PROVIDER", keep=9),
            Column("CATEGORY", keep=10),
            Column("REGION", keep=8),
            Column("PRICE", right=True, keep=10),
            Column("AS OF", keep=7),
            Column("HOW", keep=6),
            Column("SOURCE", grow=True, keep=5),
            Column("WHAT", grow=True),
        ],
        [
            [
                rate.provider,
                rate.category,
                rate.region,
                price(rate) if rate.unit.startswith("USD/") else f"{rate.value:g} {rate.unit}",
                rate.as_of,
                rate.evidence,
                rate.source,
                rate.item,
            ]
            for rate in found
        ],
    )
    render.note(
        f"\n{render.count(len(found), 'rate')}. A region without a row costs as the highest of its "
        "provider; `run` and `plan` say where they assume that."
    )


def _counts_in(rate: Rate, region: str) -> bool:
    return fits(region.lower(), rate.region.partition("/")[0])


def _check(noun: str, wanted: tuple[str, ...] | list[str], names: list[str]) -> None:
    for each in wanted:
        if not any(fits(name, each) for name in names):
            close = nearest(each, names)
            raise NotFound(
                f"no rate has the {noun} {each!r}",
                hint=f"did you mean {' or '.join(close)}?"
                if close
                else f"known: {', '.join(names)}",
                choices=close,
            )
