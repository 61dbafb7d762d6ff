"""`tradewind catalog …`: look after the price catalog."""

from __future__ import annotations

from dataclasses import asdict

import click

from tradewind.catalog import files, summary
from tradewind.cli import render
from tradewind.cli.base import Group
from tradewind.cli.catalog import doctor, economics, own, rates, refresh
from tradewind.cli.render import Column
from tradewind.model import MARKETS


@click.group(
    "catalog",
    cls=Group,
    examples="""
    # how old are the prices? then renew them
    tradewind catalog status
    tradewind catalog refresh
    """,
)
def command() -> None:
    """Look after the price catalog: what is in it, what is doubtful, and how it is renewed."""


@command.command(
    "status",
    examples="""
    tradewind catalog status
    """,
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(as_json: bool) -> None:
    """Where the catalog comes from, how much is in it, and how old its prices are."""
    catalog = files.load()
    held = summary.held(catalog.table)
    known = {
        "origin": catalog.origin,
        "made_at": catalog.facts.made_at.isoformat(),
        "offers": len(catalog.table),
        "accelerators": len(catalog.accelerators),
        "instance_types": len(catalog.facts.instances),
        "rates": len(catalog.rates),
        "observations": len(catalog.observations.latest) if catalog.observations else 0,
        "account": catalog.account.origin if catalog.account else None,
        "idle_account_lines": catalog.account.idle(catalog.table) if catalog.account else [],
    }
    if as_json:
        render.print_json({**known, "providers": [asdict(one) for one in held]})
        return
    render.table(
        [
            Column("PROVIDER", keep=9),
            Column("OFFERS", right=True, keep=8),
            Column("TYPES", right=True, keep=5),
            Column("REGIONS", right=True, keep=4),
            *(Column(m.replace("_", "-").upper(), right=True, keep=3) for m in MARKETS),
            Column("OLDEST", keep=7),
            Column("NEWEST", keep=8),
        ],
        [
            [
                one.provider,
                f"{one.offers:,}",
                str(one.types),
                str(one.regions),
                *(f"{one.prices[market]:,}" if one.prices[market] else "" for market in MARKETS),
                one.oldest,
                one.newest,
            ]
            for one in held
        ],
    )
    render.note(
        f"\n{known['offers']:,} offers, {known['accelerators']} accelerators, "
        f"{known['instance_types']} instance types, {known['rates']} other rates; "
        f"{catalog.origin}, made {catalog.facts.made_at:%Y-%m-%d %H:%M}."
    )
    if catalog.account:
        render.note(f"Your account file: {catalog.account.origin}.")
        for line in catalog.account.idle(catalog.table):
            click.secho(line, fg="yellow")
    if catalog.observations:
        render.note(f"{known['observations']} observations of availability that have not expired.")


for each in (
    doctor.doctor, rates.rates, economics.economics, refresh.refresh, own.build, own.reset,
    own.observe,
):  # fmt: skip
    command.add_command(each)
