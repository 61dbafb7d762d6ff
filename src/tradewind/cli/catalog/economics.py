"""`tradewind catalog economics`: the figures about everything beside rented machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock, ownfiles
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.economics.facts import Fact

_MOST_REFUSED = 20


@click.command(
    "economics",
    cls=Command,
    examples="""
    # which tables, how much, how doubtful
    tradewind catalog economics
    # what servers cost, and who says so
    tradewind catalog economics own server_price
    """,
)
@click.argument("table", required=False)
@click.argument("words", nargs=-1)
@click.option("--doubtful", is_flag=True, help="Only figures that are in doubt, and why.")
@click.option("--from", "folder", metavar="DIR", help="Compile the CSV tables of a folder instead.")
@click.option("--out", metavar="DIR", help="Where to write what was compiled.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def economics(
    table: str | None,
    words: tuple[str, ...],
    doubtful: bool,
    folder: str | None,
    out: str | None,
    as_json: bool,
) -> None:
    """Own hardware, electricity and carbon, managed services, serverless, edge devices, latencies,
    published break-evens: each figure with its date and source. WORDS narrow TABLE down."""
    from tradewind.economics import facts

    if (folder is None) != (out is None):
        raise InvalidValue("--from and --out go together", hint="--from DIR --out DIR")
    if folder is not None and out is not None:
        _compile(Path(folder), Path(out))
        return
    if table is None:
        _tables(as_json)
        return
    rows = [
        row
        for row in facts.table(table).rows
        if (row["doubt"] or not doubtful)
        and all(any(word.lower() in cell.lower() for cell in row.cells.values()) for word in words)
    ]
    if not rows:
        raise NotFound(f"nothing in {table} has all of: {' '.join(words)}")
    if as_json:
        render.print_json([{**row.cells, **row.numbers} for row in rows])
        return
    _shown(table, rows)


def _compile(folder: Path, out: Path) -> None:
    from tradewind.economics import build, facts

    for name in facts.TABLES:
        made = build.build(folder, name, made_on=clock.today())
        data = facts.encode(made)
        ownfiles.replace(out / f"{name}.json.gz", data, public=True)
        doubts = sum(bool(row["doubt"]) for row in made.rows)
        click.echo(f"{name}: {len(made.rows):,} figures, {doubts:,} doubtful ({len(data):,} bytes)")
        for line in made.refused[:_MOST_REFUSED]:
            render.remark(f"refused: {line}")
        if len(made.refused) > _MOST_REFUSED:
            render.remark(f"refused: … and {len(made.refused) - _MOST_REFUSED:,} more rows")


def _tables(as_json: bool) -> None:
    from tradewind.economics import facts

    found: list[dict[str, Any]] = []
    for name in facts.TABLES:
        table = facts.table(name)
        days = sorted(facts.day_of(row["as_of"]) for row in table.rows)
        found.append(
            {
                "table": name,
                "figures": len(table.rows),
                "doubtful": sum(bool(row["doubt"]) for row in table.rows),
                "oldest": days[0].isoformat(),
                "newest": days[-1].isoformat(),
                "made_at": table.made_at,
                "refused": list(table.refused),
            }
        )
    if as_json:
        render.print_json(found)
        return
    columns = [
        Column("TABLE", keep=9),
        Column("FIGURES", right=True),
        Column("DOUBTFUL", right=True),
    ]
    columns += [Column("OLDEST"), Column("NEWEST"), Column("COMPILED")]
    render.table(
        columns,
        [
            [
                *(one["table"], f"{one['figures']:,}", f"{one['doubtful']:,}"),
                *(one["oldest"], one["newest"], one["made_at"]),
            ]
            for one in found
        ],
    )


def _shown(table: str, rows: list[Fact]) -> None:
    from tradewind.economics.facts import TABLES

    known = TABLES[table]
    columns = [Column(name.upper(), grow=True, least=12, keep=9) for name in known.keys]
    columns += [Column(name.upper(), right=True, keep=8) for name in known.numbers]
    columns += [Column("UNIT", keep=7), Column("AS OF", keep=6)]
    columns += [Column("DOUBT", grow=True, least=10, keep=3), Column("SOURCE", grow=True, keep=5)]
    render.table(
        columns,
        [
            [
                *(row[name] for name in known.keys),
                *(_figure(row.number(name)) for name in known.numbers),
                *(row[name] for name in ("unit", "as_of", "doubt", "source")),
            ]
            for row in rows
        ],
    )


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.10g}"
