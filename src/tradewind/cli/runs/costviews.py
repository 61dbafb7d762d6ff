"""What `tradewind cost` shows below its table: units, idle machines, charges, unread data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.units import format_bytes, format_count, format_money, usd
from tradewind.cli import render
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.ledger.chargeback import Charged
    from tradewind.ledger.idle import IdleLine
    from tradewind.ledger.units import UnitCost
    from tradewind.upkeep.unread import Unread


def units(found: Sequence[UnitCost], what: str, services_left_out: bool) -> None:
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


def idle(found: Sequence[IdleLine], what: str) -> None:
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


def charges(found: Charged) -> None:
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


def unread(found: Sequence[Unread], now_s: float, age: str) -> None:
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


def document(
    units: Sequence[UnitCost] | None,
    idle: Sequence[IdleLine] | None,
    charges: Charged | None,
    unread: tuple[Sequence[Unread], str] | None,
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if units is not None:
        found["units"] = [
            {"what": one.what, "unit": one.words, "done": one.done, "cost_usd": usd(one.micros),
             "unit_usd": one.usd, "runs": one.runs}
            for one in units
        ]  # fmt: skip
    if idle is not None:
        found["idle"] = [
            {"what": line.what, "paid_hours": round(line.seconds / 3600, 4),
             "cost_usd": usd(line.micros), "idle_hours": round(line.idle_s / 3600, 4),
             "idle_usd": usd(line.idle_micros),
             "by_why_usd": {why: usd(each) for why, each in line.by_why.items()}}
            for line in idle
        ]  # fmt: skip
    if charges is not None:
        found["chargeback"] = {
            "projects": [
                {"project": each.project, "own_usd": usd(each.own),
                 "shared_usd": dict(zip(charges.rules, map(usd, each.parts), strict=True)),
                 "charged_usd": usd(each.total)}
                for each in charges.charges
            ],
            "charged_to_nobody_usd": {name: usd(micros) for name, micros in charges.left},
        }  # fmt: skip
    if unread is not None:
        found["unread"] = {
            "runs": [
                {"run": one.run_id, "name": one.name, "outcome": one.outcome, "bytes": one.bytes,
                 "month_usd": None if one.month is None else usd(one.month),
                 "project": one.project or None, "since_s": round(one.since_s)}
                for one in unread[0]
            ],
            "remove": f"tradewind sweep --unread {unread[1]}",
        }  # fmt: skip
    return found
