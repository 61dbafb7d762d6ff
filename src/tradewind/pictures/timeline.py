"""The generations of accelerators: how fast each was when it came, and what its speed costs today.

Speed is the dense peak that mixed-precision training can use, bf16 or else fp16. Price is on-demand
dollars per PFLOP-hour: of each provider the median of its offers, of an accelerator the median of
its providers (by offers, the cloud with most zones would outvote the rest), of a year the median of
its accelerators.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log10
from statistics import median
from typing import TYPE_CHECKING

from tradewind.base.errors import NotFound
from tradewind.catalog import query as queries
from tradewind.model import Accelerator
from tradewind.pictures import canvas
from tradewind.pictures.chart import Provenance, Table, money, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tradewind.catalog.query import Selection
    from tradewind.model import Price

VENDORS = {  # colour and marker
    "NVIDIA": ("green", "o"),
    "AMD": ("orange", "s"),
    "Google": ("blue", "D"),
    "AWS": ("gold", "^"),
    "Intel": ("sky", "v"),
}
OTHER = ("pink", "p")


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    vendor: str
    year: int
    tflops: float
    precision: str
    micros_pflop_hour: int | None  # None: nobody sells it on demand at a price to be trusted
    providers: int


@dataclass(frozen=True, slots=True)
class Year:
    year: int
    micros_pflop_hour: int
    accelerators: int


@dataclass(frozen=True)
class TimelineData:
    points: tuple[Point, ...]  # by year, fastest first
    years: tuple[Year, ...]  # those with anything on sale
    provenance: Provenance

    @property
    def heading(self) -> str:
        return "Accelerator generations: speed, and what it costs today"

    @property
    def caption(self) -> str:
        return (
            "Above: dense bf16 (else fp16) peak by year of release; hollow: not sold on demand at "
            "a known price. Below: on-demand dollars per PFLOP-hour, a mark for each accelerator "
            "(median of its providers), the bar at each year's median. Both scales are "
            f"logarithmic. {self.provenance.words}"
        ).strip()

    def tables(self) -> tuple[Table, ...]:
        accelerators = Table(
            "Accelerators by year of release",
            ("accelerator", "vendor", "year", "TFLOP/s", "precision", "$/PFLOP-hour", "providers"),
            tuple(
                (
                    p.name,
                    p.vendor,
                    str(p.year),
                    f"{p.tflops:g}",
                    p.precision,
                    "" if p.micros_pflop_hour is None else money(p.micros_pflop_hour),
                    str(p.providers),
                )
                for p in self.points
            ),
            names=2,
        )
        if not self.years:
            return (accelerators,)
        years = Table(
            "Median on-demand price of speed by year of release",
            ("year", "median $/PFLOP-hour", "accelerators on sale"),
            tuple(
                (str(y.year), money(y.micros_pflop_hour), str(y.accelerators)) for y in self.years
            ),
        )
        return accelerators, years

    def size(self) -> tuple[float, float]:
        return canvas.WIDTH, _LEGEND + _SPEED + _AXIS + (_PRICE + _AXIS if self.years else 0)

    def paint(self, area: canvas.Area) -> None:
        _paint(self, area)


def data(accelerators: Mapping[str, Accelerator], selection: Selection) -> TimelineData:
    """Every accelerator whose speed is known; priced by the selection's on-demand offers."""
    costs, prices = _costs(accelerators, selection)
    points = []
    for one in accelerators.values():
        tflops = one.bf16_tflops or one.fp16_tflops
        if not tflops:
            continue
        asked = costs.get(one.name, {})
        middle = round(median(median(each) for each in asked.values())) if asked else None
        precision = "bf16" if one.bf16_tflops else "fp16"
        points.append(
            Point(one.name, one.vendor, one.release_year, tflops, precision, middle, len(asked))
        )
    if not points:
        raise NotFound(
            "there is nothing to draw: no accelerator with a known bf16 or fp16 rate",
            hint="ask for other accelerators",
        )
    points.sort(key=lambda p: (p.year, -p.tflops, p.name))
    by_year: dict[int, list[int]] = defaultdict(list)
    for point in points:
        if point.micros_pflop_hour is not None:
            by_year[point.year].append(point.micros_pflop_hour)
    years = tuple(Year(y, round(median(each)), len(each)) for y, each in sorted(by_year.items()))
    return TimelineData(tuple(points), years, Provenance.of(prices))


def _costs(
    accelerators: Mapping[str, Accelerator], selection: Selection
) -> tuple[dict[str, dict[str, list[float]]], list[Price]]:
    """Micro-dollars per PFLOP-hour by accelerator and provider, and the prices they come from."""
    query = replace(selection.query, markets=("on_demand",), sort="hour")
    on_demand = queries.select(selection.table, {}, query, selection.today)
    chosen = set(selection.rows)
    costs: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    prices = []
    columns = [on_demand.values(c) for c in ("accelerator", "provider", "accelerator_count")]
    for index, (name, provider, count) in enumerate(zip(*columns, strict=True)):
        known = accelerators.get(name)
        tflops = (known.bf16_tflops or known.fp16_tflops) if known else None
        if not tflops or not count or on_demand.rows[index] not in chosen:
            continue
        price = on_demand.price(index)
        if price.micros_hour > 0:  # what is free has no place on a logarithmic scale
            costs[name][provider].append(price.micros_hour / (count * tflops / 1000))
            prices.append(price)
    return costs, prices


