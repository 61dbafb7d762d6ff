"""`tradewind offers`: search what can be rented."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.base.units import parse_duration, usd
from tradewind.catalog import doubts
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.query import FRESH_WITHIN_DAYS, SORTS, Selection
from tradewind.catalog.table import PRICE_GROUPS
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column
from tradewind.model import MARKETS, Offer, Price

if TYPE_CHECKING:
    from rich.text import Text

_ANY_AGE = "36500d"
_UNIT = {
    "accelerator-hour": "$/acc-h",
    "hour": "$/h",
    "pflop-hour": "$/PFLOP-h",
    "gb-hour": "$/GB-h",
}


@click.command(
    "offers",
    cls=Command,
    examples="""
    # machines with eight H100, cheapest first
    tradewind offers h100:8
    # spot in Europe, at least 80 GB, $2 an hour at most
    tradewind offers --market spot -r 'eu-*' -m 80GB \\
        --max-price '$2'
    # for a program
    tradewind offers a100 --json
    """,
)
@click.argument("accelerator", nargs=-1)
@click.option(
    "-a",
    "--accelerator",
    "named",
    multiple=True,
    metavar="NAME",
    help="Accelerator in any spelling (h100:8, A100 80G, v5e-16); 'none' for CPU-only. Repeatable.",
)
@click.option("-n", "--count", metavar="N", help="Exact number of accelerators in one machine.")
@click.option("-m", "--memory", metavar="SIZE", help="Least memory of each accelerator, e.g. 80GB.")
@click.option("-p", "--provider", multiple=True, metavar="GLOB", help="Provider. Repeatable.")
@click.option(
    "-r",
    "--region",
    multiple=True,
    metavar="GLOB",
    help="Region: EU, US, Asia, DE, 'eu-*'. Repeatable.",
)
@click.option("-z", "--zone", multiple=True, metavar="GLOB", help="Zone. Repeatable.")
@click.option(
    "-t",
    "--type",
    "instance_type",
    multiple=True,
    metavar="GLOB",
    help="Instance type. Repeatable.",
)
@click.option(
    "--market",
    multiple=True,
    metavar="MARKET",
    help="on_demand, spot or reserved. Repeatable; default: on_demand and spot, and what you hold.",
)
@click.option(
    "--max-price",
    metavar="MONEY",
    help="Highest price per hour for the whole machine, e.g. $2.50.",
)
@click.option(
    "--fresh-within",
    metavar="TIME",
    help=f"Leave out older prices, e.g. 30d. Default: {FRESH_WITHIN_DAYS}d.",
)
@click.option("--stale", is_flag=True, help="Also prices older than that.")
@click.option("--in-stock", is_flag=True, help="Only what was seen available and has not expired.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default=SORTS[0],
    show_default=True,
    help="Cheapest by this first.",
)
@click.option(
    "-l",
    "--limit",
    type=click.IntRange(min=0),
    help="Number of rows; 0 for all. Default: 20 in a table, else all.",
)
@click.option(
    "--all", "include_marked", is_flag=True, help="Also offers whose price is stale or in doubt."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option("--plot", metavar="FILE", help="Draw the prices into FILE.png, .svg or .html.")
@click.option(
    "--chart",
    type=click.Choice(["matrix", "regions"]),
    help="What to draw: providers × accelerators, or markets by region.",
)
def command(
    accelerator: tuple[str, ...],
    named: tuple[str, ...],
    count: str | None,
    memory: str | None,
    max_price: str | None,
    fresh_within: str | None,
    stale: bool,
    in_stock: bool,
    limit: int | None,
    as_json: bool,
    as_csv: bool,
    plot: str | None,
    chart: str | None,
    **plain: Any,
) -> None:
    """Search what can be rented, cheapest first.

    ACCELERATOR is a name in any spelling, with a count if you like: h100:8, 8xA100-80GB, v5e-16;
    of several, any will do. Prices that are stale or in doubt are left out, and the last lines say
    how many and why.
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other")
    if stale and fresh_within:
        raise click.UsageError("--stale and --fresh-within exclude each other")
    if chart and plot is None:
        raise click.UsageError("--chart says what --plot draws; there is no --plot")
    wanted = [*accelerator, *named]
    filters: dict[str, Any] = {
        "accelerator": wanted or None,
        "count": None if count is None else _count(count),
        "memory_at_least": memory,
        "max_price": max_price,
        "fresh_within": _ANY_AGE if stale else fresh_within,
        **{name: value or None for name, value in plain.items()},
    }
    catalog = catalogs.load()
    today = clock.today()
    selection = catalog.offers(**filters, today=today)
    if in_stock:
        selection = _in_stock(catalog, selection)
    if plot is not None:
        from tradewind.cli.catalog.plots import plot_offers

        plot_offers(catalog, selection, plot, chart)
        render.remark(f"drawn: {plot}")
        if not (as_json or as_csv):
            return
    shown = selection if not limit else selection[:limit]
    if as_json:
        render.print_json(_document(catalog, selection, shown, today))
    elif as_csv:
        rows = [_row(catalog, shown, i, today) for i in range(len(shown))]
        render.print_csv(_CSV, rows)
        if selection.left_out:
            render.remark(_left_out(selection, fresh_within))
    elif selection:
        _table(catalog, selection, 20 if limit is None else limit or len(selection), today)
        _notes(selection, 20 if limit is None else limit or len(selection), fresh_within)
    if not selection:
        raise _nothing(catalog, filters, selection, in_stock, fresh_within, today)


