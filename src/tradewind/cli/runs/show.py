"""`tradewind show`: one run, its legs as a timeline, and what happened with the reasons."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tradewind.base.errors import TradewindError
from tradewind.base.plaintext import one_line, visible
from tradewind.cli import render
from tradewind.cli.base import Command

if TYPE_CHECKING:
    from tradewind.api.follow import Sight
    from tradewind.journal.runs_store import Loaded
    from tradewind.model.run import Spec
    from tradewind.store.base import Store

_WIDTH, _LEAST, _LABEL = 48, 20, 10
_WORDS, _LINES = 3, 12


@click.command(
    "show",
    cls=Command,
    examples="""
    # RUN is the id, or how it begins
    tradewind show finetune
    """,
)
@click.argument("run")
@click.option("--store", "store_url", metavar="URL", help="Store of the run.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(run: str, store_url: str | None, as_json: bool) -> None:
    """One run: how it stands, its legs as a timeline, its events with their reasons."""
    from msgspec import to_builtins

    from tradewind import store as stores
    from tradewind.api import owned
    from tradewind.api.follow import Sight
    from tradewind.api.legs import legs_of
    from tradewind.cli.runs import ps, runview
    from tradewind.journal import runs_store
    from tradewind.telemetry.diagnose import diagnose

    opened = stores.open(store_url)
    run_id = runview.named(opened, run)
    loaded = runs_store.load(opened, run_id)
    sight = Sight.of(opened, run_id, loaded.state, loaded.commits)
    with suppress(TradewindError):  # then what was recorded must do
        sight.feel()
    legs = [to_builtins(leg, builtin_types=(datetime,)) for leg in legs_of(loaded.commits)]
    if as_json:
        render.print_json(
            {
                "diagnosis": [to_builtins(each) for each in diagnose(sight.figures)],
                "summary": ps.row(loaded, sight.step) if loaded.state.spec else None,
                "legs": to_builtins(legs),
                "commits": [_shown(to_builtins(commit)) for commit in loaded.commits],
            }
        )
        return
    _summary(loaded, sight)
    timeline(legs)
    for commit in loaded.commits:
        for event in commit.events:
            words = runview.event_words(event)
            if words:
                first, *tail = words.splitlines()
                render.labelled(f"{commit.at.astimezone():%Y-%m-%d %H:%M:%S}  ", first)
                for line in tail:
                    click.echo(line)
    _could_not_begin(opened, run_id, [leg["leg"] for leg in legs if not leg["up"]])
    away = "" if loaded.state.outcome else owned.elsewhere(run_id, loaded.state.spec)
    if away:
        render.note(away)
    else:
        ps.say_if_alone(opened, [loaded])
    more = runview.more(loaded.events)
    if more:
        render.note(f"more: {more}")


def _shown(commit: dict[str, Any]) -> dict[str, Any]:
    """Without what looks like a secret in what was submitted."""
    from tradewind.model.sensitive import redacted_job, redacted_tags

    for event in commit["events"]:
        if "spec" in event:
            spec = event["spec"]
            spec["job"] = redacted_job(spec["job"])
            if "tags" in spec:
                spec["tags"] = redacted_tags(spec["tags"])
    return commit


def _could_not_begin(store: Store, run_id: str, legs: list[int]) -> None:
    """What machines that never came up have left word of, the newest last."""
    from tradewind.model import bounds, places

    for leg in legs[-_WORDS:]:
        with suppress(TradewindError):
            for key in store.list_after(places.first_logs(run_id, leg))[:_WORDS]:
                text = store.get(key, most=bounds.FIRST_LOG).decode("utf-8", "replace")
                rank = visible(key.rpartition("/")[2].removesuffix(".log").lstrip("0") or "0")
                click.echo(f"\nwhy rank {rank} of leg {leg} could not start:")
                for line in text.strip().splitlines()[-_LINES:]:
                    click.echo(f"  {visible(line)}")


def _summary(loaded: Loaded, sight: Sight) -> None:
    from tradewind.base import clock
    from tradewind.base.units import format_money
    from tradewind.cli.runs import ps, runview
    from tradewind.telemetry.diagnose import diagnose

    state = loaded.state
    if state.spec is None:
        click.echo(f"{loaded.run_id}: {runview.outcome(state) or 'not submitted'}")
        return
    row = ps.row(loaded, sight.step)
    saved = max([state.saved, *(beat.saved for beat in sight.beats.values())])
    click.echo(f"{loaded.run_id}  {row['state'].replace('_', ' ')}")
    click.echo(f"  command  {one_line(state.spec.shown_command)}")
    click.echo(f"  work     {_work(state.spec, sight.step, saved, going=bool(sight.beats))}")
    limit = "" if state.spec.budget is None else f" of {format_money(state.spec.budget, digits=2)}"
    click.echo(f"  cost     ${row['cost_usd']:.6f}{limit}")
    if sight.beats:
        now = clock.now().timestamp()
        click.echo(f"  now      {runview.status(state, sight.beats, now)}")
        for found in diagnose(sight.figures)[:1]:
            render.paragraph(f"  why      {found.words}", indent=" " * 11)


def _work(spec: Spec, step: float, saved: float, *, going: bool) -> str:
    if not (spec.steps or step or saved):
        return "the job tells no steps"  # nought would look as if nothing had been done
    of = f" of {spec.work:,.0f}" if spec.steps else ""
    return f"{step:,.0f}{of}, saved {saved:,.0f}" + (
        f": a kill now costs {step - saved:,.0f}" if step - saved >= 1 and going else ""
    )


def timeline(legs: list[dict[str, Any]]) -> None:
    """A bar for each leg: dots until it is up, then = on spot and # otherwise."""
    if not legs:
        return
    from tradewind.base import clock

    start, now = legs[0]["from"], clock.now()
    # What goes on lasts until now, or until it began where another computer's clock is ahead.
    end = max(leg["to"] or max(leg["up"] or leg["from"], now) for leg in legs)
    span = max((end - start).total_seconds(), 1.0)

    texts = [f"{leg['where']}: {leg['cause'].replace('_', ' ') or 'running'}" for leg in legs]
    texts = [one_line(text) for text in texts]
    # In a narrow terminal shorter bars, and at last what they are of below them.
    width = render.columns()
    room = width - _LABEL - 2 - max(map(len, texts))
    beside = room >= _LEAST
    bar_width = min(_WIDTH, room) if beside else min(_WIDTH, max(width - _LABEL, _LEAST))

    def at(moment: datetime) -> int:
        # A commit of a computer whose clock was wrong may lie before the first, or long after.
        return min(max(int(bar_width * (moment - start).total_seconds() / span), 0), bar_width)

    wrong = False
    for leg, text in zip(legs, texts, strict=True):
        over = leg["to"] or end
        up = leg["up"] or over
        sign = "=" if leg["market"] == "spot" else "#"
        bar = " " * at(leg["from"]) + "." * (at(up) - at(leg["from"]))
        bar += sign * max(at(over) - at(up), 1 if leg["up"] else 0)
        wrong |= not start <= leg["from"] <= up <= over
        label = f"  leg {leg['leg']:<3} "
        if beside:
            click.echo(f"{label}{bar:<{bar_width + 1}} {text}")
        else:
            click.echo(f"{label}{bar}")
            render.labelled(" " * _LABEL, text)
    if wrong:
        render.note(
            "Moments go back in this timeline: a computer that wrote some had a wrong clock"
        )
