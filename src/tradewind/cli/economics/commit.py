"""`tradewind commit`: which reservations and savings plans to buy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind import catalog as catalogs
from tradewind.base import clock, csvfile
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.base.units import micros_from_usd, usd
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.catalog import Catalog
    from tradewind.economics.committing import Chosen, Commitment, Kind

_YEAR_H = 8760
_MOST_HOURS = 8760 * 3
_Key = tuple[str, str, str]


@click.command(
    "commit",
    cls=Command,
    examples="""
    # for what the ledger says was used in 30 days
    tradewind commit --store s3://my-runs --days 30
    # for a forecast, and how careful to be with it
    tradewind commit hours.csv --term 1y \\
        --less 40% --chance 25%
    """,
)
@click.argument("file", metavar="[HOURS.csv|TEAM.yaml]", required=False)
@click.option("--at", "at", metavar="PROVIDER/REGION/TYPE",
              help="With TEAM.yaml: the machine that its work is rented on.")  # fmt: skip
@click.option("--store", "url", metavar="URL", help="The hours that the ledger of a store tells.")
@click.option("--days", type=click.IntRange(1, 1095), default=30, show_default=True,
              help="How many of the ledger's last days.")  # fmt: skip
@click.option("--term", type=click.Choice(["1y", "3y"]), default="1y", show_default=True,
              help="The longest commitment that may be bought.")  # fmt: skip
@click.option("--reserve", "reserves", multiple=True, metavar="TYPE=TERM:PRICE",
              help="A reservation that you are offered: p5*=1y:65% of on-demand.")  # fmt: skip
@click.option("--plan", "plans", multiple=True, metavar="TYPES=TERM:SHARE",
              help="A savings plan that you are offered: g*=1y:70%.")  # fmt: skip
@click.option("--less", metavar="SHARE", help="Use may be so much less than thought, …")
@click.option("--chance", metavar="SHARE", help="… with this chance: the optimum is of both.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    file: str | None, at: str | None, url: str | None, days: int, term: str,
    reserves: tuple[str, ...], plans: tuple[str, ...], less: str | None, chance: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Which reservations and savings plans to buy for a forecast, a team or the ledger: the
    exact optimum over all hours, and what it costs if less is used than was thought.

    HOURS.csv has hour, provider, region, instance_type, machines; what is missing is 0.
    """
    from tradewind.cli.economics.own import share_of
    from tradewind.economics import committing

    if (file is None) == (url is None):
        raise InvalidValue(
            "the hours stand in one place: HOURS.csv or --store",
            hint="tradewind commit hours.csv (docs/commands/commit.md)",
        )
    of_team = file is not None and file.endswith((".yaml", ".yml"))
    if of_team != (at is not None):
        raise InvalidValue(
            "a team's file and --at go together: on which machine its work is rented",
            hint="tradewind commit team.yaml --at gcp/us-central1/a3-highgpu-8g",
        )
    if (less is None) != (chance is None):
        raise InvalidValue("--less and --chance go together", hint="--less 40% --chance 25%")
    catalog = catalogs.load()
    if file is not None and at is not None:
        wanted = _of_team(file, at, catalog)
    else:
        wanted = _of_file(Path(file)) if file is not None else _of_ledger(str(url), days)
    kinds, places = _kinds(catalog, wanted, strict=file is not None)
    offered = [
        *_sold(catalog, places, kinds, term),
        *_flexible(catalog, places, kinds, term),
        *_told(reserves, kinds, term, plan=False),
        *_told(plans, kinds, term, plan=True),
    ]
    hours = committing.hours_of(kinds, {_name(key): wanted[key] for key in places})
    found = committing.choose(
        hours, offered, less=share_of("--less", less), chance=share_of("--chance", chance)
    )
    many = len(next(iter(wanted.values())))
    if as_json:
        render.print_json(_document(found, kinds, offered, many))
    else:
        _show(found, offered, many, term)
        if less and chance:
            render.note(f"The best on average: {chance} of chance that use is {less} less.")


