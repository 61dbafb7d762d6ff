"""A few types of machine side by side: what they cost and what one gets.

Every bar is a share of the best among those compared, and longer is better also for prices; what a
bar stands for is written at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.pictures import canvas
from tradewind.pictures.chart import Provenance, Table, money, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TYPES = len(canvas.SERIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedType:
    """One machine in one place; `None` where unknown or not sold. The two ratios of price are of
    the on-demand price, so that they compare like with like."""

    name: str
    provider: str
    region: str
    on_demand_micros_hour: int | None = None
    spot_micros_hour: int | None = None
    micros_accelerator_hour: int | None = None
    micros_pflop_hour: int | None = None
    accelerator_memory_gb: float | None = None  # of all accelerators of the machine together
    peak_pflops: float | None = None  # dense, of all together
    network_gbps: float | None = None


@dataclass(frozen=True, slots=True)
class Bar:
    value: float | None
    text: str  # the value as words
    share: float | None  # of the best: 1 is the best, 0 infinitely worse


@dataclass(frozen=True, slots=True)
class Measure:
    label: str
    bars: tuple[Bar, ...]  # one for each type


@dataclass(frozen=True)
class ComparisonData:
    types: tuple[str, ...]  # name, provider and region
    measures: tuple[Measure, ...]  # only those that are known of any type
    provenance: Provenance

    @property
    def heading(self) -> str:
        return "Side by side"

    @property
    def caption(self) -> str:
        return (
            "Each bar is a share of the best of those compared: longer is better, for prices too. "
            f"{self.provenance.words}"
        ).strip()

    def tables(self) -> tuple[Table, ...]:
        return (
            Table(
                self.heading,
                ("type", *(measure.label for measure in self.measures)),
                tuple(
                    (name, *(measure.bars[number].text for measure in self.measures))
                    for number, name in enumerate(self.types)
                ),
            ),
        )

    def size(self) -> tuple[float, float]:
        lines = len(self.measures) * (len(self.types) * _BAR + _GAP)
        return canvas.WIDTH, len(self.types) * _KEY + 0.2 + lines + _AXIS

    def paint(self, area: canvas.Area) -> None:
        _paint(self, area)


def _gb(value: float) -> str:
    return f"{value:,.4g} GB" if value < 10_000 else f"{value:,.0f} GB"


_MEASURES: tuple[tuple[str, str, bool, Callable[[float], str]], ...] = (
    # attribute, label, whether less is better, words
    ("on_demand_micros_hour", "on-demand $/hour", True, money),
    ("spot_micros_hour", "spot $/hour", True, money),
    ("micros_accelerator_hour", "on-demand $/accelerator-hour", True, money),
    ("micros_pflop_hour", "on-demand $/PFLOP-hour", True, money),
    ("accelerator_memory_gb", "accelerator memory", False, _gb),
    ("peak_pflops", "dense peak", False, lambda value: f"{value:,.3g} PFLOP/s"),
    ("network_gbps", "network", False, lambda value: f"{value:,g} Gbit/s"),
)


def data(types: Sequence[ComparedType], provenance: Provenance | None = None) -> ComparisonData:
    if not types:
        raise NotFound("there is nothing to compare", hint="name at least one type of machine")
    if len(types) > MOST_TYPES:
        raise InvalidValue(
            f"{len(types)} types are too many for bars side by side",
            hint=f"choose at most {MOST_TYPES} of them",
        )
    measures = []
    for attribute, label, less, words in _MEASURES:
        values: list[float | None] = [getattr(one, attribute) for one in types]
        if any(value is not None for value in values):
            measures.append(Measure(label, _bars(values, less, words)))
    if not measures:
        raise NotFound(
            "there is nothing to draw: no number is known of these types",
            hint="compare other types of machine",
        )
    names = (" · ".join(filter(None, (t.name, t.provider, t.region))) for t in types)
    return ComparisonData(tuple(names), tuple(measures), provenance or Provenance())


def _bars(
    values: Sequence[float | None], less: bool, words: Callable[[float], str]
) -> tuple[Bar, ...]:
    known = [value for value in values if value is not None]
    best = min(known) if less else max(known)

    def bar(value: float | None) -> Bar:
        if value is None:
            return Bar(None, "", None)
        over, under = (best, value) if less else (value, best)
        # What is free beats everything, and only what is free too is as good.
        return Bar(value, words(value), 1.0 if value == best else over / under if under else 0.0)

    return tuple(map(bar, values))


# -- painting ------------------------------------------------------------------------------------

_BAR, _GAP, _KEY, _AXIS = 0.21, 0.2, 0.22, 0.55
_SIZE = 8.5


def _paint(data: ComparisonData, area: canvas.Area) -> None:
    _key(data, area.sheet())
    top = len(data.types) * _KEY + 0.2
    left = canvas.widest([measure.label for measure in data.measures], _SIZE, bold=True) + 0.2
    group = len(data.types) * _BAR + _GAP
    high = len(data.measures) * group
    room = canvas.widest([b.text for m in data.measures for b in m.bars], 8, bold=True) + 0.15
    width = area.width - left - room
    axes = area.axes(left, top, width, high)
    axes.set_xlim(0, 1)
    axes.set_ylim(high, 0)
    axes.set_yticks([])
    shares = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(shares, [f"{share:.0%}" for share in shares])
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel("share of the best")
    axes.grid(axis="x")
    for number, measure in enumerate(data.measures):
        y = number * group + _GAP / 2
        axes.annotate(
            measure.label, (0, y + len(data.types) * _BAR / 2), xytext=(-8, 0), size=_SIZE,
            textcoords="offset points", ha="right", va="center_baseline", weight="bold",
            annotation_clip=False,
        )  # fmt: skip
        for role, bar in zip(canvas.SERIES, measure.bars, strict=False):
            _bar(axes, y, bar, role)
            y += _BAR


def _bar(axes: Axes, y: float, bar: Bar, role: str) -> None:
    share = bar.share or 0.0
    axes.barh(y + _BAR / 2, share, height=_BAR * 0.82, color=canvas.tone(role), zorder=2)
    best = bar.share == 1
    axes.annotate(
        bar.text if bar.value is not None else "not known", (share, y + _BAR / 2),
        xytext=(4, 0), textcoords="offset points", va="center_baseline", size=8,
        annotation_clip=False, weight="bold" if best else "normal",
        color=canvas.tone("ink" if bar.value is not None else "quiet"),
    )  # fmt: skip


def _key(data: ComparisonData, sheet: Axes) -> None:
    from matplotlib.patches import Rectangle

    for number, (name, role) in enumerate(zip(data.types, canvas.SERIES, strict=False)):
        y = number * _KEY + 0.02
        sheet.add_patch(Rectangle((0, y), 0.3, 0.15, color=canvas.tone(role), linewidth=0))
        sheet.text(0.4, y + 0.075, short(name, 110), size=_SIZE, va="center_baseline")
