"""`tradewind report`: all there is to say of a run, as a page, in a terminal or as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.report.figures import Curve, Report, Stay

_WIDTH = 48
_MOST_LEGS = 20
_LAST = 5
_MACHINES_OWN = "telemetry/"
_BLOCKS = "▁▂▃▄▅▆▇█"


@click.command(
    "report",
    cls=Command,
    examples="""
    # a page to send on (RUN: the id, or how it begins)
    tradewind report finetune --html finetune.html
    """,
)
@click.argument("run")
@click.option("--html", metavar="FILE", help="Write a page that opens offline.")
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: str, html: str | None, store_url: str | None, as_json: bool) -> None:
    """A page about a run, to share: its timeline, progress, loss, money and events.

    The page is one file that loads nothing from outside; without --html, the same in short."""
    from pathlib import Path

    from msgspec import to_builtins

    from tradewind import store as stores
    from tradewind.api.follow import Sight
    from tradewind.api.reporting import report_of
    from tradewind.cli.runs import runview
    from tradewind.journal import runs_store

    opened = stores.open(store_url)
    run_id = runview.named(opened, run)
    loaded = runs_store.load(opened, run_id)
    with render.busy(f"reading {run_id}"):
        made = report_of(Sight.of(opened, run_id, loaded.state, loaded.commits))
    if html is not None:
        from tradewind.base.ownfiles import replace
        from tradewind.web import report_page

        replace(Path(html), report_page.render(made).encode("utf-8", "replace"), public=True)
        render.remark(f"written: {html}")
    if as_json:
        render.print_json(to_builtins(made))
    elif html is None:
        show(made)


def show(report: Report, *, events: bool = True) -> None:
    from tradewind.report import words

    click.echo(f"{report.run_id}  {report.state.replace('_', ' ')}")
    render.paragraph(words.sentence(report))
    for text in words.simulated(report) or ():
        render.paragraph(text)
    if report.submitted is None:
        return
    click.echo()
    for name, text in _facts(report):
        render.labelled(f"  {name:<12}", text)
    _legs(report)
    curves = [curve for curve in report.curves if not curve.name.startswith(_MACHINES_OWN)]
    if curves:
        click.echo()
    for curve in curves[:4]:
        click.echo(f"  {curve.name[:11]:<12}{_spark(curve)}")
    if not events:
        return
    if report.events:
        click.echo()
    for line in report.events[-_LAST:]:
        moment = words.after((line.at - report.submitted).total_seconds())
        render.labelled(f"  {moment:<12}", line.words)
        if line.tail:
            click.echo(line.tail)
    if len(report.events) > _LAST:
        render.remark(f"all {len(report.events)} events: tradewind show {report.run_id}")


def _facts(report: Report) -> list[tuple[str, str]]:
    from tradewind.report.words import many, money, number, span

    spent, purse = report.seconds, report.money
    rows = []
    if spent.all > 0:
        parts = [
            f"{name} {span(seconds)} ({seconds / spent.all:.0%})"
            for name, seconds in (
                ("at work", spent.working),
                ("starting", spent.starting),
                ("without machines", spent.waiting),
            )
        ]
        rows.append(("time", ", ".join(parts)))
    by_market = ", ".join(f"{each.what} {money(each.micros)}" for each in purse.by_market)
    rows.append(("money", f"{money(purse.micros)}{f' ({by_market})' if by_market else ''}"))
    others = [
        (f"{name} {money(micros)}")
        for name, micros in (
            ("perfect foresight", purse.foresight),
            ("on demand alone", purse.alone),
            ("planned", purse.predicted),
            ("budget", purse.budget),
        )
        if micros is not None
    ]
    if others:
        rows.append(("beside", ", ".join(others)))
    lost = f", {number(report.lost)} steps made again" if report.steps else ""
    taken = f"{report.taken:,} interrupted, {len(report.refusals):,} launches refused"
    rows.append(("legs", f"{len(report.legs):,}, {taken}{lost}"))
    if report.checkpoints:
        kept = sum(each.there for each in report.checkpoints)
        rows.append(("saved", f"{many(len(report.checkpoints), 'checkpoint')}, {kept} kept"))
    rows += [("note", note) for note in report.notes]
    return rows


def _legs(report: Report) -> None:
    """A bar for each; of many, what they were by place."""
    from tradewind.cli.runs.show import timeline
    from tradewind.report.words import money, span

    if not report.legs:
        return
    click.echo()
    if len(report.legs) <= _MOST_LEGS:
        timeline([_as_shown(leg) for leg in report.legs])
    else:
        columns = [
            render.Column("MACHINES", grow=True),
            *(
                render.Column(name, right=True)
                for name in ("LEGS", "INTERRUPTED", "REFUSED", "HELD")
            ),
            render.Column("COST", right=True),
        ]
        rows = [
            (
                f"{zone.instance_type} {zone.market.replace('_', '-')} in {zone.place}",
                str(zone.legs),
                str(zone.taken),
                str(zone.refused),
                span(zone.held_s),
                money(zone.micros),
            )
            for zone in report.zones
            if zone.legs or zone.refused
        ]
        render.table(columns, rows[:_MOST_LEGS])


def _as_shown(leg: Stay) -> dict[str, object]:
    market = leg.market.replace("_", "-")
    return {
        "leg": leg.leg,
        "where": f"{leg.what} {market} in {leg.place}",
        "market": leg.market,
        "from": leg.since,
        "up": leg.up,
        "to": leg.until,
        "cause": leg.cause,
    }


def _spark(curve: Curve) -> str:
    """The curve in one line, from its first step to its last."""
    means = [bucket.mean for bucket in curve.buckets]
    wide = min(_WIDTH, max(render.columns() - 46, 12))  # figures stand beside it
    per = max(len(means) / wide, 1.0)
    groups = [means[int(at * per) : int((at + 1) * per)] for at in range(wide)]
    values = [sum(group) / len(group) for group in groups if group]
    low, high = min(values), max(values)
    reach = (high - low) or 1.0
    drawn = "".join(_BLOCKS[min(int(8 * (v - low) / reach), 7)] for v in values)
    return f"{drawn}  {means[0]:.4g} to {curve.last:.4g}, at best {curve.best:.4g}"
