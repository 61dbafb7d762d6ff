"""What `tradewind cost` shows people: its table, the notes below it, and how budgets stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tradewind.base.units import format_bytes, format_money
from tradewind.cli import render
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.api.computer import Asked
    from tradewind.ledger.budgets import Standing
    from tradewind.ledger.report import Line, Report


def show(made: Report, stands: Sequence[Standing], mine: Asked | None) -> None:
    if not made.lines:
        click.echo("No run has cost anything yet, or none in that time.")
    else:
        _table(made)
        _notes(made)
    if mine:
        render.note(
            f"Besides, in no run: {format_money(mine.micros, digits=4)} for what this computer has"
            f" asked of the bucket until now, {mine.usage.writes + mine.usage.reads:,} requests and"
            f" {format_bytes(mine.usage.bytes_out, digits=3)} out of its cloud."
        )
    if stands:
        _budgets(stands)


def _table(made: Report) -> None:
    columns = [
        Column(made.by.upper().replace("_", " "), grow=True, least=18, keep=9),
        Column("NAME", grow=True, keep=6, least=8),
        Column("ENDED", keep=2),
        Column("MACHINES", right=True, keep=3),
        Column("HOURS", right=True, keep=5),
        Column("COST", right=True, keep=9),
        Column("", keep=9),
        Column("PREDICTED", right=True, keep=7),
        Column("DIFFERENCE", right=True, keep=7),
        Column("ON DEMAND", right=True, keep=4),
        Column("SAVED", right=True, keep=8),
    ]
    rows = [_cells(line) for line in made.lines]
    if len(rows) > 1:
        # Below an empty column, a figure of the total's would only puzzle.
        total = _cells(made.total)
        filled = [any(row[i] for row in rows) for i in range(len(total))]
        rows.append([cell if there else "" for cell, there in zip(total, filled, strict=True)])
    render.table(columns, rows)


def _cells(line: Line) -> list[str]:
    saved = render.money(line.saved)
    if line.saved and line.on_demand:
        saved += f" {100 * line.saved / line.on_demand:.0f}%"
    return [
        line.what,
        line.name,
        line.outcome.replace("_", " "),
        render.number(line.machines),
        f"{line.seconds / 3600:,.1f}" if line.seconds >= 3600 else f"{line.seconds / 3600:.3f}",
        ("~" if line.estimated else "") + render.money(line.micros),
        "…so far" if line.open else "",
        render.money(line.predicted),
        _signed(line.over_predicted),
        render.money(line.on_demand),
        saved,
    ]


def _signed(micros: int | None) -> str:
    text = render.money(micros)
    return f"+{text}" if micros and micros > 0 else text


def _notes(made: Report) -> None:
    total = made.total
    parts = [f"{render.count(total.runs, 'run')}, dollars; hours are machines' added up."]
    if total.open:
        parts.append(f"…so far: {render.count(total.open, 'machine')} still up, counted until now.")
    if total.sustained:
        parts.append(
            f"{format_money(total.sustained, digits=2)} was taken off for sustained use: what"
            " machines on demand cost less, the longer they are up in a month."
        )
    if total.store:
        parts.append(
            f"{format_money(total.store, digits=4)} of it is for the store: requests, traffic"
            " between regions, and what lay there."
        )
    if total.kept_month:
        parts.append(
            f"Left in the store when runs were closed: {format_bytes(total.kept, digits=3)},"
            f" {format_money(total.kept_month, digits=2)} a month until it is removed."
        )
    if total.estimated:
        parts.append(
            f"~ holds estimates, {format_money(total.estimated, digits=2)} in all: data that was"
            " moved, what lay in the store, and machines that their provider forgot."
        )
    click.echo()
    for part in parts:
        render.note(part)


def _budgets(stands: Sequence[Standing]) -> None:
    click.echo()
    columns = [
        Column(f"BUDGET {stands[0].month}", grow=True, keep=9),
        Column("MONTH", right=True, keep=8),
        Column("SPENT", right=True, keep=8),
        Column("", right=True, keep=8),
        Column("", grow=True, keep=6, least=30),
    ]
    rows = [
        [
            stand.project or "(none)",
            render.money(stand.budget.month),
            render.money(stand.spent),
            f"{100 * stand.share:.0f}%",
            stand.words,
        ]
        for stand in stands
    ]
    render.table(columns, rows)
