"""A report in words, for pages and terminals alike."""

from __future__ import annotations

from tradewind.base.units import format_duration, format_hours, format_money
from tradewind.report.figures import Report

REAL = (
    "Real: the processes of the job, its steps and metrics, its checkpoints, how long everything"
    " took, and that it was killed and went on."
)
_MADE_UP = (
    "Simulated: the machines. They were processes of one computer that stood for the types and"
    " zones named here, at the prices of the plan: no one was billed."
)


def span(seconds: float) -> str:
    return format_hours(max(seconds, 0.0) / 3600)


def after(seconds: float) -> str:
    """A moment since the submission: to the second, where that says something."""
    return format_duration(int(max(seconds, 0.0)), parts=2)


def money(micros: int) -> str:
    """`$4,798`, `$23.58`, `$0.0036`: cents only where they say something."""
    if abs(micros) >= 100_000_000:
        return format_money(micros, digits=0)
    return format_money(micros, digits=4 if 0 < abs(micros) < 100_000 else 2)


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"


def many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def sentence(report: Report) -> str:
    """How it stands, when and for how much."""
    if report.submitted is None:
        return f"{_upper(report.words)}."
    took = span(report.seconds.all)
    cost = money(report.money.micros)
    if report.state == "succeeded":
        text = f"Done in {took} for {cost}"
        if report.late_s is not None:
            text += f", {_against(report.late_s)}"
        return f"{text}{_saved(report)}."
    if report.over:
        how, _, why = report.words.partition(": ")
        text = f"{_upper(how)} after {took} and {cost}, {progress(report)}"
        return f"{text}: {why}." if why else f"{text}."
    text = f"{_upper(report.words)}, {took} after its submission: {progress(report)}, {cost} so far"
    plan = report.projection
    if plan is None:
        return f"{text}."
    left = span((plan.finish - report.made).total_seconds())
    text += f". At this speed done in {left}, for {money(plan.cost)} in all"
    if report.late_s is not None:
        text += f", {_against(report.late_s)}"
    return f"{text}."


def progress(report: Report) -> str:
    share = share_done(report)
    if not report.steps:
        return f"about {share:.0%} of the work done"
    return f"at step {number(report.step)} of {number(report.work)} ({share:.0%})"


def share_done(report: Report) -> float:
    return min(report.step / report.work, 1.0) if report.work > 0 else 0.0


def _against(late_s: float) -> str:
    return f"{span(abs(late_s))} {'after' if late_s > 0 else 'before'} the deadline"


def _saved(report: Report) -> str:
    alone, paid = report.money.alone, report.money.micros
    if not alone or all(leg.market == "on_demand" for leg in report.legs):
        return ""
    part = 1 - paid / alone
    if abs(part) < 0.005:
        return "; as much as on demand alone"
    less = f"{part:.0%} saved" if part > 0 else f"{-part:.0%} less"
    return f"; on demand alone would have cost {money(alone)} ({less})"


def simulated(report: Report) -> tuple[str, str] | None:
    """What of it is made up, and what is real; None where all of it is."""
    if report.rehearsal is None:
        return None
    interrupted = f" Interruptions were made: {report.rehearsal.words}."
    return _MADE_UP + interrupted, REAL


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
