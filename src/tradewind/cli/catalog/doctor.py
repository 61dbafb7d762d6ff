"""`tradewind catalog doctor`: what is not trusted, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import click

from tradewind.base import clock
from tradewind.base.units import format_money, usd
from tradewind.catalog import doubts, files
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.query import FRESH_WITHIN_DAYS
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.model import MARKETS


@click.command(
    "doctor",
    cls=Command,
    examples="""
    # every price of AWS that is not trusted
    tradewind catalog doctor -p aws -l 0
    """,
)
@click.option(
    "-p", "--provider", multiple=True, metavar="GLOB", help="Only this provider. Repeatable."
)
@click.option(
    "--kind",
    multiple=True,
    type=click.Choice(list(doubts.KINDS)),
    help="Only this kind of doubt. Repeatable.",
)
@click.option(
    "--fresh-within", metavar="TIME", help=f"What counts as stale. Default: {FRESH_WITHIN_DAYS}d."
)
@click.option(
    "-l",
    "--limit",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
    help="Examples of each doubt; 0 for all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, every row.")
def doctor(
    provider: tuple[str, ...],
    kind: tuple[str, ...],
    fresh_within: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List every price that is not trusted, and why; and what is known but has no price."""
    catalog, today = files.load(), clock.today()
    found = list(_doubtful(catalog, provider, fresh_within, today))
    sold = catalog.offers(provider=provider or None, include_marked=True, today=today)
    examined = set(catalog.table.columns["provider"].values)
    if provider:
        examined = set(sold.values("provider")) | {e["provider"] for e in found}
    report: dict[str, list[Any]] = {
        "doubtful": [entry for entry in found if not kind or entry["kind"] in kind],
        "unpriced_types": [
            {"provider": t.provider, "instance_type": t.name, "accelerator": t.accelerator}
            for t in doubts.unpriced(catalog.table, catalog.facts.instances)
            if t.provider in examined and not kind
        ],
        "refused_rows": [] if kind else list(catalog.facts.refused),
        "notes": [
            note
            for note in doubts.posted_spot(catalog.table)
            if not kind and note.partition(":")[0] in examined
        ],
    }
    prices = sum(
        columns.micros[row] is not None
        for columns in catalog.table.prices.values()
        for row in range(len(catalog.table))
        if catalog.table.columns["provider"][row] in examined
    )
    counts = Counter(entry["kind"] for entry in report["doubtful"])
    if as_json:
        render.print_json({**report, "counts": dict(counts), "prices": prices})
    else:
        _report(report, prices, limit)


def _doubtful(
    catalog: Catalog, provider: tuple[str, ...], fresh_within: str | None, today: date
) -> Iterator[dict[str, Any]]:
    """Every price in doubt, however the others of its offer may be."""
    selection = catalog.offers(
        provider=provider or None, market=MARKETS, fresh_within=fresh_within, today=today
    )
    for row, group, reason in selection.every_doubt():
        offer = catalog.table.offer(row)
        price = catalog.table.prices[group].price(row, group)
        yield {
            "kind": doubts.kind(reason),
            "reason": doubts.explain(reason),
            "provider": offer.provider,
            "region": offer.region,
            "zone": offer.zone or None,
            "instance_type": offer.instance_type,
            "accelerator": offer.accelerator or None,
            "accelerator_count": offer.accelerator_count,
            "market": group,
            "price_usd_per_hour": usd(price.micros_hour) if price else None,
            "as_of": price.as_of.isoformat() if price and price.as_of else None,
            "source": price.source if price else None,
        }


def _report(report: Mapping[str, Any], prices: int, limit: int) -> None:
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for entry in report["doubtful"]:
        by_kind.setdefault(entry["kind"], []).append(entry)
    for kind in sorted(by_kind, key=list(doubts.KINDS).index):
        entries = by_kind[kind]
        words = doubts.KINDS[kind]
        _heading(words if words == kind else f"{words} ({kind})", len(entries), "price")
        if kind in ("stale", "retired"):
            groups = Counter((e["as_of"] or "undated", e["provider"]) for e in entries)
            lines = [
                f"{name:<16} {day:<12} {render.count(number, 'price')}"
                for (day, name), number in sorted(groups.items())
            ]
            _lines(lines, 4 * limit)
        else:
            _lines([_sentence(entry) for entry in entries], limit)
    if report["unpriced_types"]:
        names = [f"{t['provider']} {t['instance_type']}" for t in report["unpriced_types"]]
        _heading("sold at no known price", len(names), "type")
        _lines(names, 2 * limit)
    if report["refused_rows"]:
        _heading("could not be read", len(report["refused_rows"]), "row")
        _lines(report["refused_rows"], limit)
    for line in report["notes"]:
        first, *later = render.wrapped(f"note: {line}", indent="  ")
        click.secho(first[:6], bold=True, nl=False)
        click.echo("\n".join([first[6:], *later]))
    render.note(
        f"{len(report['doubtful']):,} of {prices:,} prices are in doubt. They are kept, and left "
        "out of choices; `tradewind offers --all` shows them."
    )


def _heading(words: str, number: int, noun: str) -> None:
    click.secho(f"{words}: {render.count(number, noun)}", bold=True)


def _lines(lines: Sequence[str], limit: int) -> None:
    for line in lines[: limit or None]:
        render.paragraph(f"  {line}", indent="    ")
    if limit and len(lines) > limit:
        click.echo(f"  … and {len(lines) - limit:,} more; --limit 0 shows all")
    click.echo()


def _sentence(entry: Mapping[str, Any]) -> str:
    price = entry["price_usd_per_hour"]
    shown = "no price" if price is None else format_money(round(price * 1e6)) + "/h"
    place = entry["zone"] or entry["region"]
    what = f"{entry['provider']} {place} {entry['instance_type']}, {entry['market']}"
    return f"{what} {shown}: {entry['reason']}"