# -- what is wanted ------------------------------------------------------------------------------


def _of_file(path: Path) -> dict[_Key, list[float]]:
    found: dict[_Key, dict[int, float]] = {}
    last = -1
    for line, cells in csvfile.rows(path):
        try:
            hour = csvfile.number(cells, "hour", most=_MOST_HOURS)
            machines = csvfile.number(cells, "machines", most=1e6)
            key = (cells["provider"], cells["region"], cells["instance_type"])
            if hour is None or machines is None or hour != int(hour) or not all(key):
                raise InvalidValue("hour, provider, region, instance_type and machines are needed")
        except KeyError as error:
            raise BadFile(
                f"{path} line {line}: there is no column {error}",
                hint="hour, provider, region, instance_type, machines",
            ) from None
        except InvalidValue as error:
            raise BadFile(f"{path} line {line}: {error.message}", hint=error.hint) from None
        series = found.setdefault(key, {})
        if int(hour) in series:
            raise BadFile(f"{path} line {line}: hour {int(hour)} of {_name(key)} is there twice")
        series[int(hour)] = machines
        last = max(last, int(hour))
    if last < 0:
        raise BadFile(f"{path} has no rows", hint="docs/commands/commit.md")
    return {key: [series.get(h, 0.0) for h in range(last + 1)] for key, series in found.items()}


def _of_team(file: str, at: str, catalog: Catalog) -> dict[_Key, list[float]]:
    """A year of whole machines, as many as the work of each hour fills."""
    from tradewind.cli.economics.own import team_of
    from tradewind.economics import use

    provider, _, rest = at.partition("/")
    region, _, name = rest.partition("/")
    kind = catalog.instance_types(provider).get(name)
    if not region or kind is None or not kind.accelerator_count:
        raise InvalidValue(
            f"--at {at}: no such machine with accelerators is known",
            hint="PROVIDER/REGION/TYPE, as `tradewind offers` has them",
        )
    drawn = use.of_jobs(team_of(file, catalog).jobs, 1, 1)
    hours: list[float] = []
    for level, share in zip(drawn.levels, drawn.shares, strict=True):
        machines = math.ceil(round(level / kind.accelerator_count, 6))
        hours += [float(machines)] * round(share * _YEAR_H)
    return {(provider, region, name): hours}


def _of_ledger(url: str, days: int) -> dict[_Key, list[float]]:
    from tradewind import store
    from tradewind.cli.runs.cost import costs_of
    from tradewind.economics import history

    now_s = int(clock.now().timestamp())
    _, costs, troubles = costs_of(store.open(url), (), now_s)
    for run_id, error in troubles:
        render.remark(f"warning: {run_id} is not counted: {error.message}")
    found = history.hourly_by_type(costs, now_s - days * 86_400, now_s)
    if not found:
        raise NotFound(
            f"no machine on demand or reserved in the last {days} days", hint="a larger --days"
        )
    return {key: [float(n) for n in series] for key, series in found.items()}


def _name(key: _Key) -> str:
    return "/".join(key)


def _kinds(
    catalog: Catalog, wanted: dict[_Key, list[float]], *, strict: bool
) -> tuple[list[Kind], list[_Key]]:
    """Of a ledger, what has no price is left out; in a file it is a mistake."""
    from tradewind.economics.committing import Kind

    kinds: list[Kind] = []
    places: list[_Key] = []
    for key in sorted(wanted):
        provider, region, name = key
        selection = catalog.offers(
            provider=provider, region=region, instance_type=name, market="on_demand"
        )
        prices = [price.micros_hour for _, price in selection.priced()]
        if not prices and not strict and (kinds or len(wanted) > 1):
            render.remark(f"left out: {_name(key)} has no on-demand price")
            continue
        if not prices:
            raise NotFound(
                f"no on-demand price of {name} in {region} at {provider} is known",
                hint=f"`tradewind offers --provider {provider} --type '{name}'` shows where it is",
            )
        kinds.append(Kind(_name(key), usd(min(prices))))
        places.append(key)
    if not kinds:
        raise NotFound("nothing that was used has an on-demand price", hint="tradewind offers")
    return kinds, places


