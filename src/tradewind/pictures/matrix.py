"""Who sells what for how much: accelerators down, providers across.

A cell is the cheapest of the selection's prices per accelerator-hour. Its colour compares it with
the row's cheapest, because that is the choice a reader has: across rows, the numbers differ by the
chip and not by the seller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from tradewind.model import MARKETS, Accelerator, Market
from tradewind.pictures import canvas
from tradewind.pictures.chart import (
    MARKET_WORDS,
    Provenance,
    Table,
    money,
    nothing_to_draw,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tradewind.catalog.query import Selection
    from tradewind.model import Price

STEPS = (1.0, 1.25, 1.5, 2.0, 3.0)
"""Up to which multiple of the row's cheapest each colour goes; the last colour has no end."""
SIGNS: dict[Market, str] = {"on_demand": "", "spot": "\u2009s", "reserved": "\u2009r"}
OTHERS = "Others"


@dataclass(frozen=True, slots=True)
class Cell:
    micros_accelerator_hour: int
    market: Market
    ratio: float  # to the row's cheapest; 1 for the cheapest itself


@dataclass(frozen=True, slots=True)
class MatrixRow:
    accelerator: str
    family: str
    memory_gb: float | None
    cells: tuple[Cell | None, ...]  # one for each provider

    @property
    def sellers(self) -> int:
        return sum(cell is not None for cell in self.cells)


@dataclass(frozen=True)
class MatrixData:
    providers: tuple[str, ...]  # that sell most kinds first
    rows: tuple[MatrixRow, ...]  # of one family together, fastest first
    markets: tuple[Market, ...]  # those that any cell's price is from
    provenance: Provenance

    @property
    def heading(self) -> str:
        return "Cheapest price per accelerator-hour, by provider"

    @property
    def caption(self) -> str:
        if len(self.markets) == 1:
            market = f"All prices are {MARKET_WORDS[self.markets[0]]}. "
        else:
            signs = [f"{SIGNS[m].strip()}: {MARKET_WORDS[m]}" for m in self.markets if SIGNS[m]]
            plain = ["no letter: on-demand"] if "on_demand" in self.markets else []
            market = f"{'; '.join([*signs, *plain])}. "
        return (
            f"US dollars. {market}Empty: not sold, or no price to be trusted. "
            f"{self.provenance.words}"
        )

    def tables(self) -> tuple[Table, ...]:
        return (
            Table(
                self.heading,
                ("accelerator", *self.providers),
                tuple((r.accelerator, *(self._words(c) for c in r.cells)) for r in self.rows),
            ),
        )

    def _words(self, cell: Cell | None) -> str:
        if cell is None:
            return ""
        price = money(cell.micros_accelerator_hour)
        return f"{price} {MARKET_WORDS[cell.market]}" if len(self.markets) > 1 else price

    def size(self) -> tuple[float, float]:
        layout = _Layout.of(self)
        return layout.width, layout.height

    def paint(self, area: canvas.Area) -> None:
        _Painting(self, _Layout.of(self), area.sheet()).all()


def data(selection: Selection, accelerators: Mapping[str, Accelerator]) -> MatrixData:
    """The cheapest price of each accelerator at each provider, of those in the selection."""
    best: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
    names, providers, counts = (
        selection.values(column) for column in ("accelerator", "provider", "accelerator_count")
    )
    groups = selection.groups
    for index, (name, provider, count) in enumerate(zip(names, providers, counts, strict=True)):
        if not name or not count:
            continue  # a CPU-only machine
        prices = selection.table.prices[groups[index]]
        micros = prices.micros[selection.rows[index]]
        assert micros is not None
        found = (micros / count, index)
        best[name][provider] = min(found, best[name].get(provider, (inf, 0)))
    if not best:
        raise nothing_to_draw(selection, "accelerator with a price")
    sold = Counter(provider for cells in best.values() for provider in cells)
    across = tuple(sorted(sold, key=lambda provider: (-sold[provider], provider)))
    chosen: dict[tuple[str, str], tuple[float, Price]] = {
        (name, provider): (micros, selection.price(index))
        for name, cells in best.items()
        for provider, (micros, index) in cells.items()
    }
    families = _families(best, accelerators)

    def row(name: str) -> MatrixRow:
        least = min(micros for micros, _ in best[name].values())

        def cell(provider: str) -> Cell | None:
            if (name, provider) not in chosen:
                return None
            micros, price = chosen[name, provider]
            ratio = 1.0 if micros <= least else micros / least if least > 0 else inf
            return Cell(round(micros), price.market, ratio)

        known = accelerators.get(name)
        return MatrixRow(
            name, families[name], known.memory_gb if known else None, tuple(map(cell, across))
        )

    weight: Counter[str] = Counter()
    for name, cells in best.items():
        weight[families[name]] += len(cells)

    def order(name: str) -> tuple[bool, int, str, float, str]:
        known = accelerators.get(name)
        peak = (known.training_tflops if known else None) or 0.0
        family = families[name]
        return family == OTHERS, -weight[family], family, -peak, name

    markets = {price.market for _, price in chosen.values()}
    return MatrixData(
        across,
        tuple(row(name) for name in sorted(best, key=order)),
        tuple(m for m in MARKETS if m in markets),
        Provenance.of(price for _, price in chosen.values()),
    )


