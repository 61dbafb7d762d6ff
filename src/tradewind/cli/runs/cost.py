"""`tradewind cost`: what runs cost, what was predicted, and what on demand would have cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock
from tradewind.base.errors import BadFile, InvalidValue, TradewindError
from tradewind.base.units import format_bytes, format_money, usd
from tradewind.cli import render
from tradewind.cli.base import Command
from tradewind.cli.render import Column

if TYPE_CHECKING:
    from tradewind.api.computer import Asked
    from tradewind.journal.runs_store import Loaded
    from tradewind.ledger.budgets import Standing
    from tradewind.ledger.outlook import Forecast, Unusual
    from tradewind.ledger.postings import RunCost
    from tradewind.ledger.report import Line, Report
    from tradewind.store import Store


@click.command(
    "cost",
    cls=Command,
    examples="""
    # every run, and what on demand would have cost
    tradewind cost
    # by project, since the first of the month
    tradewind cost --by project --since 2026-11-01
    # what a million tokens cost, and machines that idled
    tradewind cost --units --idle
    """,
)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--by",
    default="run",
    show_default=True,
    metavar="WHAT",
    help="run, leg, machine, project, user, tag:NAME, provider, market, instance_type, day, month.",
)
@click.option(
    "--since", metavar="WHEN", help="Only from then on: 2026-11-01, or 7d for 7 days ago."
)
@click.option("--until", metavar="WHEN", help="Only until then; a date includes its day.")
@click.option("--store", "url", metavar="URL", help="The store of the runs. Default: yours.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "--focus", metavar="FILE", help="Write the FOCUS 1.1 table (CSV) to FILE; - prints it."
)
@click.option(
    "--forecast", "with_forecast", is_flag=True, help="What this month will come to, with a range."
)
@click.option(
    "--unusual", "with_unusual", is_flag=True, help="Runs that cost 3 times others of their name."
)
@click.option(
    "--units",
    "with_units",
    is_flag=True,
    help="What a million tokens, an epoch or a thousand requests have cost.",
)
@click.option(
    "--idle", "with_idle", is_flag=True, help="Time of machines without work, and its price."
)
@click.option(
    "--chargeback",
    metavar="FILE",
    help="What each project is charged, with shared costs split by the rules in FILE.",
)
@click.option(
    "--warn",
    type=click.Choice(["due", "test"]),
    help="Send the budgets' warnings that are due, or a trial, by webhook and mail.",
)
@click.option(
    "--unread", metavar="AGE", help="What ended runs have left and nobody has fetched for so long."
)
def command(
    runs: tuple[str, ...],
    by: str,
    since: str | None,
    until: str | None,
    url: str | None,
    as_json: bool,
    as_csv: bool,
    focus: str | None,
    with_forecast: bool,
    with_unusual: bool,
    with_units: bool,
    with_idle: bool,
    chargeback: str | None,
    warn: str | None,
    unread: str | None,
) -> None:
    """What runs cost, what was predicted, and what on demand would have cost.

    RUN is a run's id or its beginning; without one, every run of the store counts. Days and months
    are UTC's."""
    from tradewind import store
    from tradewind.api import computer
    from tradewind.cli.runs import costmore, costwarn
    from tradewind.controller import budgetfile
    from tradewind.ledger import outlook
    from tradewind.ledger import report as reports
    from tradewind.ledger.budgets import standings

    if as_json + as_csv + (focus == "-") > 1:
        raise click.UsageError("--json, --csv and --focus - exclude each other")
    by = reports.check_by(by)
    now = clock.now()
    since_s, until_s = _span(since, until, now)
    now_s = int(now.timestamp())
    budgets = budgetfile.load()
    more = costmore.Asked(units=with_units, idle=with_idle, chargeback=chargeback, unread=unread)
    if more and (as_csv or focus == "-"):
        raise click.UsageError("--csv and --focus - are of the first table alone")
    if runs and chargeback:
        raise click.UsageError("a few runs cannot bear what all share: --chargeback without RUN")
    rules = more.rules()
    if warn is not None:
        costwarn.check(warn, budgets.tell, named=bool(runs))
    if warn == "test":
        costwarn.trial(budgets.tell)
        return
    opened = store.open(url)
    loaded, whole, troubles = costs_of(opened, runs, now_s)
    costs = _credited(opened, whole, bool(runs), now_s)
    mine = None if runs else computer.asked(opened)
    made = reports.report(costs, by, since_s, until_s)
    stands: list[Standing] = []
    if budgets and not runs:  # a few runs say nothing about their project
        # As controllers count it: nothing is bought on a discount that comes later.
        postings = [posting for cost in whole for posting in cost.postings]
        stands = standings(postings, budgets, now_s)
    every = [posting for cost in costs for posting in cost.postings]
    to_come = outlook.forecast(every, now_s) if with_forecast else None
    dear = outlook.unusual(costs) if with_unusual else []
    made_more = costmore.make(
        more,
        opened,
        loaded,
        costs,
        rules,
        by=by,
        since_s=since_s,
        until_s=until_s,
        now=now,
        named=bool(runs),
    )
    if focus is not None:
        _focus(costs, since_s, until_s, focus)
    if as_json:
        shown = _document(made, since_s, until_s, stands, troubles, mine)
        render.print_json(
            shown | _ahead(to_come, dear if with_unusual else None) | made_more.document
        )
    elif as_csv:
        render.print_csv(_FIELDS, [_fields(line) for line in made.lines])
    elif focus is None:
        _shown(made, stands, mine)
        _outlook(to_come, dear, with_unusual)
        made_more.show()
    if warn is not None:
        costwarn.due(opened, budgets.tell, stands)
    if troubles:
        raise _trouble(troubles)


