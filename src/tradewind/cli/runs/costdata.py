"""What `tradewind cost` gives programs: the fields of CSV, the JSON document, the FOCUS table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base import csvfile
from tradewind.base.units import usd
from tradewind.cli import render

if TYPE_CHECKING:
    from tradewind.api.computer import Asked
    from tradewind.base.errors import TradewindError
    from tradewind.cli.runs.costmore import More
    from tradewind.ledger.budgets import Standing
    from tradewind.ledger.chargeback import Charged
    from tradewind.ledger.idle import IdleLine
    from tradewind.ledger.outlook import Forecast, Unusual
    from tradewind.ledger.postings import RunCost
    from tradewind.ledger.report import Line, Report
    from tradewind.ledger.units import UnitCost
    from tradewind.upkeep.unread import Unread

FIELDS = (
    "what", "name", "outcome", "runs", "machines", "hours", "cost_usd", "estimated_usd",
    "sustained_usd", "store_usd", "machines_open", "predicted_usd", "difference_usd",
    "on_demand_usd", "saved_usd", "predicted_hours", "elapsed_hours",
)  # fmt: skip


def fields(line: Line) -> dict[str, Any]:
    def dollars(micros: int | None) -> float | None:
        return None if micros is None else usd(micros)

    return {
        "what": line.what,
        "name": line.name or None,
        "outcome": line.outcome or None,
        "runs": line.runs,
        "machines": line.machines,
        "hours": round(line.seconds / 3600, 4),
        "cost_usd": dollars(line.micros),
        "estimated_usd": dollars(line.estimated),
        "sustained_usd": dollars(line.sustained),
        "store_usd": dollars(line.store),
        "machines_open": line.open,
        "predicted_usd": dollars(line.predicted),
        "difference_usd": dollars(line.over_predicted),
        "on_demand_usd": dollars(line.on_demand),
        "saved_usd": dollars(line.saved),
        "predicted_hours": line.predicted_hours and round(line.predicted_hours, 4),
        "elapsed_hours": line.elapsed_hours,
    }


def document(
    made: Report,
    since_s: int | None,
    until_s: int | None,
    stands: Sequence[Standing],
    troubles: Sequence[tuple[str, TradewindError]],
    mine: Asked | None,
) -> dict[str, Any]:
    def moment(seconds: int | None) -> str | None:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()

    return {
        "by": made.by,
        "since": moment(since_s),
        "until": moment(until_s),
        "lines": [fields(line) for line in made.lines],
        "total": fields(made.total),
        "budgets": [
            {
                "project": stand.project or None,
                "month": stand.month,
                "budget_usd": usd(stand.budget.month),
                "what": stand.budget.what,
                "spent_usd": usd(stand.spent),
                "left_usd": usd(stand.left),
                "committed_usd": usd(stand.committed),
                "crossed_percent": list(stand.crossed),
                "words": stand.words,
            }
            for stand in stands
        ],
        "this_computer": mine
        and {
            "writes": mine.usage.writes,
            "reads": mine.usage.reads,
            "bytes_out": mine.usage.bytes_out,
            "cost_usd": usd(mine.micros),
        },
        "not_counted": [{"run": run_id, "why": error.message} for run_id, error in troubles],
    }


def more(found: More) -> dict[str, Any]:
    """What the document has besides: nothing of what was not asked for."""
    told: dict[str, Any] = {}
    if found.forecast is not None:
        told["forecast"] = _forecast(found.forecast)
    if found.unusual is not None:
        told["unusual"] = [_unusual(one) for one in found.unusual]
    if found.units is not None:
        told["units"] = [_unit(one) for one in found.units]
    if found.idle is not None:
        told["idle"] = [_idle(line) for line in found.idle]
    if found.charges is not None:
        told["chargeback"] = _charges(found.charges)
    if found.unread is not None:
        told["unread"] = {
            "runs": [_unread(one) for one in found.unread],
            "remove": f"tradewind sweep --unread {found.asked.unread or ''}",
        }
    return told


def _forecast(found: Forecast) -> dict[str, Any]:
    return {
        "month": found.month,
        "spent_usd": usd(found.spent),
        "likely_usd": usd(found.likely),
        "low_usd": usd(found.low),
        "high_usd": usd(found.high),
        "days_left": round(found.days_left, 3),
        "seen_days": found.seen_days,
    }


def _unusual(one: Unusual) -> dict[str, Any]:
    return {
        "run": one.run_id,
        "name": one.name,
        "cost_usd": usd(one.micros),
        "usual_usd": usd(one.usual),
        "times": round(one.times, 3),
        "others": one.others,
    }


def _unit(one: UnitCost) -> dict[str, Any]:
    return {
        "what": one.what,
        "unit": one.words,
        "done": one.done,
        "cost_usd": usd(one.micros),
        "unit_usd": one.usd,
        "runs": one.runs,
    }


def _idle(line: IdleLine) -> dict[str, Any]:
    return {
        "what": line.what,
        "paid_hours": round(line.seconds / 3600, 4),
        "cost_usd": usd(line.micros),
        "idle_hours": round(line.idle_s / 3600, 4),
        "idle_usd": usd(line.idle_micros),
        "by_why_usd": {why: usd(each) for why, each in line.by_why.items()},
    }


def _charges(found: Charged) -> dict[str, Any]:
    return {
        "projects": [
            {
                "project": each.project,
                "own_usd": usd(each.own),
                "shared_usd": dict(zip(found.rules, map(usd, each.parts), strict=True)),
                "charged_usd": usd(each.total),
            }
            for each in found.charges
        ],
        "charged_to_nobody_usd": {name: usd(micros) for name, micros in found.left},
    }


def _unread(one: Unread) -> dict[str, Any]:
    return {
        "run": one.run_id,
        "name": one.name,
        "outcome": one.outcome,
        "bytes": one.bytes,
        "month_usd": None if one.month is None else usd(one.month),
        "project": one.project or None,
        "since_s": round(one.since_s),
    }


def focus(costs: Sequence[RunCost], since_s: int | None, until_s: int | None, name: str) -> None:
    import csv
    import io

    from tradewind.base import ownfiles
    from tradewind.ledger import focus as table
    from tradewind.ledger.periods import between

    cut = (between(p, since_s, until_s) for cost in costs for p in cost.postings)
    rows = table.rows(part for part in cut if part)
    if name == "-":
        render.print_csv(table.COLUMNS, rows)
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, table.COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: csvfile.cell(each) for name, each in row.items()})
    ownfiles.replace(Path(name), text.getvalue().encode(), public=True)
    render.remark(f"written: {name} ({render.count(len(rows), 'row')}, FOCUS {table.VERSION})")