def _count(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1
    if not 0 <= number < 1e6:
        raise InvalidValue(f"--count {text}: not a number of accelerators", hint="for example 8")
    return number


def _in_stock(catalog: Catalog, selection: Selection) -> Selection:
    return selection.only(
        [i for i in range(len(selection)) if _stock(catalog, selection[i], selection.price(i))]
    )


def _stock(catalog: Catalog, offer: Offer, price: Price) -> bool | None:
    seen = catalog.observations.of(offer, price.market) if catalog.observations else None
    return seen.available if seen else None


# -- the table -----------------------------------------------------------------------------------


def _table(catalog: Catalog, selection: Selection, limit: int, today: date) -> None:
    sort = selection.query.sort
    shown = [(selection[i], selection.price(i)) for i in range(min(limit, len(selection)))]
    # The price by which a row was chosen must not be the one that finds no room.
    keep = dict.fromkeys(MARKETS, 5) | {price.market: 10 for _, price in shown}
    columns = [
        Column("PROVIDER", keep=9),
        Column("REGION, ZONE", keep=8, grow=True),
        Column("TYPE", keep=9, grow=True),
        Column("ACCELERATOR", keep=9),
        Column("GB", right=True, keep=4),
        Column("vCPU", right=True, keep=3),
        Column("RAM GB", right=True, keep=3),
        Column("ON-DEMAND", right=True, keep=keep["on_demand"]),
        Column("SPOT", right=True, keep=keep["spot"]),
        Column("RESERVED", right=True, keep=keep["reserved"]),
        Column(_UNIT[sort], right=True, keep=7) if sort != "hour" else Column(""),
        Column("AGE", right=True, keep=5),
        Column("STOCK", keep=4),
    ]
    rows = []
    for (offer, chosen), measure in zip(shown, selection.measures, strict=False):
        stock = _stock(catalog, offer, chosen)
        memory = offer.accelerator_memory_gb
        if memory is not None and offer.accelerator_count < 1:
            memory *= offer.accelerator_count  # of the slice
        rows.append(
            [
                offer.provider,
                place(offer),
                offer.instance_type,
                accelerators(offer),
                render.number(memory),
                render.number(offer.vcpus),
                render.number(offer.memory_gb),
                *(_price(offer.price(market), chosen) for market in MARKETS),
                render.money(measure) if sort != "hour" else "",
                age(chosen, today),
                {True: "yes", False: "no", None: ""}[stock],
            ]
        )
    render.table(columns, rows)


def _price(price: Price | None, chosen: Price) -> Text:
    """Bold if the row was chosen by it, with a `?` if it is in doubt, with its term if reserved."""
    from rich.text import Text

    if price is None:
        return Text("")
    words = " ".join(filter(None, (render.money(price.micros_hour), price.term)))
    if price.mark:
        return Text(f"{words}?", style="dim")
    same = (price.market, price.micros_hour) == (chosen.market, chosen.micros_hour)
    return Text(words, style="bold" if same else "")


def place(offer: Offer) -> str:
    """`us-central1-a`, `us-east-1 use1-az4`, `eastus`: the region once."""
    if offer.zone.lower().startswith(offer.region.lower()):
        return offer.zone
    return f"{offer.region} {offer.zone}".rstrip()


def accelerators(offer: Offer) -> str:
    if not offer.accelerator:
        return "–"
    return f"{render.number(offer.accelerator_count, digits=3)}× {offer.accelerator}"


def age(price: Price, today: date) -> str:
    return "" if price.as_of is None else f"{(today - price.as_of).days}d"


def _notes(selection: Selection, limit: int, fresh_within: str | None) -> None:
    shown = min(limit, len(selection))
    more = f"; --limit 0 shows all {len(selection):,}" if shown < len(selection) else ""
    doubt = " A ? is a price in doubt." if selection.query.include_marked else ""
    render.note(f"\n{render.count(shown, 'offer')} shown, dollars per hour{more}.{doubt}")
    if selection.left_out:
        render.note(_left_out(selection, fresh_within))


def _left_out(selection: Selection, fresh_within: str | None) -> str:
    """How many, why, and the providers of which nothing is left."""
    days = parse_duration(fresh_within) // 86_400 if fresh_within else FRESH_WITHIN_DAYS
    parts = []
    for kind, number in selection.left_out.most_common():
        words = doubts.KINDS[kind] + (f" (over {days} days old)" if kind == "stale" else "")
        parts.append(f"{number:,} {words}")
    stale = ""
    if "stale" in selection.left_out:
        stale = "--stale shows those that are old, "
    shown = "" if selection.query.include_marked else f"{stale}--all shows them, "
    words = f"Left out: {', '.join(parts)}. {shown}`tradewind catalog doctor` says why."
    wholly = _silent(selection)
    if selection and wholly:
        listed = ", ".join(wholly[:12]) + (" …" if len(wholly) > 12 else "")
        there = len({*selection.values("provider"), *wholly})
        words += f" Of {len(wholly)} of {there} providers nothing else is known: {listed}."
    return words


def _silent(selection: Selection) -> list[str]:
    """Providers that match, all of whose offers are in doubt."""
    providers = selection.table.columns["provider"]
    doubtful = {providers[row] for row, _ in selection.doubtful}
    return sorted(doubtful - set(selection.values("provider")))


def _old(selection: Selection, today: date) -> str:
    """`19 offers of paperspace, 785 days old`, where what matches is old and nothing else."""
    if set(selection.left_out) != {"stale"}:
        return ""
    moments = [date.fromisoformat(reason.rpartition(" ")[2]) for _, reason in selection.doubtful]
    ages = sorted({(today - moment).days for moment in moments})
    days = f"{ages[0]}" if len(ages) == 1 else f"{ages[0]} to {ages[-1]}"
    count = render.count(len(selection.doubtful), "offer")
    return f"{count} of {', '.join(_silent(selection))}, with prices that are {days} days old"


def _nothing(
    catalog: Catalog,
    filters: Mapping[str, Any],
    selection: Selection,
    in_stock: bool,
    fresh_within: str | None,
    today: date,
) -> NotFound:
    """Says which of the filters, left out alone, would let something through."""
    options = {
        "accelerator": "the accelerator", "count": "--count", "memory_at_least": "--memory",
        "provider": "--provider", "region": "--region", "zone": "--zone",
        "instance_type": "--type", "market": "--market", "max_price": "--max-price",
    }  # fmt: skip
    hints: list[str] = []
    old = "" if in_stock else _old(selection, today)
    if old:
        return NotFound(f"no fresh offer matches, but {old}", hint="--stale shows them")
    if in_stock:
        hints.append("nothing matching was seen in stock lately; leave out --in-stock")
    counts = _other_counts(catalog, filters, today)
    if counts:
        hints.append(f"it is sold in machines with {counts}")
    for name, words in options.items():
        if filters.get(name) is None or in_stock or (counts and name in ("accelerator", "count")):
            continue
        found = catalog.offers(**{**filters, name: None}, today=today)
        if found:
            hints.append(f"without {words} there are {len(found):,}")
        if found and name == "region":
            asked = [pattern.strip("*?").lower() for pattern in filters["region"]]
            regions = sorted(
                set(found.values("region")),
                key=lambda region: (not any(a in region.lower() for a in asked), region),
            )
            more = " …" if len(regions) > 8 else ""
            hints[-1] += f" ({', '.join(regions[:8])}{more})"
    if selection.left_out:
        hints.append(_left_out(selection, fresh_within))
    return NotFound("no offer matches", hint="; ".join(hints) or "see `tradewind offers --help`")


def _other_counts(catalog: Catalog, filters: Mapping[str, Any], today: date) -> str:
    """The counts in which the accelerators asked for are sold, where the one asked for is not."""
    names = [catalog.names.resolve(n) for n in filters["accelerator"] or () if n != "none"]
    if not names or (filters["count"] is None and not any(match.count for match in names)):
        return ""
    any_count = {"accelerator": [n for match in names for n in match.names], "count": None}
    found = catalog.offers(**{**filters, **any_count}, today=today)
    return ", ".join(f"{count:g}" for count in sorted(set(found.values("accelerator_count"))))


# -- machine-readable ----------------------------------------------------------------------------


def _document(catalog: Catalog, selection: Selection, shown: Selection, today: date) -> Any:
    return {
        "offers": [_row(catalog, shown, i, today) for i in range(len(shown))],
        "matched": len(selection),
        "left_out": dict(selection.left_out),
        "sort": selection.query.sort,
        "catalog": {"origin": catalog.origin, "made_at": catalog.facts.made_at.isoformat()},
    }


def _row(catalog: Catalog, selection: Selection, index: int, today: date) -> dict[str, Any]:
    offer, price = selection[index], selection.price(index)
    accelerator = catalog.accelerators.get(offer.accelerator)
    count, memory = offer.accelerator_count, offer.accelerator_memory_gb
    pflops = (accelerator.training_tflops or 0) / 1000 * count if accelerator else 0
    dollars = usd(price.micros_hour)

    def per(units: float | None) -> float | None:
        return round(dollars / units, 6) if units else None

    by_group = dict.fromkeys(PRICE_GROUPS) | {_group(p): p for p in offer.prices}
    return {
        "provider": offer.provider,
        "region": offer.region,
        "zone": offer.zone or None,
        "instance_type": offer.instance_type,
        "accelerator": offer.accelerator or None,
        "accelerator_count": count,
        "accelerator_memory_gb": memory,
        "vcpus": offer.vcpus,
        "memory_gb": offer.memory_gb,
        "local_nvme_gb": offer.local_nvme_gb,
        "network_gbps": offer.network_gbps,
        **{f"{g}_usd_per_hour": usd(p.micros_hour) if p else None for g, p in by_group.items()},
        "market": price.market,
        "price_usd_per_hour": dollars,
        "usd_per_accelerator_hour": per(count),
        "usd_per_pflop_hour": per(pflops),
        "usd_per_gb_hour": per(count * (memory or 0)),
        "source": price.source,
        "as_of": price.as_of.isoformat() if price.as_of else None,
        "age_days": (today - price.as_of).days if price.as_of else None,
        "in_stock": _stock(catalog, offer, price),
        "own": offer.own,
        "marks": [f"{_group(p)}: {p.mark}" for p in offer.prices if p.mark],
    }


def _group(price: Price) -> str:
    return next(g for g, kind in PRICE_GROUPS.items() if kind == (price.market, price.term))


_CSV = (
    "provider", "region", "zone", "instance_type", "accelerator", "accelerator_count",
    "accelerator_memory_gb", "vcpus", "memory_gb", "local_nvme_gb", "network_gbps",
    *(f"{group}_usd_per_hour" for group in PRICE_GROUPS),
    "market", "price_usd_per_hour", "usd_per_accelerator_hour", "usd_per_pflop_hour",
    "usd_per_gb_hour", "source", "as_of", "age_days", "in_stock", "own", "marks",
)  # fmt: skip