def _span(since: str | None, until: str | None, now: datetime) -> tuple[int | None, int | None]:
    since_s = None if since is None else _moment(since, "--since", now, 0)
    until_s = None if until is None else _moment(until, "--until", now, 1)
    if since_s is not None and until_s is not None and until_s <= since_s:
        raise InvalidValue(f"--until {until} is not after --since {since}")
    return since_s, until_s


def _moment(text: str, option: str, now: datetime, days: int) -> int:
    """`days` are added to a date without a time."""
    from tradewind.base.units import parse_duration

    text = text.strip()
    try:
        if text[:4].isdecimal() and text[4:5] == "-":
            if len(text) == len("2026-11-01"):
                day = date.fromisoformat(text) + timedelta(days=days)
                return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
            moment = datetime.fromisoformat(text)
            return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        return int((now - timedelta(seconds=parse_duration(text))).timestamp())
    except (ValueError, OverflowError):  # also ours
        raise InvalidValue(
            f"{option} {text!r} is neither a date nor a length of time",
            hint="for example 2026-11-01, 2026-11-01T18:00 or 7d",
        ) from None


def costs_of(
    store: Store, names: Sequence[str], now_s: int
) -> tuple[list[Loaded], list[RunCost], list[tuple[str, TradewindError]]]:
    """Journals, what they come to, and what is wrong with which."""
    from tradewind.journal import runs_store
    from tradewind.ledger.postings import cost_of

    known = runs_store.run_ids(store)
    wanted = list(dict.fromkeys(runs_store.find(known, name) for name in names)) if names else known
    with render.busy(f"reading {render.count(len(wanted), 'journal')}"):
        loaded, troubles = runs_store.load_all(store, wanted)
    costs = []
    for one in loaded:
        try:
            costs.append(cost_of(one.run_id, one.events, now_s))
        except TradewindError as error:
            troubles.append((one.run_id, error))
    return loaded, costs, troubles


