"""What `tradewind cost` shows people below its table: costmore.py has reckoned it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tradewind.base.units import format_bytes, format_count, format_money
from tradewind.cli import render
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.cli.runs import costmore
    from tradewind.ledger.chargeback import Charged
    from tradewind.ledger.idle import IdleLine
    from tradewind.ledger.outlook import Forecast, Unusual
    from tradewind.ledger.units import UnitCost
    from tradewind.upkeep.unread import Unread


def show(found: costmore.More) -> None:
    if found.forecast is not None:
        _forecast(found.forecast)
    if found.unusual is not None:
        _unusual(found.unusual)
    if found.charges is not None:
        _charges(found.charges)
    if found.units is not None:
        _units(found.units, found.by, found.services_left_out)
    if found.idle is not None:
        _idle(found.idle, found.idle_by)
    if found.unread is not None:
        _unread(found.unread, found.now_s, found.asked.unread or "")


def _forecast(found: Forecast) -> None:
    click.echo()
    low, high = (format_money(each, digits=2) for each in (found.low, found.high))
    render.paragraph(
        f"{found.month}: {format_money(found.spent, digits=2)} until now,"
        f" {format_money(found.likely, digits=2)} likely by its end; {low} to {high} in eight"
        f" of ten cases, if its {found.days_left:.1f} days left are like the last"
        f" {render.count(found.seen_days, 'day')}, which decides it."
    )


def _unusual(found: Sequence[Unusual]) -> None:
    click.echo()
    for one in found:
        render.paragraph(
            f"{one.run_id} ({one.name}) cost {format_money(one.micros, digits=2)}:"
            f" {one.times:.1f}× its kind, {format_money(one.usual, digits=2)} in the middle of"
            f" {one.others} others."
        )
    if not found:
        render.note("No run cost 3 times others of its name, of which there must be 3.")


def _units(found: Sequence[UnitCost], what: str, services_left_out: bool) -> None:
    click.echo()
    if services_left_out:
        render.note(
            "Services are left out: how many requests were answered is known for all of their time"
            " alone, without RUN, --since and --until."
        )
    if not found:
        render.note("No run tells what its work comes to, in tokens, samples, epochs or steps.")
        return
    columns = [
        Column(what.upper(), grow=True, least=18, keep=9),
        Column("RUNS", right=True, keep=3),
        Column("COST", right=True, keep=8),
        Column("DONE", right=True, keep=8),
        Column("A UNIT COSTS", right=True, keep=9),
        Column("", keep=9),
    ]
    rows = [
        [
            one.what,
            render.number(one.runs),
            render.money(one.micros),
            _amount(one.done),
            "nothing done" if one.usd is None else f"{one.usd:,.4g}",
            "" if one.usd is None else f"per {one.words}",
        ]
        for one in found
    ]
    render.table(columns, rows)
    render.note("Done is what is kept: what was lost and made again is in the price.")


def _amount(done: float) -> str:
    return format_count(round(done), digits=3) if done >= 1000 else f"{done:,.4g}"


def _idle(found: Sequence[IdleLine], what: str) -> None:
    from tradewind.ledger.idle import ENDING, IDLE, STARTING

    click.echo()
    if not found:
        render.note("No machine was paid for.")
        return
    columns = [
        Column(what.upper(), grow=True, least=18, keep=9),
        Column("PAID HOURS", right=True, keep=5),
        Column("IDLE HOURS", right=True, keep=8),
        Column("IDLE COST", right=True, keep=9),
        Column("OF ALL", right=True, keep=7),
        *(Column(why.upper(), right=True, keep=4) for why in (STARTING, IDLE, ENDING)),
    ]
    rows = [
        [
            line.what,
            f"{line.seconds / 3600:,.1f}",
            f"{line.idle_s / 3600:,.2f}",
            "~" + render.money(line.idle_micros),
            f"{100 * line.idle_micros / line.micros:.1f}%" if line.micros else "",
            *(render.money(line.by_why.get(why, 0)) for why in (STARTING, IDLE, ENDING)),
        ]
        for line in found
    ]
    render.table(columns, rows)
    render.note(
        "Idle: paid for before all machines of a leg had reported, while its job made neither a"
        " step nor any use of them, and after the leg was over."
    )


def _charges(found: Charged) -> None:
    click.echo()
    columns = [
        Column("PROJECT", grow=True, least=12, keep=9),
        Column("OWN", right=True, keep=7),
        *(Column(name, right=True, keep=6) for name in found.rules),
        Column("CHARGED", right=True, keep=9),
    ]
    rows = [
        [
            each.project,
            render.money(each.own),
            *(render.money(part) for part in each.parts),
            render.money(each.total),
        ]
        for each in found.charges
    ]
    sums = [sum(each.parts[n] for each in found.charges) for n in range(len(found.rules))]
    rows.append(
        [
            "total",
            render.money(sum(each.own for each in found.charges)),
            *(render.money(each) for each in sums),
            render.money(sum(each.total for each in found.charges)),
        ]
    )
    render.table(columns, rows)
    for name, micros in found.left:
        render.note(
            f"{format_money(micros, digits=2)} of {name!r} is charged to nobody: no project has"
            " anything by which to split it."
        )


def _unread(found: Sequence[Unread], now_s: float, age: str) -> None:
    click.echo()
    if not found:
        render.note(f"Nothing of a run that is over is unread for {age}.")
        return
    columns = [
        Column("UNREAD", grow=True, least=18, keep=9),
        Column("NAME", grow=True, keep=4, least=8),
        Column("ENDED", keep=5),
        Column("SIZE", right=True, keep=9),
        Column("A MONTH", right=True, keep=7),
        Column("LAST READ OR WRITTEN", right=True, keep=8),
    ]
    rows = [
        [
            one.run_id,
            one.name,
            one.outcome.replace("_", " "),
            format_bytes(one.bytes, digits=3),
            render.money(one.month),
            f"{int((now_s - one.since_s) // 86_400)} days ago",
        ]
        for one in found
    ]
    render.table(columns, rows)
    size = sum(one.bytes for one in found)
    render.note(
        f"{format_bytes(size, digits=3)} that no command of Tradewind has fetched for {age}; what"
        " other programs have read is not known."
    )
    click.echo(f"Remove it: tradewind sweep --unread {age}")
