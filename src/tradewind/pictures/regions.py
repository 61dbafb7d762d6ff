"""What one accelerator costs where: a line for each provider and region, a mark for each market.

Regions of one provider whose prices read the same share a line: "17 regions at $2.99" says more
than seventeen lines. Prices in doubt are judged as the selection judges them.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.catalog import query as queries
from tradewind.model import MARKETS, Market
from tradewind.pictures import canvas
from tradewind.pictures.chart import (
    MARKET_WORDS,
    Provenance,
    Table,
    counted,
    money,
    nothing_to_draw,
    short,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tradewind.catalog.query import Selection
    from tradewind.model import Price

MOST_ACCELERATORS = 6
MOST_LINES = 40
"""Shared among the accelerators; yet every provider keeps its cheapest line, up to this many."""
WIDE = 6  # highest over lowest price from which the scale is logarithmic


@dataclass(frozen=True, slots=True)
class Line:
    accelerator: str
    provider: str
    regions: tuple[str, ...]  # all of them at these prices
    prices: tuple[tuple[Market, int], ...]  # micro-dollars per accelerator-hour, cheapest first

    @property
    def cheapest(self) -> int:
        return self.prices[0][1]

    def price(self, market: Market) -> int | None:
        return dict(self.prices).get(market)


@dataclass(frozen=True, slots=True)
class Panel:
    """One accelerator. Providers stand by their cheapest line, each one's lines cheapest first."""

    accelerator: str
    lines: tuple[Line, ...]
    hidden: int  # lines beyond those
    hidden_providers: int  # providers without a line


@dataclass(frozen=True)
class RegionsData:
    panels: tuple[Panel, ...]
    markets: tuple[Market, ...]
    provenance: Provenance

    @property
    def heading(self) -> str:
        names = [panel.accelerator for panel in self.panels]
        return f"Price per accelerator-hour by region and market: {', '.join(names)}"

    @property
    def caption(self) -> str:
        hidden = sum(panel.hidden for panel in self.panels)
        words = ["US dollars; regions of one provider at the same prices share a line."]
        if hidden:
            each = not any(panel.hidden_providers for panel in self.panels)
            words.append(
                f"{counted(hidden, 'more line')} not shown"
                + ("; each provider's cheapest is." if each else ".")
            )
        return " ".join([*words, self.provenance.words]).strip()

    def tables(self) -> tuple[Table, ...]:
        return (
            Table(
                self.heading,
                ("accelerator", "provider", "regions", *(MARKET_WORDS[m] for m in self.markets)),
                tuple(
                    (
                        line.accelerator,
                        line.provider,
                        ", ".join(region or "any" for region in line.regions),
                        *(_words(line.price(m)) for m in self.markets),
                    )
                    for panel in self.panels
                    for line in panel.lines
                ),
                names=3,
            ),
        )

    def size(self) -> tuple[float, float]:
        return canvas.WIDTH, _LEGEND + sum(_panel_height(self, panel) for panel in self.panels)

    def paint(self, area: canvas.Area) -> None:
        _paint(self, area)


def _words(micros: int | None) -> str:
    return "" if micros is None else money(micros)