def _families(
    names: Mapping[str, object], accelerators: Mapping[str, Accelerator]
) -> dict[str, str]:
    families = {name: _family(accelerators.get(name)) for name in names}
    members = Counter(families.values())
    # A heading over a single row is only noise.
    return {name: f if members[f] > 1 else OTHERS for name, f in families.items()}


def _family(accelerator: Accelerator | None) -> str:
    if accelerator is None:
        return OTHERS
    if accelerator.vendor == "NVIDIA":
        desk = accelerator.name.startswith(("RTX", "Quadro"))
        return "NVIDIA, desk-side" if desk else "NVIDIA, data centre"
    return accelerator.vendor


# -- painting ------------------------------------------------------------------------------------

_ROW, _FAMILY_ROW, _LEGEND = 0.25, 0.34, 0.42
_LEGEND_WIDTH = 8.6
_NAME_SIZE, _CELL_SIZE, _HEAD_SIZE = 8.5, 8.0, 8.5
_TILT = 0.75  # of a tilted word's length is height
_FOOT_FROM = 30  # rows; longer matrices name the providers at the bottom too
_MOST_LETTERS = 24


@dataclass(frozen=True, slots=True)
class _Layout:
    left: float
    column: float
    tilted: bool
    head: float
    foot: float
    width: float
    height: float

    @classmethod
    def of(cls, data: MatrixData) -> _Layout:
        names = [short(p, _MOST_LETTERS) for p in data.providers]
        name = canvas.widest(names, _HEAD_SIZE)
        label = canvas.widest([short(r.accelerator, _MOST_LETTERS) for r in data.rows], _NAME_SIZE)
        memory = canvas.widest([_memory(r) for r in data.rows], _NAME_SIZE - 1)
        left = label + memory + 0.4
        across = len(data.providers)
        texts = [_cell_text(data, cell) for row in data.rows for cell in row.cells]
        text = canvas.widest(texts, _CELL_SIZE, bold=True)
        column = max(text + 0.1, min(1.1, (canvas.WIDTH - left) / across))
        tilted = name > column - 0.08
        head = name * _TILT + 0.2 if tilted else 0.3
        # The last tilted name leans out to the right.
        width = max(_LEGEND_WIDTH, left + across * column + (name * _TILT if tilted else 0.1))
        foot = head if len(data.rows) > _FOOT_FROM else 0.0
        families = _family_count(data)
        body = len(data.rows) * _ROW + (families - 1) * _FAMILY_ROW
        return cls(left, column, tilted, head, foot, width, _LEGEND + head + body + foot + 0.05)


def _family_count(data: MatrixData) -> int:
    return len({row.family for row in data.rows})


def _memory(row: MatrixRow) -> str:
    return f"{row.memory_gb:g} GB" if row.memory_gb else ""


def _cell_text(data: MatrixData, cell: Cell | None) -> str:
    if cell is None:
        return ""
    sign = SIGNS[cell.market] if len(data.markets) > 1 else ""
    return money(cell.micros_accelerator_hour) + sign


