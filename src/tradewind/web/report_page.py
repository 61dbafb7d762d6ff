"""A run as one HTML page that needs nothing but itself, and no script: how it went or goes, on
what, for how much, and what it learned.

    Path("run.html").write_text(report_page.render(run.report()), encoding="utf-8")
"""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.report import words as said
from tradewind.report.figures import Curve, Report
from tradewind.report.words import many, money, number, span
from tradewind.web import report_charts as charts
from tradewind.web import report_tables as tables
from tradewind.web import shell
from tradewind.web.report_charts import Clock
from tradewind.web.words import html, prose

_SMALL_CURVES = 8


def render(report: Report) -> str:
    name = html(report.name or report.run_id)
    parts = {
        "head": shell.head(f"{name}: run", shell.style("report.css")),
        "name": name,
        "run": html(report.run_id),
        "sentence": prose(said.sentence(report)),
        "state": html(report.state.replace("_", " ")),
        "mood": _mood(report),
        "banner": _banner(report),
        "figures": _figures(report),
        "body": _body(report),
        "made": f"{report.made:%Y-%m-%d %H:%M %Z}",
    }
    return shell.filled(shell.asset("report.html"), parts)


def _mood(report: Report) -> str:
    if not report.over:
        return "going"
    return "good" if report.state == "succeeded" else "bad"


def _banner(report: Report) -> str:
    found = said.simulated(report)
    if found is None:
        return ""
    rest = "".join(
        f"<p><b>{html(head)}:</b> {prose(text.strip())}</p>"
        for head, _, text in (sentence.partition(":") for sentence in found)
    )
    return f'<aside class="banner"><p><b>This is a rehearsal.</b></p>{rest}</aside>'


def _figures(report: Report) -> str:
    if report.submitted is None:
        return ""
    rows = [("Cost", money(report.money.micros), "" if report.over else "so far")]
    if report.money.budget is not None:
        rows[-1] = (*rows[-1][:2], f"of {money(report.money.budget)}")
    rows.append(("Time", span(report.seconds.all), f"{report.submitted:%d %b %Y %H:%M} UTC"))
    rows.append(("Work", f"{said.share_done(report):.0%}", _of(report)))
    if report.late_s is not None:
        early = report.late_s <= 0
        side = "before the deadline" if early else "after the deadline"
        name = "Spare" if early else "Late"
        rows.append((name, span(abs(report.late_s)), side if report.over else f"{side}, projected"))
    rows.append(
        (
            "Legs",
            f"{len(report.legs):,}",
            f"{report.taken:,} interrupted, {len(report.refusals):,} refused",
        )
    )
    if report.steps:
        rows.append(("Made again", number(report.lost), "steps lost with machines"))
    return "\n".join(
        f'<div class="{name.lower().replace(" ", "-")}"><dt>{html(name)}</dt><dd>{html(value)}</dd>'
        f'<dd class="range">{html(under)}</dd></div>'
        for name, value, under in rows
    )


def _of(report: Report) -> str:
    if not report.steps:
        return "by machine time"
    return f"{number(report.step)} of {number(report.work)} steps"


def _body(report: Report) -> str:
    if report.submitted is None:
        return ""
    clock = Clock(report)
    sections = [
        ("Timeline", _timeline(report, clock)),
        ("Progress", _progress(report, clock)),
        (_curves_title(report.curves), _curves(report)),
        ("Money", _money(report)),
        ("Legs", tables.legs(report, clock)),
        ("Checkpoints", tables.checkpoints(report, clock)),
        ("What happened", tables.events(report, clock)),
        ("What was asked", _asked(report)),
    ]
    return "\n".join(
        f'<section aria-labelledby="h-{at}">\n<h2 id="h-{at}">{html(title)}</h2>\n'
        f"{body}\n</section>"
        for at, (title, body) in enumerate(sections)
        if body
    )


def _timeline(report: Report, clock: Clock) -> str:
    if not report.legs and not report.refusals:
        return '<p class="quiet">No machine was asked for yet.</p>'
    legs = report.legs
    keys = (
        ("spot", "spot", any(leg.market != "on_demand" for leg in legs)),
        ("on-demand", "on demand", any(leg.market == "on_demand" for leg in legs)),
        ("starting", "starting", bool(legs)),
        ("noticed", "notice", any(leg.noticed for leg in legs)),
        ("taken", "machine interrupted", any(leg.taken for leg in legs)),
        ("broken", "ended otherwise", any(charts.is_broken(leg) for leg in legs)),
        ("refused", "launch refused", bool(report.refusals)),
        ("had", "spot was available", any(zone.there is not None for zone in report.zones)),
        ("saved-key", "checkpoint", bool(report.checkpoints)),
    )
    shown = [(css, name) for css, name, there in keys if there]
    return charts.timeline(report, clock) + "\n" + _keys(shown) + "\n" + _hours(report)


def _keys(keys: Sequence[tuple[str, str]]) -> str:
    items = "".join(f'<li><i class="{css}"></i>{html(name)}</li>' for css, name in keys)
    return f'<ul class="keys">{items}</ul>'