def data(selection: Selection) -> RegionsData:
    """The selection's cheapest price per accelerator-hour in each region on each market."""
    found: dict[tuple[str, str, str], dict[Market, tuple[float, Price]]] = defaultdict(dict)
    chosen = set(selection.rows)
    for market in selection.query.markets or MARKETS:
        # The same question asked of one market: what is doubtful, stale or too dear stays out.
        query = replace(selection.query, markets=(market,), sort="hour")
        on_market = queries.select(selection.table, {}, query, selection.today)
        columns = [
            on_market.values(name)
            for name in ("accelerator", "provider", "region", "accelerator_count")
        ]
        for index, (name, provider, region, count) in enumerate(zip(*columns, strict=True)):
            if name and count and on_market.rows[index] in chosen:
                price = on_market.price(index)
                per_accelerator = price.micros_hour / count
                place = found[name, provider, region]
                if market not in place or per_accelerator < place[market][0]:
                    place[market] = per_accelerator, price
    if not found:
        raise nothing_to_draw(selection, "accelerator with a price")
    names = {name for name, _, _ in found}
    if len(names) > MOST_ACCELERATORS:
        raise InvalidValue(
            f"{len(names)} accelerators are too many for prices by region",
            hint=f"choose at most {MOST_ACCELERATORS} of them",
        )
    lines = _lines(found)
    by_name = {name: [line for line in lines if line.accelerator == name] for name in names}
    order = sorted(names, key=lambda name: (by_name[name][0].cheapest, name))
    share = MOST_LINES // len(names)
    panels = tuple(_panel(name, by_name[name], share) for name in order)
    shown = {
        (line.accelerator, line.provider, region)
        for panel in panels
        for line in panel.lines
        for region in line.regions
    }
    markets = {market for panel in panels for line in panel.lines for market, _ in line.prices}
    return RegionsData(
        panels,
        tuple(m for m in MARKETS if m in markets),
        Provenance.of(price for place in shown for _, price in found[place].values()),
    )


def _lines(found: dict[tuple[str, str, str], dict[Market, tuple[float, Price]]]) -> list[Line]:
    """Cheapest first; regions of one provider that read the same are one."""
    alike: dict[tuple[object, ...], list[str]] = defaultdict(list)
    prices: dict[tuple[object, ...], list[tuple[Market, int]]] = {}
    for name, provider, region in sorted(found):
        here = [(m, round(micros)) for m, (micros, _) in found[name, provider, region].items()]
        here.sort(key=lambda one: (one[1], one[0]))
        key = (name, provider, frozenset((m, money(micros)) for m, micros in here))
        alike[key].append(region)
        prices.setdefault(key, here)
    lines = [
        Line(str(key[0]), str(key[1]), tuple(regions), tuple(prices[key]))
        for key, regions in alike.items()
    ]
    return sorted(lines, key=lambda line: (line.cheapest, line.provider, line.regions))


def _panel(name: str, lines: list[Line], most: int) -> Panel:
    firsts: dict[str, int] = {}
    for rank, line in enumerate(lines):
        firsts.setdefault(line.provider, rank)
    # Every provider's cheapest first, then the cheapest of the rest.
    ranks = sorted(firsts.values())
    ranks += [rank for rank in range(len(lines)) if rank not in set(ranks)]
    most = max(most, min(len(firsts), MOST_LINES))
    kept = sorted(ranks[:most], key=lambda rank: (firsts[lines[rank].provider], rank))
    return Panel(
        name,
        tuple(lines[rank] for rank in kept),
        len(lines) - len(kept),
        len(firsts) - len({lines[rank].provider for rank in kept}),
    )


# -- painting ------------------------------------------------------------------------------------

_LINE, _LEGEND, _TITLE, _AXIS, _GAP = 0.235, 0.36, 0.32, 0.55, 0.12
_SIZE = 8.5
_TOP_AXIS_FROM = 25  # lines; longer panels have the scale at the top too
_COLOURS: dict[Market, tuple[str, str]] = {
    "on_demand": ("blue", "o"),
    "spot": ("orange", "D"),
    "reserved": ("green", "s"),
}


def _panel_height(data: RegionsData, panel: Panel) -> float:
    title = _TITLE if len(data.panels) > 1 else 0
    top = 0.25 if len(panel.lines) > _TOP_AXIS_FROM else 0
    return title + top + len(panel.lines) * _LINE + _GAP + _AXIS


def _paint(data: RegionsData, area: canvas.Area) -> None:
    sheet = area.sheet()
    lines = [line for panel in data.panels for line in panel.lines]
    provider_width = canvas.widest([short(line.provider, 20) for line in lines], _SIZE, bold=True)
    left = provider_width + canvas.widest([_places(line) for line in lines], _SIZE) + 0.4
    limits = _limits([micros / 1e6 for line in lines for _, micros in line.prices])
    _legend(data, sheet)
    y = _LEGEND
    for panel in data.panels:
        if len(data.panels) > 1:
            sheet.text(
                0, y + 0.1, short(panel.accelerator, 40), size=10, weight="bold", va="center"
            )
            y += _TITLE
        scale_above = len(panel.lines) > _TOP_AXIS_FROM
        y += 0.25 if scale_above else 0
        high = len(panel.lines) * _LINE + _GAP
        axes = area.axes(left, y, area.width - left - 0.1, high)
        _scale(axes, limits, high, above=scale_above)
        _labels(panel, sheet, y, left, area.width)
        _marks(panel, axes)
        y += high + _AXIS


