"""`tradewind catalog …`: look after the price catalog."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import click

from tradewind import clock
from tradewind.catalog import doubts, files, summary
from tradewind.catalog.catalog import Catalog
from tradewind.catalog.files import BUILT_IN
from tradewind.catalog.query import FRESH_WITHIN_DAYS, literal
from tradewind.cli import render
from tradewind.cli.base import Group
from tradewind.cli.render import Column
from tradewind.errors import InvalidValue, NotFound, SourceFailed
from tradewind.model import MARKETS
from tradewind.units import format_money, parse_duration, usd


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


# -- status --------------------------------------------------------------------------------------


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


# -- doctor --------------------------------------------------------------------------------------


@command.command(
    "doctor",
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


# -- refresh -------------------------------------------------------------------------------------


@command.command(
    "refresh",
    examples="""
    # all sources whose keys are set
    tradewind catalog refresh
    # these two, patiently
    tradewind catalog refresh -p aws -p azure --timeout 5m
    """,
)
@click.option(
    "-p", "--provider", multiple=True, metavar="NAME", help="Only this provider. Repeatable."
)
@click.option(
    "--timeout",
    metavar="TIME",
    default="60s",
    show_default=True,
    help="Longest silence of a source.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 10),
    default=4,
    show_default=True,
    help="How often to ask again.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def refresh(provider: tuple[str, ...], timeout: str, retries: int, as_json: bool) -> int:
    """Renew prices from the providers' own sources.

    Without --provider, every source is asked that needs no key or whose key is in the environment.
    A provider that fails keeps its old rows. At the end the new catalog replaces the old one.
    """
    from urllib.request import getproxies

    from tradewind.catalog.refresh import apply, ask_all
    from tradewind.catalog.refresh.http import Http

    now = clock.now().replace(microsecond=0)
    env = os.environ
    asked, passed_over = _sources(provider)
    http = Http(
        retries=retries,
        read_timeout_s=max(1, parse_duration(timeout)),
        proxies=getproxies(),
    )
    facts = files.load(account=False).facts
    with render.bars(asked, quiet=as_json) as progress:
        answers = ask_all(facts, asked, http=http, env=env, now=now, progress=progress)
    home = files.home()
    if all(answer.outcome.failed for answer in answers):
        result = apply(facts, answers, now)
    else:
        with files.locked(home):
            # Read afresh: somebody else may have renewed other providers meanwhile.
            result = apply(files.load(account=False).facts, answers, now)
            files.save(result.facts, home / "catalog.json.gz")
        files.record(result.observations, home, now)
    if as_json:
        render.print_json([_outcome(o) for o in result.outcomes])
    else:
        _tell(result.outcomes, passed_over, renewed_at=str(files.home() / "catalog.json.gz"))
    failed = [o for o in result.outcomes if o.failed]
    return SourceFailed.exit_code if failed else 0


def _sources(wanted: tuple[str, ...]) -> tuple[list[str], list[tuple[str, str]]]:
    """The providers to ask, and those passed over with the variable they need."""
    from tradewind.catalog.names import nearest, provider_name
    from tradewind.catalog.refresh import SOURCES, source

    if wanted:
        names = [provider_name(name) for name in wanted]
        for name in names:
            if name not in SOURCES:
                close = nearest(name, SOURCES)
                raise NotFound(
                    f"there is no live price source for {name!r}",
                    hint=f"did you mean {close[0]}?" if close else f"known: {', '.join(SOURCES)}",
                    choices=close,
                )
        return list(dict.fromkeys(names)), []
    asked, passed_over = [], []
    for name in SOURCES:
        missing = [c for c in source(name).credentials if not os.environ.get(c)]
        if missing:
            passed_over.append((name, missing[0]))
        else:
            asked.append(name)
    return asked, passed_over


def _tell(outcomes: list[Any], passed_over: list[tuple[str, str]], *, renewed_at: str) -> None:
    for outcome in outcomes:
        change = outcome.change
        if change:
            click.echo(
                f"{outcome.provider}: {change.renewed:,} prices renewed, {change.changed:,} moved; "
                f"{change.added:,} offers new, {change.delisted:,} no longer sold"
            )
        else:
            click.secho(f"{outcome.provider}: failed, its old rows stay", fg="red", err=True)
            click.echo(f"  {outcome.failed}".replace("\n", "\n  "), err=True)
        if change and change.unbelieved:
            click.secho(
                f"  {change.unbelieved:,} offers were not listed, too many at once to be believed; "
                "they stay as they were",
                fg="yellow",
            )
        for reason, number in outcome.skipped.most_common(5):
            render.note(f"  {number:,} × {reason}")
        if len(outcome.skipped) > 5:
            render.note(f"  … and {len(outcome.skipped) - 5} more reasons; --json shows all")
    if passed_over:
        names = ", ".join(f"{name} (${variable})" for name, variable in passed_over)
        render.note(f"Not asked, for want of a key: {names}.")
    if any(o.change for o in outcomes):
        render.note(f"Written to {renewed_at}; doubtful prices: `tradewind catalog doctor`.")
    else:
        render.note("Nothing was renewed; the catalog is as it was.")


def _outcome(outcome: Any) -> dict[str, Any]:
    change = outcome.change
    return {
        "provider": outcome.provider,
        "ok": change is not None,
        "error": str(outcome.failed) if outcome.failed else None,
        "renewed": change.renewed if change else 0,
        "changed": change.changed if change else 0,
        "added": change.added if change else 0,
        "delisted": change.delisted if change else 0,
        "unbelieved": change.unbelieved if change else 0,
        "skipped": dict(outcome.skipped),
    }


# -- build, reset, observe -----------------------------------------------------------------------


@command.command(
    "build",
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


@command.command(
    "reset",
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


@command.command(
    "observe",
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
