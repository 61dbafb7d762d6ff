"""What every chart is: a value that knows its words, its numbers and how to paint itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Protocol

from tradewind.base.errors import NotFound
from tradewind.base.units import format_money

if TYPE_CHECKING:
    from tradewind.catalog.query import Selection
    from tradewind.model import Market, Price
    from tradewind.pictures.canvas import Area

MARKET_WORDS: dict[Market, str] = {
    "on_demand": "on-demand",
    "spot": "spot",
    "reserved": "reserved",
}


@dataclass(frozen=True, slots=True)
class Table:
    """The numbers of a chart as words. The first `names` columns name a row, others measure it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the prices of a chart come from, and from when."""

    oldest: date | None = None
    newest: date | None = None
    sources: tuple[str, ...] = ()

    @classmethod
    def of(cls, prices: Iterable[Price]) -> Provenance:
        seen = {(p.as_of, p.source) for p in prices}
        dates = sorted({as_of for as_of, _ in seen if as_of})
        return cls(
            dates[0] if dates else None,
            dates[-1] if dates else None,
            tuple(sorted({source for _, source in seen if source})),
        )

    @property
    def words(self) -> str:
        """A sentence for a caption; empty where no price has a date."""
        if self.oldest is None:
            return ""
        if self.oldest == self.newest:
            return f"Prices of {self.oldest}."
        return f"Prices of {self.oldest} to {self.newest}."


class Chart(Protocol):
    @property
    def heading(self) -> str: ...
    @property
    def caption(self) -> str:
        """How to read it, and what is not shown."""

    @property
    def provenance(self) -> Provenance: ...
    def tables(self) -> tuple[Table, ...]:
        """Everything that is drawn."""

    def size(self) -> tuple[float, float]:
        """Width and height in inches, heading and caption not counted. Needs matplotlib."""

    def paint(self, area: Area) -> None:
        """Draws into an area of that size or wider. Needs matplotlib."""


def money(micros: float) -> str:
    """`$2.99`; cents, finer only where cents would say nothing, dollars where they are noise."""
    micros = round(micros)
    if micros >= 1_000_000_000:
        return format_money(micros, digits=0)
    if micros >= 95_000 or micros <= 0:
        return format_money(micros, digits=2)
    if micros < 500:
        return format_money(micros)
    text = format_money(micros, digits=3 if micros >= 9_500 else 4)
    return text[:-1] if text.endswith("0") else text


def short(text: str, most: int) -> str:
    """At most so many characters: one long name must not push the chart off the paper."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def nothing_to_draw(selection: Selection, what: str) -> NotFound:
    """The error for a selection without `what`, with the likeliest way out."""
    doubtful = sum(selection.left_out.values())
    if doubtful:
        why = ", ".join(f"{n} {kind}" for kind, n in selection.left_out.most_common())
        hint = (
            f"{counted(doubtful, 'offer')} match, but the prices are in doubt ({why}): "
            "allow older prices, or include marked ones"
        )
    else:
        hint = "ask for other accelerators, providers, regions or markets"
    return NotFound(f"there is nothing to draw: no {what} among the chosen offers", hint=hint)