# -- what is offered -----------------------------------------------------------------------------


def _sold(
    catalog: Catalog, places: Iterable[_Key], kinds: Sequence[Kind], term: str
) -> list[Commitment]:
    """Reservations that the catalog has a price for."""
    from tradewind.economics.committing import Commitment

    found: list[Commitment] = []
    for key, kind in zip(places, kinds, strict=True):
        provider, region, name = key
        selection = catalog.offers(
            provider=provider, region=region, instance_type=name, market="reserved"
        )
        seen: dict[str, Commitment] = {}
        for offer, _ in selection.priced():
            for price in offer.prices:
                if price.market != "reserved" or price.mark or price.term not in _terms(term):
                    continue
                rate = usd(price.micros_hour)
                old = seen.get(price.term)
                if old is None or rate < old.rates[kind.name]:
                    day = price.as_of.isoformat() if price.as_of else ""
                    seen[price.term] = Commitment(
                        f"reserve {_name(key)}", price.term, {kind.name: rate}, source=price.source,
                        as_of=day,
                    )  # fmt: skip
        found += seen.values()
    return found


def _flexible(
    catalog: Catalog, places: Sequence[_Key], kinds: Sequence[Kind], term: str
) -> list[Commitment]:
    """Plans over a family of types, where the rates tell their share of on-demand, read and not
    recalled; headlines (`up to`) are no prices."""
    from tradewind.economics.committing import Commitment

    found = []
    for rate in catalog.rates:
        named = re.fullmatch(r"(\S+) flexible .*\b([13]) year", rate.item)
        if rate.category != "commitment" or rate.unit != "ratio" or not named or not rate.value:
            continue
        if rate.evidence not in ("seen", "derived") or f"{named[2]}y" not in _terms(term):
            continue
        rates = {
            kind.name: kind.on_demand * rate.value
            for key, kind in zip(places, kinds, strict=True)
            if key[0] == rate.provider and key[2].startswith(f"{named[1]}-")
        }
        if rates:
            found.append(
                Commitment(
                    f"{rate.provider} {rate.item.removesuffix(f' {named[2]} year')}",
                    f"{named[2]}y", rates, True, f"{rate.source}; of {rate.region}", rate.as_of,
                )
            )  # fmt: skip
    return found


def _told(
    texts: Sequence[str], kinds: Sequence[Kind], term: str, *, plan: bool
) -> list[Commitment]:
    from tradewind.economics.committing import Commitment

    option = "--plan" if plan else "--reserve"
    found: list[Commitment] = []
    for text in texts:
        match = re.fullmatch(r"(.+)=([13]y):\s*(\$?)([0-9.]+)(%?)\s*", text)
        if not match or (match[3] and match[5]) or (plan and match[3]):
            raise InvalidValue(
                f"{option} {text!r} is not TYPES=TERM:SHARE",
                hint=f"{option} 'p5*=1y:65%'" + ("" if plan else ", or 'p5*=1y:$40' an hour"),
            )
        if match[2] not in _terms(term):
            raise InvalidValue(f"{option} {text!r} is for longer than --term {term}")
        globs = [glob.strip() for glob in match[1].split(",")]
        figure = float(match[4]) / (100 if match[5] else 1)
        mine = [
            kind
            for kind in kinds
            if any(
                fnmatchcase(kind.name, g) or fnmatchcase(kind.name.split("/")[-1], g) for g in globs
            )
        ]
        if not mine:
            raise NotFound(
                f"{option} {text!r} is for none of the types that are used",
                hint=", ".join(kind.name for kind in kinds),
            )
        micros_from_usd(figure)
        rates = {k.name: figure if match[3] else figure * k.on_demand for k in mine}
        if plan:
            found.append(Commitment(f"plan {match[1]}", match[2], rates, True, "yours"))
        else:
            found += [
                Commitment(f"reserve {name}", match[2], {name: rate}, source="yours")
                for name, rate in rates.items()
            ]
    return found