@dataclass(frozen=True, slots=True)
class _Painting:
    data: MatrixData
    layout: _Layout
    sheet: Axes
    boxes: dict[str | None, list[list[tuple[float, float]]]] = field(default_factory=dict)
    rules: list[list[tuple[float, float]]] = field(default_factory=list)

    def all(self) -> None:
        self._legend()
        y = _LEGEND + self.layout.head
        self._providers(y - 0.07)
        several = _family_count(self.data) > 1
        family = None
        for number, row in enumerate(self.data.rows):
            if several and row.family != family:
                y += _FAMILY_ROW if number else 0  # the first stands beside the providers' names
                self._text(0, y - 0.1, row.family, size=8.5, weight="bold", tone="quiet")
                self._rule(y)
                family = row.family
            elif number == 0:
                self._rule(y)
            self._row(row, y)
            y += _ROW
            self._rule(y)
        if self.layout.foot:
            self._providers(y + 0.07, below=True)
        self._gathered()

    def _row(self, row: MatrixRow, y: float) -> None:
        middle = y + _ROW / 2
        layout = self.layout
        self._text(0, middle, short(row.accelerator, _MOST_LETTERS), size=_NAME_SIZE)
        self._text(
            layout.left - 0.15, middle, _memory(row), size=_NAME_SIZE - 1, tone="quiet", ha="right"
        )
        for column, cell in enumerate(row.cells):
            if cell is None:
                continue
            x = layout.left + column * layout.column
            text = _cell_text(self.data, cell)
            colour = "ink"
            if row.sellers > 1:
                step = bisect_left(STEPS, cell.ratio)
                self._box(x, y, layout.column, f"heat-{step}")
                colour = f"on-heat-{step}"
            else:
                self._box(x, y, layout.column, None)
            self._text(
                x + layout.column / 2,
                middle,
                text,
                size=_CELL_SIZE,
                tone=colour,
                ha="center",
                weight="bold" if row.sellers > 1 and cell.ratio == 1 else "normal",
            )

    def _providers(self, y: float, *, below: bool = False) -> None:
        layout = self.layout
        for column, provider in enumerate(self.data.providers):
            x = layout.left + (column + 0.5) * layout.column
            name = short(provider, _MOST_LETTERS)
            if layout.tilted:
                self.sheet.text(
                    x,
                    y,
                    name,
                    size=_HEAD_SIZE,
                    rotation=-48 if below else 48,
                    rotation_mode="anchor",
                    va="top" if below else "bottom",
                    ha="left",
                )
            else:
                self._text(x, y + (0.09 if below else -0.09), name, size=_HEAD_SIZE, ha="center")

    def _legend(self) -> None:
        x, y = 0.0, 0.02
        words = ["cheapest", *(f"up to {step:g}×" for step in STEPS[1:]), f"over {STEPS[-1]:g}×"]
        entries: list[tuple[str, str | None]] = [(w, f"heat-{i}") for i, w in enumerate(words)]
        if any(row.sellers == 1 for row in self.data.rows):
            entries.append(("sold by one only", None))
        if all(row.sellers == 1 for row in self.data.rows):
            entries = entries[-1:]
        for text, heat in entries:
            self._box(x, y, 0.3, heat, high=0.19)
            self._text(x + 0.37, y + 0.095, text, size=8, tone="quiet")
            x += 0.37 + canvas.text_width(text, 8) + 0.22

    def _box(self, x: float, y: float, wide: float, heat: str | None, high: float = _ROW) -> None:
        gap = 0.015
        left, right, top, bottom = x + gap, x + wide - gap, y + gap, y + high - gap
        corners = [(left, top), (right, top), (right, bottom), (left, bottom)]
        self.boxes.setdefault(heat, []).append(corners)

    def _rule(self, y: float) -> None:
        end = self.layout.left + len(self.data.providers) * self.layout.column
        self.rules.append([(0.0, y), (end, y)])

    def _gathered(self) -> None:
        """Boxes of one colour are one thing to matplotlib, or large matrices would take seconds."""
        from matplotlib.collections import LineCollection, PolyCollection

        lines = LineCollection(self.rules, colors=canvas.tone("line"), linewidths=0.5, zorder=0.5)
        self.sheet.add_collection(lines, autolim=False)
        for heat, boxes in self.boxes.items():
            filled = PolyCollection(
                boxes,
                facecolors=canvas.tone(heat) if heat else "none",
                edgecolors="none" if heat else canvas.tone("grey"),
                linewidths=0.6,
            )
            self.sheet.add_collection(filled, autolim=False)

    def _text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float,
        tone: str = "ink",
        weight: str = "normal",
        ha: str = "left",
    ) -> None:
        self.sheet.text(
            x, y, text, size=size, color=canvas.tone(tone), weight=weight, ha=ha,
            va="center_baseline",
        )  # fmt: skip