def _limits(prices: list[float]) -> tuple[float, float, bool]:
    """From, to, and whether the scale is logarithmic; with room for the numbers at both ends."""
    low, high = min(prices), max(prices)
    if low > 0 and high / low > WIDE:
        room = (high / low) ** 0.07
        return low / room, high * room, True
    high = high or 1.0
    return (0.0 if low > 0.08 * high else -0.07 * high), high * 1.08, False


def _scale(axes: Axes, limits: tuple[float, float, bool], high: float, *, above: bool) -> None:
    low, top, log = limits
    if log:
        axes.set_xscale("log")
    axes.set_xlim(low, top)
    axes.set_ylim(high, 0)
    ticks = canvas.dollar_ticks(low, top, log=log)
    axes.set_xticks(ticks, [money(tick * 1e6) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.tick_params(axis="x", top=above, labeltop=above, length=0)
    axes.set_xlabel("$ per accelerator-hour" + (" (logarithmic)" if log else ""))


def _labels(panel: Panel, sheet: Axes, top: float, left: float, width: float) -> None:
    before = ""
    for number, line in enumerate(panel.lines):
        y = top + _GAP / 2 + (number + 0.5) * _LINE
        if line.provider != before:
            name = short(line.provider, 20)
            sheet.text(0, y, name, size=_SIZE, weight="bold", va="center_baseline")
            if number:
                edge = y - _LINE / 2
                sheet.plot([0, width], [edge, edge], color=canvas.tone("line"), linewidth=0.6)
            before = line.provider
        sheet.text(
            left - 0.15, y, _places(line), size=_SIZE, color=canvas.tone("quiet"), ha="right",
            va="center_baseline",
        )  # fmt: skip


def _places(line: Line) -> str:
    first = short(line.regions[0] or "any region", 26)
    more = len(line.regions) - 1
    return f"{first} + {more} more" if more else first


def _marks(panel: Panel, axes: Axes) -> None:
    for number, line in enumerate(panel.lines):
        y = _GAP / 2 + (number + 0.5) * _LINE
        ends = [line.prices[0][1] / 1e6, line.prices[-1][1] / 1e6]
        if len(line.prices) > 1:
            axes.plot(ends, [y, y], color=canvas.tone("grey"), linewidth=1.2, alpha=0.55, zorder=2)
        for market, micros in line.prices:
            colour, marker = _COLOURS[market]
            axes.plot(
                [micros / 1e6], [y], marker=marker, color=canvas.tone(colour), zorder=3,
                markersize=6.5 if marker == "o" else 5.5, linestyle="none",
                markeredgecolor=canvas.tone("ground"), markeredgewidth=0.6, clip_on=False,
            )  # fmt: skip
        for (_, micros), side in zip((line.prices[0], line.prices[-1]), (-1, 1), strict=True):
            if side == -1 and len(line.prices) == 1:
                continue
            axes.annotate(
                money(micros), (micros / 1e6, y), xytext=(side * 6.5, 0), annotation_clip=False,
                textcoords="offset points", ha="left" if side > 0 else "right",
                va="center_baseline", size=7.5,
            )  # fmt: skip


def _legend(data: RegionsData, sheet: Axes) -> None:
    x, y = 0.08, 0.1
    for market in data.markets:
        colour, marker = _COLOURS[market]
        size = 6.5 if marker == "o" else 5.5
        sheet.plot([x], [y], marker=marker, color=canvas.tone(colour), markersize=size)
        text = MARKET_WORDS[market]
        sheet.text(x + 0.12, y, text, size=8.5, color=canvas.tone("quiet"), va="center_baseline")
        x += 0.12 + canvas.text_width(text, 8.5) + 0.3
