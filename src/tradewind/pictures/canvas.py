"""Paper, ink and ruler: everything that the charts share when they are painted.

matplotlib is imported in functions only, and without pyplot, so that no display is looked for and
no figure outlives its drawing. Charts measure in inches from the top left of their `Area`.

Colours have roles. A role's light colour is a hex number that no other role has; so the page can
put a CSS variable wherever that number stands in an SVG, and one drawing serves light and dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from tradewind.base.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 12.0
"""Inches of a usual chart. Letters are sized to be read when this is 1200 pixels wide."""
DPI = 200
MOST_SIDE = 60_000  # pixels; matplotlib's rasteriser ends at 65,536
MOST_PIXELS = 60_000_000  # in all; four bytes each while drawing
MARGIN = 0.4
SALT = "tradewind"

TONES: dict[str, tuple[str, str]] = {  # role: on white, on black
    "ground": ("#ffffff", "#14171c"),
    "ink": ("#1c2128", "#e8ebf0"),
    "quiet": ("#59626e", "#a3adba"),
    "line": ("#dde1e7", "#303743"),
    "stripe": ("#f6f7f9", "#1a1e25"),
    # From cheapest to dearest, and the letters on it. One hue: the order survives colour blindness.
    "heat-0": ("#0b4f8a", "#8fd0ff"),
    "heat-1": ("#3579b8", "#5aaae6"),
    "heat-2": ("#7db1de", "#2f73ab"),
    "heat-3": ("#b4d3ee", "#25577f"),
    "heat-4": ("#dbe9f6", "#1e3f5b"),
    "heat-5": ("#eef0f2", "#222a34"),
    "on-heat-0": ("#fffffe", "#0d1b28"),
    "on-heat-1": ("#fffffd", "#0d1b29"),
    "on-heat-2": ("#14202c", "#f3f8fd"),
    "on-heat-3": ("#14202d", "#f3f8fe"),
    "on-heat-4": ("#14202e", "#dde7f1"),
    "on-heat-5": ("#4a535f", "#aeb8c4"),
    # Okabe and Ito's colours, darkened on white and lightened on black for contrast.
    "blue": ("#0072b2", "#4fb0ea"),
    "orange": ("#d55e00", "#ff9a52"),
    "green": ("#009e73", "#35c79c"),
    "pink": ("#c0609a", "#e29cc8"),
    "gold": ("#d39200", "#f2c14e"),
    "sky": ("#56b4e9", "#9bd6f7"),
    "grey": ("#7a828d", "#b4bcc7"),
    "brown": ("#8a5a2b", "#c99a6b"),
}
SERIES = ("blue", "orange", "green", "pink", "gold", "sky", "grey", "brown")
assert len({light for light, _ in TONES.values()}) == len(TONES)


def tone(role: str) -> str:
    return TONES[role][0]


@dataclass(frozen=True)
class Area:
    """A part of the paper, in inches; `left` and `top` are measured from the figure's corner."""

    figure: Figure
    left: float
    top: float
    width: float
    height: float

    def axes(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes whose frame is that rectangle of this area."""
        whole, high = self.figure.get_size_inches()
        x, y = self.left + left, self.top + top
        axes = self.figure.add_axes(
            (x / whole, 1 - (y + height) / high, width / whole, height / high)
        )
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        return axes

    def sheet(self) -> Axes:
        """Axes over the whole area without frame, whose coordinates are inches, downwards."""
        axes = self.axes(0, 0, self.width, self.height)
        axes.set_axis_off()
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        return axes


class Painted(Protocol):
    """What can be put on paper: a chart (chart.py)."""

    @property
    def heading(self) -> str: ...
    @property
    def caption(self) -> str: ...
    def size(self) -> tuple[float, float]: ...
    def paint(self, area: Area) -> None: ...


def need_matplotlib() -> None:
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"drawing needs matplotlib: {error}", hint="pip install 'tradewind[plot]'"
        ) from None


@contextmanager
def style() -> Iterator[None]:
    """Our settings and nobody else's: a user's matplotlibrc must not change the picture."""
    need_matplotlib()
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name in a script that the font lacks is drawn as boxes; the SVG and the page hold it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                # The first comes with matplotlib and is what widths are measured in; a browser
                # that lacks it finds the next, which are narrower, so nothing collides.
                "font.family": ["sans-serif"],
                "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial", "sans-serif"],
                "font.size": 8.5,
                "text.parse_math": False,  # `$1 to $2` is money
                "text.color": tone("ink"),
                "axes.edgecolor": tone("line"),
                "axes.facecolor": "none",
                "axes.labelcolor": tone("quiet"),
                "axes.labelsize": 8.5,
                "axes.linewidth": 0.8,
                "axes.axisbelow": True,
                "grid.color": tone("line"),
                "grid.linewidth": 0.7,
                "xtick.color": tone("line"),
                "xtick.labelcolor": tone("quiet"),
                "ytick.color": tone("line"),
                "ytick.labelcolor": tone("quiet"),
                "xtick.labelsize": 8,
                "ytick.labelsize": 8,
                "xtick.major.size": 3,
                "ytick.major.size": 3,
                "xtick.minor.size": 0,
                "ytick.minor.size": 0,
                "svg.fonttype": "none",  # words stay words: smaller, searchable, read aloud
                "svg.hashsalt": SALT,
            }
        )
        yield


@cache
def _renderer() -> Any:
    from matplotlib.backends import backend_agg

    untyped: Any = backend_agg
    return untyped.RendererAgg(8, 8, 72)  # one pixel is one point


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Inches."""
    from matplotlib.font_manager import FontProperties

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width: float = _renderer().get_text_width_height_descent(text, font, False)[0]
    return width / 72


def widest(texts: Sequence[str], size: float, *, bold: bool = False) -> float:
    return max((text_width(text, size, bold=bold) for text in set(texts)), default=0.0)


def wrapped(text: str, size: float, width: float, *, bold: bool = False) -> list[str]:
    """Lines no wider than so many inches; a single word that is wider stays whole."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size, bold=bold) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions close to the wanted ones, in the same order, at least `gap` apart.

    `wanted` ascends. Between `low` and `high` where there is room; where there is not, evenly.
    """
    if not wanted:
        return []
    room = (high - low) / max(1, len(wanted) - 1)
    gap = min(gap, room)
    # Touching labels form blocks that settle at the mean of what their members want.
    blocks: list[tuple[float, int]] = []  # sum of (wanted - own offset), members
    for place in wanted:
        total, members = place, 1
        while blocks:
            last_total, last_members = blocks[-1]
            if total / members >= last_total / last_members + last_members * gap:
                break
            blocks.pop()
            total = last_total + total - last_members * gap * members
            members += last_members
        blocks.append((total, members))
    places = []
    for total, members in blocks:
        places += [total / members + i * gap for i in range(members)]
    for i in range(len(places)):  # push inside from below, then from above
        places[i] = max(places[i], low + i * gap)
    for i in range(len(places)):
        places[-1 - i] = min(places[-1 - i], high - i * gap)
    return places


def dollar_ticks(low: float, high: float, *, log: bool) -> list[float]:
    """Round numbers from `low` to `high`; on a log scale 1-2-5, finer where that gives too few."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if not log:
        found = MaxNLocator(nbins=9, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return [t for t in found if low <= t <= high]
    inside: list[float] = []
    for steps in ((1,), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        found = LogLocator(subs=steps, numticks=99).tick_values(low, high)
        inside = [t for t in found if low <= t <= high]
        if len(inside) >= 4:
            break
    if len(inside) < 3:
        return dollar_ticks(low, high, log=False)
    return inside


# -- whole pictures ------------------------------------------------------------------------------


def render(charts: Sequence[Painted], *, title: str, note: str, form: str) -> bytes:
    """All charts below one another under the title, the note at the bottom right."""
    with style():
        return _saved(_framed(charts, title, note), form)


def render_bare(chart: Painted) -> tuple[str, float]:
    """One chart as SVG without heading, caption and ground, for the page has its own; and its
    width in inches."""
    with style():
        width, height = chart.size()
        figure = _figure(width, height)
        chart.paint(Area(figure, 0, 0, width, height))
        return _saved(figure, "svg", transparent=True).decode(), width


_TITLE, _HEADING, _CAPTION, _NOTE = 16.0, 11.5, 9.0, 8.0
_LEADING = 1.45 / 72  # inches of a line per point of its letters


def _framed(charts: Sequence[Painted], title: str, note: str) -> Figure:
    sizes = [chart.size() for chart in charts]
    width = max(w for w, _ in sizes)
    # (top, text, size, bold, tone) of every line, gathered while measuring how high the paper is
    lines: list[tuple[float, str, float, bool, str]] = []
    y = MARGIN

    def write(text: str, size: float, colour: str, *, bold: bool = False, after: float = 0) -> None:
        nonlocal y
        for line in wrapped(text, size, width, bold=bold):
            lines.append((y, line, size, bold, colour))
            y += size * _LEADING
        y += after

    write(title, _TITLE, "ink", bold=True, after=0.1)
    tops = []
    for chart, (_, height) in zip(charts, sizes, strict=True):
        write(chart.heading, _HEADING, "ink", bold=True, after=0.02)
        write(chart.caption, _CAPTION, "quiet", after=0.15)
        tops.append(y)
        y += height + 0.25
    notes = wrapped(note, _NOTE, width)
    total = y + len(notes) * _NOTE * _LEADING + MARGIN * 0.6

    figure = _figure(width + 2 * MARGIN, total)
    whole = width + 2 * MARGIN

    def place(top: float, x: float, text: str, size: float, colour: str, **how: Any) -> None:
        figure.text(
            x / whole, 1 - top / total, text, size=size, color=tone(colour), va="top", **how
        )

    for top, line, size, bold, colour in lines:
        place(top, MARGIN, line, size, colour, weight="bold" if bold else "normal")
    for number, line in enumerate(notes):
        top = y + number * _NOTE * _LEADING
        place(top, whole - MARGIN, line, _NOTE, "quiet", ha="right")
    for chart, top, (_, height) in zip(charts, tops, sizes, strict=True):
        chart.paint(Area(figure, MARGIN, top, width, height))
    return figure


def writable(text: str) -> str:
    """Without the characters that XML and HTML have no way to write; one would spoil the file."""
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "�", text)


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), facecolor=tone("ground"))


def _saved(figure: Figure, form: str, *, transparent: bool = False) -> bytes:
    buffer = io.BytesIO()
    if form == "svg":
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", metadata=nothing, transparent=transparent)
        return writable(buffer.getvalue().decode()).encode()
    width, height = figure.get_size_inches()
    dpi = min(DPI, MOST_SIDE / max(width, height), (MOST_PIXELS / (width * height)) ** 0.5)
    figure.savefig(buffer, format="png", dpi=dpi, metadata={"Software": None})
    return buffer.getvalue()
