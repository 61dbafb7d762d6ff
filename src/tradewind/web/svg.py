"""Charts as SVG that fit any width without a script, because letters must not shrink with it.

The picture is as wide as its place and has a fixed height. What stands in it has shares of the
width for an x, and pixels for a y. Lines lie in a picture within the picture that is stretched to
the same width, with strokes that are not: `Plot` reckons both from the same values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import ceil, floor, isfinite, log10

from tradewind.base.units import format_duration
from tradewind.web.words import clean

_WIDE = 1000
"""Units of the stretched picture, across."""
FOOT = 22
"""Pixels below the plot, for the numbers of its axis."""


class Plot:
    """One chart. `across` and `up` are the ranges of values; `height` is of the plot in pixels."""

    def __init__(
        self,
        across: tuple[float, float],
        up: tuple[float, float] = (0.0, 1.0),
        *,
        height: int,
        label: str,
        top: int = 4,
    ) -> None:
        self._low, self._high = _apart(*across)
        self._floor, self._roof = _apart(*up)
        self.height, self.top = height, top
        self._label = label
        self._parts: list[str] = []

    def x(self, value: float) -> float:
        """Per cent of the width."""
        share = 100 * (value - self._low) / (self._high - self._low)
        return round(min(max(share, 0.0), 100.0), 3)

    def y(self, value: float) -> float:
        """Pixels from the top."""
        share = (value - self._floor) / (self._roof - self._floor)
        return round(self.top + self.height * (1 - min(max(share, 0.0), 1.0)), 1)

    def bar(
        self, since: float, until: float, top: float, height: float, kind: str, title: str = ""
    ) -> None:
        left, right = self.x(since), self.x(until)
        words = f"<title>{escape(clean(title))}</title>" if title else ""
        self._parts.append(
            f'<rect class="{kind}" x="{left:g}%" y="{top:g}" width="{max(right - left, 0):.4g}%"'
            f' height="{height:g}">{words}</rect>'
        )

    def mark(self, at: float, y: float, kind: str, title: str = "") -> None:
        """A dot."""
        words = f"<title>{escape(clean(title))}</title>" if title else ""
        self._parts.append(
            f'<circle class="{kind}" cx="{self.x(at):g}%" cy="{y:g}" r="3.5">{words}</circle>'
        )

    def tick(self, at: float, top: float, height: float, kind: str, title: str = "") -> None:
        """A short upright: a bar of no length would not be drawn."""
        x, words = self.x(at), f"<title>{escape(clean(title))}</title>" if title else ""
        self._parts.append(
            f'<line class="{kind}" x1="{x:g}%" x2="{x:g}%" y1="{top:g}" y2="{top + height:g}">'
            f"{words}</line>"
        )

    def upright(self, at: float, kind: str, *, top: float | None = None) -> None:
        x = self.x(at)
        first = self.top if top is None else top
        self._parts.append(
            f'<line class="{kind}" x1="{x:g}%" x2="{x:g}%" y1="{first:g}"'
            f' y2="{self.top + self.height}"/>'
        )

    def ticks(self, moments: Iterable[float], y: float, height: float, kind: str) -> None:
        """Many short uprights, as one line."""
        path = "".join(
            f"M{self.x(at) * _WIDE / 100:.1f} {y:g}v{height:g}" for at in dict.fromkeys(moments)
        )
        if path:
            self._stretched(f'<path class="{kind}" d="{path}"/>')

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        if points:
            self._stretched(f'<path class="{kind}" d="M{self._path(points)}"/>')

    def area(
        self, low: Sequence[tuple[float, float]], high: Sequence[tuple[float, float]], kind: str
    ) -> None:
        if low:
            path = f"M{self._path(low)}L{self._path(list(reversed(high)))}Z"
            self._stretched(f'<path class="{kind}" d="{path}"/>')

    def text(self, at: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> None:
        """Where it would leave the picture on a side, it is set against that side."""
        x = self.x(at)
        chosen = anchor or ("start" if x < 4 else "end" if x > 96 else "middle")
        self._parts.append(
            f'<text class="{kind}" x="{x:g}%" y="{y:g}" text-anchor="{chosen}">'
            f"{escape(clean(words))}</text>"
        )

    def across(self, marks: Sequence[tuple[float, str]]) -> None:
        """The axis below. Every other mark goes where there is little room."""
        for number, (value, words) in enumerate(marks):
            self.upright(value, "grid")
            kind = "wide" if number % 2 and len(marks) > 4 else ""
            self.text(value, self.top + self.height + 16, words, kind)

    def up(self, marks: Sequence[tuple[float, str]]) -> None:
        """Lines across, each with its number on it at the left."""
        for value, words in marks:
            y = self.y(value)
            self._parts.append(f'<line class="grid" x1="0" x2="100%" y1="{y:g}" y2="{y:g}"/>')
            self._parts.append(
                f'<text class="halo" x="0" y="{y - 4:g}">{escape(clean(words))}</text>'
            )

    def made(self) -> str:
        high = self.top + self.height + FOOT
        return (
            f'<div class="chart"><svg role="img" aria-label="{escape(clean(self._label))}"'
            f' height="{high}">\n' + "\n".join(self._parts) + "\n</svg></div>"
        )

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return "L".join(f"{self.x(a) * _WIDE / 100:.1f} {self.y(b):g}" for a, b in points)

    def _stretched(self, inside: str) -> None:
        high = self.top + self.height
        self._parts.append(
            f'<svg x="0" y="0" width="100%" height="{high}" viewBox="0 0 {_WIDE} {high}"'
            f' preserveAspectRatio="none">{inside}</svg>'
        )


def _apart(low: float, high: float) -> tuple[float, float]:
    """Two that differ: whoever divides by their distance needs it."""
    if high > low:
        return low, high
    return low - (abs(low) or 1.0) * 0.05, low + (abs(low) or 1.0) * 0.05


def round_marks(low: float, high: float, many: int = 4) -> list[float]:
    """Round numbers from `low` to `high`, about so many."""
    if not (isfinite(low) and isfinite(high)) or high <= low:
        return [low] if isfinite(low) else []
    rough = (high - low) / max(many, 1)
    power = 10.0 ** floor(log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough * 0.999)
    first = ceil(low / step - 1e-9)
    found: list[float] = []
    while first * step <= high + step * 1e-9 and len(found) <= 4 * many:
        found.append(round(first * step, 12))
        first += 1
    return found


_SPANS = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000,
)  # fmt: skip


def time_marks(seconds: float, many: int = 7) -> list[tuple[float, str]]:
    """From nought on, about so many, in words."""
    step = next((s for s in _SPANS if seconds / s <= many), ceil(seconds / many / 86_400) * 86_400)
    marks = [n * step for n in range(int(seconds // step) + 1)]
    return [(float(at), format_duration(at, parts=2) if at else "0") for at in marks]