def _hours(report: Report) -> str:
    """Where the time went, and how machines could be had."""
    spent = report.seconds
    if spent.all <= 0:
        return ""

    def part(seconds: float) -> str:
        return f"{span(seconds)} ({seconds / spent.all:.0%})"

    text = (
        f"Machines were at work for {part(spent.working)}, starting for {part(spent.starting)},"
        f" and there were none for {part(spent.waiting)}."
    )
    over = [leg for leg in report.legs if leg.until is not None and leg.market == "spot"]
    if over:
        stays = [(leg.until - leg.since).total_seconds() for leg in over if leg.until]
        text += f" A stay on spot lasted {span(sum(stays) / len(stays))} on average."
    shares = [zone.share for zone in report.zones if zone.share is not None]
    if shares:
        text += (
            f" By the trace, spot machines were available {min(shares):.0%} to {max(shares):.0%}"
            f" of the time in {many(len(shares), 'place')}."
        )
    return f'<p class="quiet under-chart">{prose(text)}</p>'


def _progress(report: Report, clock: Clock) -> str:
    keys = [("done-key", "made"), ("saved-line", "in a checkpoint")]
    if clock.shows_deadline:
        keys.append(("even-key", "an even pace to the deadline"))
    if report.projection is not None:
        keys.append(("ahead-key", "projected"))
    note = ""
    if clock.deadline is not None and not clock.shows_deadline:
        note = f"The deadline, {span(clock.deadline)} after the submission, is further right."
    if not report.steps:
        keys = [("done-key", "time at work"), *keys[2:]]
        note += " The work is counted in hours of machines, not in steps."
    under = f'\n<p class="quiet under-chart">{prose(note.strip())}</p>' if note else ""
    return charts.progress(report, clock) + "\n" + _keys(keys) + under


def _curves_title(curves: Sequence[Curve]) -> str:
    return "Loss" if curves and "loss" in curves[0].name.lower() else "Metrics"


def _curves(report: Report) -> str:
    if not report.curves:
        return (
            '<p class="quiet">The job has reported no metrics. A session of tradewind.torch does so'
            " by itself: session.step(loss=loss).</p>"
        )
    first, rest = report.curves[0], report.curves[1 : 1 + _SMALL_CURVES]
    text = (
        f"{first.name} by step, all legs together, up to step {number(first.buckets[-1].step)}:"
        f" {first.last:.4g} at the end, {first.best:.4g} at best."
    )
    times = len(charts.seams(report))
    if times > charts.MOST_SEAMS:
        text += f" Legs resumed from {times:,} checkpoints, too many to be marked."
    elif times:
        text += " Faint uprights are where a leg resumed from a checkpoint."
    text += " The strong line is smoothed."
    small = "".join(
        f"<div><h3>{html(each.name)} <span>{each.last:.4g}</span></h3>"
        f"{charts.curve(each, report, height=110)}</div>"
        for each in rest
    )
    more = len(report.curves) - 1 - len(rest)
    left = f'<p class="quiet">{html(many(more, "more metric"))} not shown.</p>' if more > 0 else ""
    return (
        f'<p class="quiet">{prose(text)}</p>\n{charts.curve(first, report, height=260)}\n'
        + (f'<div class="small">{small}</div>' if small else "")
        + left
    )


def _money(report: Report) -> str:
    purse = report.money
    notes = []
    if report.rehearsal is not None:
        notes.append("No one was billed: these are the plan's prices for the time that was used.")
    if purse.alone is not None:
        notes.append(f"On demand alone: the same work in one stay on {purse.alone_what}.")
    if purse.foresight is not None:
        more = ""
        if purse.foresight > 0:
            more = f" This run paid {purse.micros / purse.foresight - 1:+.0%} against that."
        notes.append(
            "Perfect foresight: the least that whoever had known the trace before could have paid,"
            f" for {purse.foresight_words}.{more}"
        )
    elif purse.foresight_words:
        notes.append(
            f"What perfect foresight would have paid is not known: {purse.foresight_words}."
        )
    if purse.same_on_demand is not None and any(leg.market == "spot" for leg in report.legs):
        notes.append(
            f"The same machines for the same time on demand, restarts included:"
            f" {money(purse.same_on_demand)}."
        )
    if purse.estimated:
        notes.append(f"{money(purse.estimated)} of it is reckoned, not told by a provider.")
    if purse.open and report.rehearsal is None:
        notes.append(f"{many(purse.open, 'machine')} still cost money.")
    text = "".join(f"<li>{prose(note)}</li>" for note in notes)
    listed = f'<ul class="notes quiet">{text}</ul>' if notes else ""
    if not purse.by_market:
        return tables.money_bars(report) + listed
    return (
        tables.money_bars(report) + listed
        + '<div class="split"><div>' + tables.sums(purse.by_market, "Market") + "</div><div>"
        + tables.sums(purse.by_place, "Machines") + "</div></div>"
    )  # fmt: skip


def _asked(report: Report) -> str:
    rows = [("Run", report.run_id)]
    for name, text in (
        ("Project", report.project),
        ("User", report.user),
        ("Tags", ", ".join(f"{key}={value}" for key, value in report.tags.items())),
    ):
        if text:
            rows.append((name, text))
    rows.append(("Work", f"{number(report.work)} {'steps' if report.steps else 'seconds'}"))
    if report.deadline is not None:
        rows.append(("Deadline", f"{report.deadline:%Y-%m-%d %H:%M} UTC"))
    if report.predicted_hours is not None:
        rows.append(("Planned time", span(report.predicted_hours * 3600)))
    facts = "\n".join(f"<div><dt>{html(k)}</dt><dd>{html(v)}</dd></div>" for k, v in rows)
    notes = "".join(f"<li>{prose(note[:1].upper() + note[1:])}.</li>" for note in report.notes)
    listed = f'<ul class="notes quiet">{notes}</ul>' if notes else ""
    return f'<dl class="facts">\n{facts}\n</dl>{listed}'