def _credited(store: Store, costs: list[RunCost], named: bool, now_s: int) -> list[RunCost]:
    """With discounts for sustained use, which depend on all runs of the store."""
    from tradewind.ledger import sustained

    if not sustained.is_any(costs):
        return costs
    every = costs_of(store, (), now_s)[1] if named else costs
    asked = {cost.run_id for cost in costs}
    return [cost for cost in sustained.credited(every) if cost.run_id in asked]


def _trouble(troubles: Sequence[tuple[str, TradewindError]]) -> TradewindError:
    told = "\n".join(f"{run_id} is not counted: {error.message}" for run_id, error in troubles)
    hints = {error.hint: None for _, error in troubles if error.hint}
    kinds = {type(error) for _, error in troubles}
    kind = kinds.pop() if len(kinds) == 1 else BadFile
    return kind(told, hint="; ".join(hints) or None)


# -- for people ----------------------------------------------------------------------------------


def _shown(made: Report, stands: Sequence[Standing], mine: Asked | None) -> None:
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


def _outlook(to_come: Forecast | None, dear: Sequence[Unusual], asked: bool) -> None:
    if to_come is not None:
        click.echo()
        low, high = (format_money(each, digits=2) for each in (to_come.low, to_come.high))
        render.paragraph(
            f"{to_come.month}: {format_money(to_come.spent, digits=2)} until now,"
            f" {format_money(to_come.likely, digits=2)} likely by its end; {low} to {high} in eight"
            f" of ten cases, if its {to_come.days_left:.1f} days left are like the last"
            f" {render.count(to_come.seen_days, 'day')}, which decides it."
        )
    if not asked:
        return
    click.echo()
    for one in dear:
        render.paragraph(
            f"{one.run_id} ({one.name}) cost {format_money(one.micros, digits=2)}:"
            f" {one.times:.1f}× its kind, {format_money(one.usual, digits=2)} in the middle of"
            f" {one.others} others."
        )
    if not dear:
        render.note("No run cost 3 times others of its name, of which there must be 3.")


def _ahead(to_come: Forecast | None, dear: Sequence[Unusual] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if to_come is not None:
        found["forecast"] = {
            "month": to_come.month,
            "spent_usd": usd(to_come.spent),
            "likely_usd": usd(to_come.likely),
            "low_usd": usd(to_come.low),
            "high_usd": usd(to_come.high),
            "days_left": round(to_come.days_left, 3),
            "seen_days": to_come.seen_days,
        }
    if dear is not None:
        found["unusual"] = [
            {
                "run": one.run_id,
                "name": one.name,
                "cost_usd": usd(one.micros),
                "usual_usd": usd(one.usual),
                "times": round(one.times, 3),
                "others": one.others,
            }
            for one in dear
        ]
    return found


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


# -- machine-readable ----------------------------------------------------------------------------

_FIELDS = (
    "what", "name", "outcome", "runs", "machines", "hours", "cost_usd", "estimated_usd",
    "sustained_usd", "store_usd", "machines_open", "predicted_usd", "difference_usd",
    "on_demand_usd", "saved_usd", "predicted_hours", "elapsed_hours",
)  # fmt: skip


def _fields(line: Line) -> dict[str, Any]:
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


def _document(
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
        "lines": [_fields(line) for line in made.lines],
        "total": _fields(made.total),
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


def _focus(costs: Sequence[RunCost], since_s: int | None, until_s: int | None, name: str) -> None:
    import csv
    import io

    from tradewind.base import ownfiles
    from tradewind.ledger import focus
    from tradewind.ledger.periods import between

    cut = (between(p, since_s, until_s) for cost in costs for p in cost.postings)
    rows = focus.rows(part for part in cut if part)
    if name == "-":
        render.print_csv(focus.COLUMNS, rows)
        return
    text = io.StringIO()
    writer = csv.DictWriter(text, focus.COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    ownfiles.replace(Path(name), text.getvalue().encode(), public=True)
    render.remark(f"written: {name} ({render.count(len(rows), 'row')}, FOCUS {focus.VERSION})")