def _terms(term: str) -> tuple[str, ...]:
    return ("1y",) if term == "1y" else ("1y", "3y")


# -- the answer ----------------------------------------------------------------------------------


def _show(found: Chosen, offered: Sequence[Commitment], many: int, term: str) -> None:
    from tradewind.economics.words import dollars

    year = _YEAR_H
    if not offered:
        render.paragraph(
            "Commit to nothing: no reservation or savings plan has a known price.", bold=True
        )
        render.note("--reserve and --plan take what you are offered; docs/commands/commit.md.")
        return
    if not found.bought:
        render.paragraph(
            f"Commit to nothing: every commitment of up to {term} costs more than these hours on "
            "demand.", bold=True,
        )  # fmt: skip
    else:
        render.paragraph(
            f"Commit: ${found.usd_hour * year:,.0f} a year instead of "
            f"${found.on_demand_usd_hour * year:,.0f} on demand, {found.saved:.0%} less.",
            bold=True,
        )
        share = found.break_even
        if share is not None:
            render.paragraph(
                f"What decides it: use. Below {share:.0%} of these hours commitments lose money."
            )
        click.echo()
        columns = [
            Column("BUY", grow=True, keep=9, least=20), Column("HOW MUCH", right=True, keep=9),
            Column("TERM", keep=8), Column("$ AN HOUR", right=True, keep=8),
            Column("$ FOR THE TERM", right=True, keep=7), Column("AS OF", keep=3),
            Column("SOURCE", grow=True, keep=4),
        ]  # fmt: skip
        rows = []
        for one in found.bought:
            c = one.commitment
            much = f"${one.amount:,.2f}/h" if c.plan else f"{one.amount:g}×"
            whole = one.usd_hour * year * int(c.term[0])
            rows.append(
                [c.name, much, c.term, f"{one.usd_hour:,.2f}", f"{whole:,.0f}", c.as_of, c.source]
            )
        render.table(columns, rows)
    click.echo()
    render.table(
        [
            Column("IF SO MUCH IS USED", keep=9), Column("COMMITTED, A YEAR", right=True, keep=9),
            Column("ON DEMAND", right=True, keep=9), Column("SAVED", right=True, keep=8),
        ],
        [
            [f"{f:.0%}", *(dollars(year * each) for each in (w, o, o - w))]
            for f, w, o in found.by_use
        ],
    )  # fmt: skip
    render.note(
        f"From {many:,} hours, taken for the whole term, and "
        f"{render.count(len(offered), 'commitment')} considered. "
        "Prices on demand are taken to stay: where they fall, commitments save less."
    )


def _document(
    found: Chosen, kinds: Sequence[Kind], offered: Sequence[Commitment], many: int
) -> dict[str, Any]:
    return {
        "hours": many,
        "kinds": [{"name": k.name, "on_demand_usd_hour": round(k.on_demand, 6)} for k in kinds],
        "considered": [
            {"name": c.name, "term": c.term, "plan": c.plan, "rates": dict(c.rates),
             "source": c.source, "as_of": c.as_of or None}
            for c in offered
        ],
        "buy": [
            {"name": b.commitment.name, "term": b.commitment.term, "plan": b.commitment.plan,
             "amount": round(b.amount, 6), "usd_hour": round(b.usd_hour, 6),
             "source": b.commitment.source, "as_of": b.commitment.as_of or None}
            for b in found.bought
        ],
        "usd_year": round(found.usd_hour * _YEAR_H, 2),
        "on_demand_usd_year": round(found.on_demand_usd_hour * _YEAR_H, 2),
        "saved_share": round(found.saved, 6),
        "break_even_use": found.break_even and round(found.break_even, 4),
        "by_use": [
            {"use": f, "committed_usd_year": round(w * _YEAR_H, 2),
             "on_demand_usd_year": round(o * _YEAR_H, 2)}
            for f, w, o in found.by_use
        ],
        "decided_by": ["use"],
    }  # fmt: skip
