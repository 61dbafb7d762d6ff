"""The tables and lists of a run's page. However long the run was, what is shown stays readable:
sums first, and of what there is too much, the first and the last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TypeVar

from tradewind.base.units import format_bytes
from tradewind.report.figures import Kept, Report, Stay, Sum
from tradewind.report.words import after, many, money, number
from tradewind.web.report_charts import Clock
from tradewind.web.words import MARKETS, html, prose

T = TypeVar("T")

_OPEN = 12
"""Rows that are shown without being asked for."""
_MOST = 200


def ends(rows: Sequence[T], most: int = _MOST) -> tuple[Sequence[T], int, Sequence[T]]:
    """The first, how many are left out, and the last."""
    if len(rows) <= most:
        return rows, 0, ()
    return rows[: most // 2], len(rows) - 2 * (most // 2), rows[-(most // 2) :]


def folded(body: str, count: int, what: str) -> str:
    """Out of the way, where there are many."""
    if count <= _OPEN:
        return body
    return f"<details><summary>All {html(many(count, what))}</summary>\n{body}\n</details>"


def table(head: Sequence[tuple[str, str]], rows: Sequence[str], kind: str) -> str:
    """`head` is titles with their class."""
    titles = "".join(f'<th scope="col" class="{css}">{html(title)}</th>' for title, css in head)
    return (
        f'<table class="{kind}"><thead><tr>{titles}</tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>"
    )


def legs(report: Report, clock: Clock) -> str:
    if not report.legs:
        return '<p class="quiet">No machines were held.</p>'
    head = (("Leg", ""), ("From", "n wide"), ("For", "n"), ("Steps", "n wide"), ("Cost", "n"))
    first, left_out, last = ends(report.legs)
    rows = [_leg(leg, report, clock) for leg in first]
    if left_out:
        rows.append(f'<tr><td colspan="5" class="quiet">… {left_out:,} more …</td></tr>')
    rows += [_leg(leg, report, clock) for leg in last]
    made = folded(table(head, rows, "legs"), len(report.legs), "leg")
    return (_places(report) if len(report.legs) > _OPEN else "") + made


def _leg(leg: Stay, report: Report, clock: Clock) -> str:
    since = clock.at(leg.since)
    until = clock.at(leg.until) if leg.until else clock.now
    market = MARKETS.get(leg.market, leg.market)
    ended = leg.reason or ("running" if leg.until is None else "")
    cause = f"{leg.cause.replace('_', ' ')}: " if leg.cause else ""
    steps = ""
    if report.steps:
        steps = f"{number(leg.began)} – {number(leg.step)}"
        if again := leg.lost + leg.again:
            steps += f'<span class="under">{number(again)} made again</span>'
    usual = ""
    if leg.on_demand is not None and leg.market != "on_demand":
        usual = f'<span class="under wide">{money(leg.on_demand)} on demand</span>'
    return (
        f'<tr><th scope="row"><b>{leg.leg}</b> {html(leg.what)} <i class="dot {_css(leg)}"></i>'
        f'{html(market)}<span class="under">{html(leg.place)}</span>'
        f'<span class="under">{prose(cause + ended)}</span></th>'
        f'<td class="n wide">{after(since)}</td><td class="n">{after(until - since)}</td>'
        f'<td class="n wide">{steps}</td><td class="n">{money(leg.micros)}{usual}</td></tr>'
    )


def _css(leg: Stay) -> str:
    return "on-demand" if leg.market == "on_demand" else "spot"


def _places(report: Report) -> str:
    head = (
        ("Machines", ""), ("Legs", "n"), ("Interrupted", "n"), ("Refused", "n wide"), ("Held", "n"),
        ("Cost", "n"),
    )  # fmt: skip
    shown = [zone for zone in report.zones if zone.legs or zone.refused][:30]
    rows = [
        f'<tr><th scope="row">{html(zone.instance_type)} {html(MARKETS.get(zone.market, ""))}'
        f'<span class="under">{html(zone.place)}</span></th>'
        f'<td class="n">{zone.legs:,}</td><td class="n">{zone.taken:,}</td>'
        f'<td class="n wide">{zone.refused:,}</td><td class="n">{after(zone.held_s)}</td>'
        f'<td class="n">{money(zone.micros)}</td></tr>'
        for zone in shown
    ]
    return table(head, rows, "places")


def sums(rows: Sequence[Sum], what: str) -> str:
    head = ((what, ""), ("Legs", "n wide"), ("Hours", "n"), ("Cost", "n"), ("On demand", "n"))
    first, left_out, last = ends(rows, 20)
    made = [_sum(each) for each in first]
    if left_out:
        made.append(f'<tr><td colspan="5" class="quiet">… {left_out:,} more …</td></tr>')
    return table(head, [*made, *(_sum(each) for each in last)], "sums")


def _sum(each: Sum) -> str:
    usual = "–" if each.on_demand is None else money(each.on_demand)
    return (
        f'<tr><th scope="row">{html(each.what)}</th><td class="n wide">{each.legs:,}</td>'
        f'<td class="n">{after(each.seconds)}</td><td class="n">{money(each.micros)}</td>'
        f'<td class="n">{usual}</td></tr>'
    )


def money_bars(report: Report) -> str:
    """What was paid beside what else could have been."""
    purse = report.money
    so_far = "" if report.over else " so far"
    rows: list[tuple[str, int | None, str]] = [
        (f"Paid{so_far}" if report.rehearsal is None else f"This run{so_far}", purse.micros, "paid")
    ]
    if report.projection is not None:
        rows.append(("Projected", report.projection.cost, "other"))
    rows += [
        ("Perfect foresight", purse.foresight, "other"),
        ("On demand alone", purse.alone, "other"),
        ("The plan said", purse.predicted, "other"),
        ("Budget", purse.budget, "other"),
    ]
    known = [(name, micros, kind) for name, micros, kind in rows if micros is not None]
    most = max([micros for _, micros, _ in known] or [0]) or 1
    items = "\n".join(
        f'<div><dt>{html(name)}</dt><svg class="bar {kind}" height="14" role="img"'
        f' aria-label="{html(name)} {money(micros)}"><rect width="{100 * micros / most:.2f}%"'
        f' height="14"/></svg><dd>{money(micros)}</dd></div>'
        for name, micros, kind in known
    )
    return f'<dl class="bars">\n{items}\n</dl>'


def checkpoints(report: Report, clock: Clock) -> str:
    kept = report.checkpoints
    if not kept:
        return '<p class="quiet">None is known.</p>'
    first, left_out, last = ends(kept)
    rows = [_kept(each, clock) for each in first]
    if left_out:
        rows.append(f'<tr><td colspan="5" class="quiet">… {left_out:,} more …</td></tr>')
    rows += [_kept(each, clock) for each in last]
    head = (("Step", ""), ("Leg", "n"), ("After", "n"), ("Size", "n"), ("Took", "n"))
    listed = table(head, rows, "kept")
    return f'<p class="quiet">{prose(_kept_words(kept, clock))}</p>\n' + folded(
        listed, len(kept), "checkpoint"
    )


def _kept(each: Kept, clock: Clock) -> str:
    at = "–" if each.at is None else after(clock.at(each.at))
    size = "–" if each.bytes is None else format_bytes(each.bytes, digits=3)
    took = "–" if each.took_s is None else f"{each.took_s:.3g} s"
    there = "" if not each.there else ' <span class="tag">kept</span>'
    return (
        f'<tr><th scope="row">{number(each.step)}{there}</th><td class="n">{each.leg}</td>'
        f'<td class="n">{at}</td><td class="n">{size}</td><td class="n">{took}</td></tr>'
    )


def _kept_words(kept: Sequence[Kept], clock: Clock) -> str:
    text = f"{many(len(kept), 'checkpoint')}, {sum(each.there for each in kept)} of them still kept"
    moments = sorted(clock.at(each.at) for each in kept if each.at is not None)
    if len(moments) > 2:
        apart = [b - a for a, b in pairwise(moments)]
        text += f"; one every {after(median(apart))} as a rule"
    took = [each.took_s for each in kept if each.took_s is not None]
    if took:
        text += f"; saving took {median(took):.3g} s as a rule, beside the training"
    sizes = [each.bytes for each in kept if each.bytes]
    if sizes:
        text += f"; the largest has {format_bytes(max(sizes), digits=3)}"
    return text + "."


def events(report: Report, clock: Clock) -> str:
    first, left_out, last = ends(report.events)
    head = (("After", "n"), ("What happened", ""))
    rows = []
    for line in [*first, None, *last] if left_out else first:
        if line is None:
            rows.append(f'<tr><td></td><td class="quiet">… {left_out:,} more …</td></tr>')
            continue
        tail = f"<pre>{_pre(line.tail)}</pre>" if line.tail else ""
        rows.append(
            f'<tr><td class="n">{after(clock.at(line.at))}</td>'
            f"<td>{prose(line.words)}{tail}</td></tr>"
        )
    return folded(table(head, rows, "events"), len(report.events), "event")


def _pre(text: str) -> str:
    return "\n".join(html(line) for line in text.splitlines()[-10:])
