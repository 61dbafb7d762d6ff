"""`tradewind cost`: what runs cost, what was predicted, and what on demand would have cost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from tradewind.base import clock
from tradewind.base.errors import BadFile, InvalidValue, TradewindError
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.journal.runs_store import Loaded
    from tradewind.ledger.budgets import Budgets, Standing
    from tradewind.ledger.postings import RunCost
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
@click.option("--forecast", is_flag=True, help="What this month will come to, with a range.")
@click.option("--unusual", is_flag=True, help="Runs that cost 3 times others of their name.")
@click.option(
    "--units",
    is_flag=True,
    help="What a million tokens, an epoch or a thousand requests have cost.",
)
@click.option("--idle", is_flag=True, help="Time of machines without work, and its price.")
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
    warn: str | None,
    **besides: Any,
) -> None:
    """What runs cost, what was predicted, and what on demand would have cost.

    RUN is a run's id or its beginning; without one, every run of the store counts. Days and months
    are UTC's."""
    from tradewind import store
    from tradewind.api import computer
    from tradewind.cli.runs import costdata, costmore, costtable, costviews, costwarn
    from tradewind.controller import budgetfile
    from tradewind.ledger import report as reports

    if as_json + as_csv + (focus == "-") > 1:
        raise click.UsageError("--json, --csv and --focus - exclude each other")
    by = reports.check_by(by)
    now = clock.now()
    since_s, until_s = _span(since, until, now)
    now_s = int(now.timestamp())
    budgets = budgetfile.load()
    asked = costmore.Asked(**besides)
    if asked.tables and (as_csv or focus == "-"):
        raise click.UsageError("--csv and --focus - are of the first table alone")
    if runs and asked.chargeback:
        raise click.UsageError("a few runs cannot bear what all share: --chargeback without RUN")
    rules = asked.rules()
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
    # A few runs say nothing about their project.
    stands = [] if runs else _standings(whole, budgets, now_s)
    more = costmore.make(
        asked,
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
        costdata.focus(costs, since_s, until_s, focus)
    if as_json:
        shown = costdata.document(made, since_s, until_s, stands, troubles, mine)
        render.print_json(shown | costdata.more(more))
    elif as_csv:
        render.print_csv(costdata.FIELDS, [costdata.fields(line) for line in made.lines])
    elif focus is None:
        costtable.show(made, stands, mine)
        costviews.show(more)
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
    wanted = list(dict.fromkeys(each for name in names for each in runs_store.all_of(known, name)))
    if not names:
        wanted = known
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


def _standings(costs: Sequence[RunCost], budgets: Budgets, now_s: int) -> list[Standing]:
    """As controllers count it: nothing is bought on a discount that comes later."""
    from tradewind.ledger.budgets import standings

    postings = [posting for cost in costs for posting in cost.postings]
    return standings(postings, budgets, now_s) if budgets else []


def _trouble(troubles: Sequence[tuple[str, TradewindError]]) -> TradewindError:
    told = "\n".join(f"{run_id} is not counted: {error.message}" for run_id, error in troubles)
    hints = {error.hint: None for _, error in troubles if error.hint}
    kinds = {type(error) for _, error in troubles}
    kind = kinds.pop() if len(kinds) == 1 else BadFile
    return kind(told, hint="; ".join(hints) or None)
