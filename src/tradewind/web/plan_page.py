"""A plan as one HTML page that needs nothing but itself: the recommendation, time against money to
play with, and why the rest lost.

    Path("plan.html").write_text(plan_page.render(plans), encoding="utf-8")

The numbers go in as JSON. What matters most (the sentence, the best few, what would have to give,
the assumptions) is plain HTML and is there without the script.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.base.units import format_hours as span
from tradewind.web import page_data, shell, words
from tradewind.web.words import html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tradewind.model.plan import Plans


def render(plans: Plans) -> str:
    name, script = html(plans.workload.name), shell.asset("plan.js")
    parts = {
        "head": shell.head(f"{name}: plan", shell.style("plan.css"), script),
        "script": script,
        "name": name,
        "sentence": html(words.recommendation(plans)),
        "relaxations": _relaxations(plans),
        "best": _best(plans),
        "dots": _dots(plans),
        "weighed": _weighed(plans),
        "many": f"{len(plans.losers):,}",
        "cut": _cut(plans),
        "work": _facts(words.summary(plans.workload)),
        "limits": _facts(words.asked(plans)),
        "notes": "\n".join(f"<li>{html(note)}</li>" for note in _notes(plans)),
        "made": f"{plans.made_at:%Y-%m-%d %H:%M %Z}".strip(),
        "data": page_data.as_json(page_data.data(plans)),
    }
    return shell.filled(shell.asset("plan.html"), parts)


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    return "\n".join(
        f"<div><dt>{html(name)}</dt><dd>{html(text)}</dd></div>" for name, text in rows
    )


def _relaxations(plans: Plans) -> str:
    if plans.best is not None:
        return ""
    if not plans.relaxations:
        return '<p class="quiet">No single limit, lifted alone, would make room for it.</p>'
    items = "\n".join(
        f"<li><strong>{html(words.LIMITS.get(one.limit, one.limit))}</strong>"
        f" <span>{html(one.why)}:</span> {html(words.machines(one.plan))}"
        f" ({html(words.chips(one.plan))}), {html(words.where(one.plan))},"
        f" about <b>{words.money(one.plan.cost)}</b>"
        f" in <b>{span(one.plan.hours)}</b></li>"
        for one in plans.relaxations
    )
    return f'<h2>What would make room</h2>\n<ul class="relax">\n{items}\n</ul>'


def _best(plans: Plans) -> str:
    if not plans.plans:
        return ""
    at = page_data.number_of(plans)
    rows = []
    for i, plan in enumerate(plans.plans):
        where = plan.region if plan.own else words.place(plan)
        rows.append(
            f'<tr><th scope="row"><button type="button" class="pick" data-way="{at.get(i, "")}">'
            f"{html(words.machines(plan))}</button>"
            f'<span class="under">{html(where)}</span></th>'
            f'<td class="wide">{html(words.chips(plan))}</td>'
            f"<td>{html(words.markets(plan))}</td>"
            f'<td class="n">{words.money(plan.cost)}'
            f'<span class="under">{words.money(plan.cost_low)}–{words.money(plan.cost_high)}</span>'
            f'</td><td class="n">{span(plan.hours)}<span class="under">'
            f"{span(plan.hours_low)} – {span(plan.hours_high)}</span></td>"
            f'<td class="n wide">{words.chance(plan.chance)}</td>'
            f'<td class="n wide">{words.chance(plan.had)}</td></tr>'
        )
    return (
        '<section aria-labelledby="h-best">\n<h2 id="h-best">The cheapest of each kind</h2>\n'
        '<p class="quiet">All keep your limits. Below cost and time, the range that holds in eight '
        "cases of ten. Choose one to see it above.</p>\n"
        '<table class="best"><thead><tr><th scope="col">Machines</th>'
        '<th scope="col" class="wide">Accelerators</th><th scope="col">Market</th>'
        '<th scope="col" class="n">Cost</th><th scope="col" class="n">Time</th>'
        '<th scope="col" class="n wide">Chance</th>'
        '<th scope="col" class="n wide">Available</th></tr></thead>\n<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table>\n</section>"
    )


def _dots(plans: Plans) -> str:
    shown = len(page_data.ways(plans))
    if shown >= plans.candidates:
        return f"all {shown:,}"
    return f"the front and the cheapest of {plans.candidates:,}, {shown:,} in all"


def _weighed(plans: Plans) -> str:
    return (
        f"{plans.candidates:,} ways were weighed, from {plans.offers:,} offers"
        f" and {plans.layouts:,} layouts."
    )


def _cut(plans: Plans) -> str:
    if len(plans.losers) <= page_data.MOST_LOSERS:
        return ""
    return f" The first {page_data.MOST_LOSERS:,} are listed."


def _notes(plans: Plans) -> list[str]:
    notes = list(plans.notes)
    if plans.prices_from:
        until = f" to {plans.prices_until}" if plans.prices_until != plans.prices_from else ""
        notes.append(f"prices: of {plans.prices_from}{until}")
    if plans.best is not None and plans.best.band:
        notes.append(f"estimate: {plans.best.band}")
    return [note[:1].upper() + note[1:] for note in notes]