# -- painting ------------------------------------------------------------------------------------

_LEGEND, _SPEED, _PRICE, _AXIS = 0.34, 6.2, 3.2, 0.5
_LEFT, _RIGHT = 0.75, 0.05
_NAME_SIZE, _NAME_GAP = 7.3, 0.14
_WIDEST_YEAR = 2.2
_LEAST_RANGE = 6
_LEAD = 0.12  # of a year's band left of its marks
_NUDGE = 0.125  # inches between marks that would hide each other
_NEAR = 0.115  # inches at which they would
_MARK = 6.5  # points


@dataclass(frozen=True, slots=True)
class _Named:
    """A mark and its name in the upper panel; inches from the year's left and from the bottom."""

    points: Sequence[Point]
    x: float
    y: float
    name: str
    name_x: float
    name_y: float


def _paint(data: TimelineData, area: canvas.Area) -> None:
    _legend(data, area.sheet())
    years = data.points[0].year, data.points[-1].year
    rates = _Scale.of([p.tflops for p in data.points], _SPEED)
    named = {year: _named(data, year, rates) for year in range(years[0], years[1] + 1)}
    room = area.width - _LEFT - _RIGHT
    # Names of the last year may be wider than a year's band; the bands give way.
    end = max(n.name_x + canvas.text_width(n.name, _NAME_SIZE) for n in named[years[1]]) + 0.05
    before = _LEAD + years[1] - years[0]
    per_year = min(room / (before + 1 - _LEAD), (room - end) / before, _WIDEST_YEAR)
    width = before * per_year + max(end, (1 - _LEAD) * per_year)
    limits = years[0] - _LEAD, years[0] - _LEAD + width / per_year

    speed = area.axes(_LEFT, _LEGEND, width, _SPEED)
    _frame(speed, limits, years)
    rates.apply(speed, "dense TFLOP/s", "{:,.4g}".format)
    for year, marks in named.items():
        for mark in marks:
            _name(speed, mark, year, per_year, rates)
    if data.years:
        price = area.axes(_LEFT, _LEGEND + _SPEED + _AXIS, width, _PRICE)
        _frame(price, limits, years)
        known = [p.micros_pflop_hour / 1e6 for p in data.points if p.micros_pflop_hour is not None]
        costs = _Scale.of(known, _PRICE)
        costs.apply(price, "on-demand $ per PFLOP-hour", lambda usd: money(usd * 1e6))
        for one in data.years:
            _year(data, one, price, per_year, costs)


