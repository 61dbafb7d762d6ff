"""Buy or rent as one HTML page that needs nothing but itself: the answer, sliders for what moves
it, what decides it, and every input with its source.

    Path("own.html").write_text(own_page.render(answer, made_at), encoding="utf-8")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.base.units import format_hours
from tradewind.economics import inputs as known
from tradewind.economics.own import MOST_MACHINES
from tradewind.economics.owning import RESIDUALS, STAFF_EXPONENT
from tradewind.economics.words import dollars, figure, sentence
from tradewind.web import page_data, shell
from tradewind.web.words import html, prose

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.economics.own import Answer

_MOST_SWINGS = 8


def render(answer: Answer, made_at: datetime) -> str:
    name, script = "Buy or rent", shell.asset("own.js")
    question = answer.question
    title = f"{name}: {question.accelerator}, {question.use.hours_month:,.0f} hours a month"
    parts = {
        "head": shell.head(html(title), shell.style("own.css"), script),
        "script": script,
        "name": html(title),
        "sentence": prose(sentence(answer)),
        "options": _options(answer),
        "figures": _figures(answer),
        "swings": _swings(answer),
        "years": "\n".join(
            f'<tr><th scope="row">{year}</th><td class="n">{dollars(own)}</td>'
            f'<td class="n">{dollars(rent)}</td></tr>'
            for year, (own, rent) in enumerate(answer.by_month, 1)
        ),
        "inputs": _inputs(answer),
        "notes": "\n".join(f"<li>{prose(note)}</li>" for note in answer.notes),
        "made": f"{made_at:%Y-%m-%d %H:%M %Z}".strip(),
        "data": page_data.as_json(_data(answer)),
    }
    return shell.filled(shell.asset("own.html"), parts)


def _data(answer: Answer) -> dict[str, object]:
    question = answer.question
    return {
        "values": known.typical(question.inputs),
        "years": question.terms.years,
        "each": question.terms.each,
        "growth": question.terms.growth,
        "lease": question.terms.lease,
        "wait_h": question.wait_h,
        "machines": question.machines,
        "markets": question.markets,
        "most": MOST_MACHINES,
        "residuals": RESIDUALS,
        "staff_exponent": STAFF_EXPONENT,
        "levels": question.use.levels,
        "shares": question.use.shares,
        "jobs": [
            {"accelerators": j.accelerators, "hours": j.hours, "per_month": j.per_month}
            for j in question.use.jobs
        ],
    }


def _options(answer: Answer) -> str:
    rows = []
    for number, one in enumerate(answer.options):
        wait = "" if one.wait_h is None else format_hours(one.wait_h)
        kind = "" if number else ' class="best"'
        rows.append(
            f'<tr{kind}><th scope="row">{html(one.words)}</th><td class="n">{dollars(one.total)}'
            f'</td><td class="n wide">${one.usd_hour:.2f}</td><td class="n">{wait}</td></tr>'
        )
    return "\n".join(rows)


def _figures(answer: Answer) -> str:
    share, month = answer.break_even_share, answer.break_even_month
    low, _, high = answer.spread
    rows = [
        ("Break-even use", "never" if share is None else f"{share:.0%}",
         "of all hours of the machines that would be owned, against on demand"),
        ("Break-even", "never" if month is None else f"month {month:.0f}",
         "what was spent on owning falls below renting on demand"),
        ("Chance", f"{answer.chance:.0%}", "that owning is cheaper than the cheapest renting"),
        ("Own less rent", f"{dollars(low)} to {dollars(high)}", "in eight of ten draws"),
    ]  # fmt: skip
    return "\n".join(
        f'<div><dt>{name}</dt><dd>{value}</dd><dd class="range">{under}</dd></div>'
        for name, value, under in rows
    )


def _swings(answer: Answer) -> str:
    shown = answer.swings[:_MOST_SWINGS]
    if not shown:
        return ""
    ends = [0.0] + [end for s in shown for end in (s.at_low, s.at_high)]
    low, high = min(ends), max(ends)
    wide = (high - low) or 1.0
    rows = []
    for one in shown:
        left, right = sorted((one.at_low, one.at_high))
        # Styles of elements are not in the page's policy, so an SVG draws the bar.
        bar = (
            f'<svg width="100%" height="18" role="img" aria-label="{dollars(left)} to '
            f'{dollars(right)}"><rect class="{"swing-decides" if one.decides else "swing-bar"}" '
            f'x="{100 * (left - low) / wide:.2f}%" width="{100 * (right - left) / wide:.2f}%" '
            f'y="2" height="14"/><line class="limit" x1="{-100 * low / wide:.2f}%" '
            f'x2="{-100 * low / wide:.2f}%" y1="0" y2="18"/></svg>'
        )
        decides = " It decides." if one.decides else ""
        rows.append(
            f"<div><dt>{html(one.name)}</dt><dd>{bar}<span>{dollars(one.at_low)} when low, "
            f"{dollars(one.at_high)} when high.{decides}</span></dd></div>"
        )
    return '<dl class="swings">\n' + "\n".join(rows) + "\n</dl>"


def _inputs(answer: Answer) -> str:
    rows = []
    for one in answer.question.inputs.values():
        dated = ", ".join(filter(None, (one.source, one.as_of)))
        doubt = f'<span class="under">doubtful: {prose(one.doubt)}</span>' if one.doubt else ""
        rows.append(
            f'<tr><th scope="row">{html(one.name)}<span class="under">{html(one.words)}, '
            f"{html(one.unit)}</span></th>"
            + "".join(f'<td class="n">{figure(v)}</td>' for v in (one.low, one.typical, one.high))
            + f'<td class="wide">{prose(dated)}{doubt}</td></tr>'
        )
    return "\n".join(rows)
