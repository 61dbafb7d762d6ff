"""Answers in words and figures, the same for the terminal, pictures and pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tradewind.economics.own import Answer


def dollars(value: float) -> str:
    """Whole dollars."""
    return f"-${-value:,.0f}" if value < -0.5 else f"${abs(value):,.0f}"


def figure(value: float) -> str:
    """As many digits as say something."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def years(number: int) -> str:
    return "1 year" if number == 1 else f"{number} years"


def sentence(answer: Answer) -> str:
    """What to do, and by how much it is better than the other."""
    best, own, rent = answer.best, answer.owning, answer.renting
    other = rent if best is own else own
    words = f"{best.words[:1].upper()}{best.words[1:]}: {dollars(best.total)} over "
    words += years(answer.question.terms.years)
    return f"{words}, {dollars(other.total - best.total)} less than to {other.words}."