@dataclass(frozen=True, slots=True)
class _Scale:
    """A logarithmic scale of so many inches."""

    low: float
    high: float
    inches: float

    @classmethod
    def of(cls, values: Sequence[float], inches: float) -> _Scale:
        low, high = min(values), max(values)
        # A few values alike still get a wide scale: one of trifles would look like news.
        room = max((high / low) ** 0.06 * 1.08, (_LEAST_RANGE * low / high) ** 0.5)
        return cls(low / room, high * room, inches)

    def place(self, value: float) -> float:
        return log10(value / self.low) / log10(self.high / self.low) * self.inches

    def value(self, place: float) -> float:
        return float(self.low * (self.high / self.low) ** (place / self.inches))

    def apply(self, axes: Axes, label: str, words: Callable[[float], str]) -> None:
        axes.set_yscale("log")
        axes.set_ylim(self.low, self.high)
        ticks = canvas.dollar_ticks(self.low, self.high, log=True)
        axes.set_yticks(ticks, [words(tick) for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.set_ylabel(label)
        axes.grid(axis="y")


def _frame(axes: Axes, limits: tuple[float, float], years: tuple[int, int]) -> None:
    axes.set_xlim(*limits)
    every = range(years[0], years[1] + 1)
    axes.set_xticks([*every], [str(year) for year in every])
    axes.tick_params(axis="x", length=0)
    for year in every[::2]:
        end = year + 1 - _LEAD if year < years[1] else limits[1]
        axes.axvspan(year - _LEAD, end, color=canvas.tone("stripe"), linewidth=0, zorder=0)


def _named(data: TimelineData, year: int, scale: _Scale) -> list[_Named]:
    groups = _alike([p for p in data.points if p.year == year])
    groups.sort(key=lambda group: group[0].tflops)
    heights = [scale.place(group[0].tflops) for group in groups]
    nudges = _nudges(heights)
    places = canvas.spread(heights, _NAME_GAP, 0.08, scale.inches - 0.08)

    def start(at: float) -> float:
        """Right of every mark that the name stands beside."""
        near = (n for n, h in zip(nudges, heights, strict=True) if abs(h - at) < _NAME_GAP * 1.3)
        return max(near, default=0.0) + 0.13

    return [
        _Named(group, nudge, height, _common_name(group), start(at), at)
        for group, nudge, height, at in zip(groups, nudges, heights, places, strict=True)
    ]


def _name(axes: Axes, mark: _Named, year: int, per_year: float, scale: _Scale) -> None:
    x, name_x = year + mark.x / per_year, year + mark.name_x / per_year
    tflops, beside = mark.points[0].tflops, scale.value(mark.name_y)
    if abs(mark.name_y - mark.y) > 0.03 or mark.name_x - mark.x > 0.2:
        axes.plot(
            [x, name_x - 0.015 / per_year], [tflops, beside],
            color=canvas.tone("grey"), linewidth=0.5, zorder=1.5,
        )  # fmt: skip
    _mark(axes, x, tflops, mark.points[0].vendor, any(p.providers for p in mark.points))
    axes.text(name_x, beside, mark.name, size=_NAME_SIZE, va="center_baseline", zorder=4)


def _year(data: TimelineData, year: Year, axes: Axes, per_year: float, scale: _Scale) -> None:
    """A year's median across its band, its accelerators at the left of it."""
    middle, end = year.micros_pflop_hour / 1e6, year.year + 0.94 - _LEAD
    axes.plot(
        [year.year - _LEAD / 2, end], [middle, middle], color=canvas.tone("ink"), linewidth=1.6
    )
    axes.annotate(
        money(year.micros_pflop_hour), (end, middle), xytext=(0, 3), size=8.5, weight="bold",
        textcoords="offset points", ha="right", va="bottom",
    )  # fmt: skip
    costs = sorted(
        (p.micros_pflop_hour / 1e6, p.vendor)
        for p in data.points
        if p.year == year.year and p.micros_pflop_hour is not None
    )
    nudges = _nudges([scale.place(cost) for cost, _ in costs])
    for (cost, vendor), nudge in zip(costs, nudges, strict=True):
        _mark(axes, year.year + nudge / per_year, cost, vendor, True)


def _alike(points: Sequence[Point]) -> list[list[Point]]:
    """Points of one year that would lie on one another under one mark: same vendor and speed."""
    groups: dict[tuple[str, float], list[Point]] = defaultdict(list)
    for point in points:
        groups[point.vendor, point.tflops].append(point)
    return list(groups.values())


def _common_name(group: Sequence[Point]) -> str:
    """`A100 (3 kinds)`: the words that the names begin with alike, else the first and a count."""
    if len(group) == 1:
        return short(group[0].name, 18)
    words = [point.name.split("-") for point in group]
    same = []
    for parts in zip(*words, strict=False):
        if len(set(parts)) > 1:
            break
        same.append(parts[0])
    if same:
        return f"{short('-'.join(same), 10)} ({len(group)} kinds)"
    return f"{short(group[0].name, 14)} + {len(group) - 1}"


def _nudges(heights: Sequence[float]) -> list[float]:
    """How far to the right each mark goes so that none hides another; `heights` ascend."""
    lanes: list[float] = []  # the highest mark of each lane so far
    nudges = []
    for height in heights:
        lane = next((i for i, top in enumerate(lanes) if height - top >= _NEAR), len(lanes))
        if lane == len(lanes):
            lanes.append(height)
        lanes[lane] = height
        nudges.append(lane * _NUDGE)
    return nudges


def _mark(axes: Axes, x: float, y: float, vendor: str, sold: bool) -> None:
    role, marker = VENDORS.get(_maker(vendor), OTHER)
    colour = canvas.tone(role)
    axes.plot(
        [x], [y], marker=marker, markersize=_MARK, linestyle="none", zorder=3,
        markerfacecolor=colour if sold else canvas.tone("ground"),
        markeredgecolor=canvas.tone("ground") if sold else colour,
        markeredgewidth=0.5 if sold else 1.3,
    )  # fmt: skip


def _maker(vendor: str) -> str:
    """The firm without its divisions: `Intel Habana` is Intel."""
    return vendor.partition(" ")[0]


def _legend(data: TimelineData, sheet: Axes) -> None:
    makers = {_maker(point.vendor) for point in data.points}
    entries = [(maker, maker) for maker in VENDORS if maker in makers]
    others = sorted(makers - set(VENDORS))
    if others:
        entries.append((others[0], short(", ".join(others), 40)))
    x, y = _LEFT + 0.08, 0.1
    for maker, text in entries:
        _mark(sheet, x, y, maker, True)
        sheet.text(x + 0.12, y, text, size=8.5, color=canvas.tone("quiet"), va="center_baseline")
        x += 0.12 + canvas.text_width(text, 8.5) + 0.3
