"""Time against money: every way to finish that was kept, and those that nothing beats in both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import NotFound
from tradewind.base.units import format_hours as span
from tradewind.pictures import canvas
from tradewind.pictures.chart import Provenance, Table, money, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tradewind.model.plan import Plan, Plans


@dataclass(frozen=True, slots=True)
class Way:
    """One way to finish. `kept`: within deadline, budget and confidence."""

    name: str
    machines: str
    place: str
    market: str
    hours: float
    micros: int
    chance: float
    kept: bool


@dataclass(frozen=True)
class FrontData:
    ways: tuple[Way, ...]  # those of the front among them
    front: tuple[Way, ...]  # the fastest first
    best: Way | None
    deadline_hours: float | None
    budget: int | None
    provenance: Provenance

    @property
    def heading(self) -> str:
        return "Time against money"

    @property
    def caption(self) -> str:
        best = (
            "Nothing keeps every limit. "
            if self.best is None
            else f"Chosen: {self.best.machines} at {self.best.place}, {self.best.market}, "
            f"{_dollars(self.best.micros)} in {span(self.best.hours)}. "
        )
        return (
            f"{best}Every dot is a way to finish; the line joins those that nothing beats in both, "
            f"and hollow dots break a limit. {self.provenance.words}"
        ).strip()

    def tables(self) -> tuple[Table, ...]:
        columns = ("machines", "accelerators", "place", "market", "time", "cost", "chance")
        rows = tuple(
            (w.machines, w.name, w.place, w.market, span(w.hours), _dollars(w.micros),
             f"{w.chance:.0%}")
            for w in self.front
        )  # fmt: skip
        return (Table("None is both faster and cheaper", columns, rows, names=4),)

    def size(self) -> tuple[float, float]:
        return canvas.WIDTH, _TOP + _HIGH + _AXIS

    def paint(self, area: canvas.Area) -> None:
        _paint(self, area)


def data(plans: Plans) -> FrontData:
    if not plans.front:
        raise NotFound(
            "there is nothing to draw: no way to finish this work was found",
            hint="allow other accelerators, providers, regions or markets",
        )
    seen: dict[tuple[str, str, str, float, int], Way] = {}

    def way(plan: Plan) -> Way:
        found = _way(plan, plans)
        key = (found.machines, found.place, found.market, found.hours, found.micros)
        return seen.setdefault(key, found)

    front = tuple(way(plan) for plan in plans.front)
    best = way(plans.best) if plans.best else None
    for plan in plans.others:
        way(plan)
    dates = [date.fromisoformat(d) for d in (plans.prices_from, plans.prices_until) if d]
    return FrontData(
        ways=tuple(seen.values()),
        front=front,
        best=best,
        deadline_hours=plans.deadline_hours,
        budget=plans.workload.limits.budget,
        provenance=Provenance(min(dates), max(dates)) if dates else Provenance(),
    )


def draw(plans: Plans, path: Path) -> None:
    """The front alone; the file's ending chooses the form, as for every picture."""
    from tradewind.pictures import drawing

    note = f"Tradewind, {plans.made_at:%Y-%m-%d}"
    drawing.draw([data(plans)], path, title=short(plans.workload.name, 60), note=note)


def _way(plan: Plan, plans: Plans) -> Way:
    limits = plans.workload.limits
    kept = limits.budget is None or (
        plan.cost <= limits.budget and plan.within_budget >= limits.sure
    )
    if plans.deadline_hours is not None:
        kept &= plan.hours <= plans.deadline_hours and plan.chance >= limits.sure
    place = "home" if plan.own else f"{plan.provider} {plan.zone or plan.region}"
    return Way(
        name=f"{plan.accelerators:,} × {plan.accelerator}",
        machines=f"{plan.nodes} × {plan.instance_type}" if plan.nodes > 1 else plan.instance_type,
        place=place,
        market=_market(plan),
        hours=plan.hours,
        micros=plan.cost,
        chance=plan.chance,
        kept=kept,
    )


def _market(plan: Plan) -> str:
    if plan.own or plan.commit:
        return "your own" if plan.own else f"committed for {plan.commit}"
    return " with ".join(plan.markets).replace("_", "-")


def _dollars(micros: float) -> str:
    """Cents only where they say something."""
    return f"${micros / 1e6:,.0f}" if micros >= 100_000_000 else money(micros)


# -- painting ------------------------------------------------------------------------------------

_TOP, _HIGH, _AXIS = 0.28, 5.2, 0.55
_LEFT, _RIGHT = 0.8, 0.1
_SIZE, _LINE = 8.0, 0.17  # points and inches of a name
_TIMES = (
    1 / 60, 2 / 60, 5 / 60, 10 / 60, 0.5, 1, 2, 4, 8, 12, 24, 48, 96, 168, 336, 720, 2160, 8760,
    87600,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Scale:
    """From values to inches, by ratios where the values are far apart."""

    low: float
    high: float
    inches: float
    log: bool

    @classmethod
    def of(cls, values: Sequence[float], inches: float, room: float = 0.2) -> _Scale:
        """With so many inches of room before the first value, and 0.2 after the last."""
        known = [v for v in values if v > 0] or [1.0]
        low, high = min(known), max(known)
        log = high / low > 6
        used = inches - room - 0.2
        if log:
            ratio = log10(high / low) / used
            return cls(low / 10 ** (ratio * room), high * 10 ** (ratio * 0.2), inches, log)
        per = (high - low or high) / used
        return cls(max(0.0, low - per * room), high + per * 0.2, inches, log)

    def place(self, value: float) -> float:
        if self.log:
            share = log10(max(value, self.low) / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return share * self.inches


def _paint(data: FrontData, area: canvas.Area) -> None:
    width = area.width - _LEFT - _RIGHT
    deadline = [data.deadline_hours] if data.deadline_hours else []
    budget = [data.budget / 1e6] if data.budget else []
    # Names stand left of their dots, so the fastest needs room for its own.
    room = canvas.text_width(_name(data.front[0]), _SIZE, bold=True) + 0.3
    x = _Scale.of([w.hours for w in data.ways] + deadline, width, room)
    y = _Scale.of([w.micros / 1e6 for w in data.ways] + budget, _HIGH, 0.4)
    axes = area.axes(_LEFT, _TOP, width, _HIGH)
    axes.set_xlim(0, width)
    axes.set_ylim(0, _HIGH)
    _ticks(axes, x, y)
    _limits(data, axes, x, y, width)
    for kept in (False, True):
        some = [w for w in data.ways if w.kept is kept]
        axes.plot(
            [x.place(w.hours) for w in some], [y.place(w.micros / 1e6) for w in some],
            marker="o", linestyle="none", markersize=3.6, zorder=2, markeredgewidth=0.7,
            markerfacecolor=canvas.tone("grey" if kept else "ground"),
            markeredgecolor=canvas.tone("grey"), alpha=0.9 if kept else 0.55,
        )  # fmt: skip
    axes.step(
        [x.place(w.hours) for w in data.front], [y.place(w.micros / 1e6) for w in data.front],
        where="post", color=canvas.tone("ink"), linewidth=1.3, zorder=3,
    )  # fmt: skip
    for way in data.front:
        axes.plot(
            [x.place(way.hours)], [y.place(way.micros / 1e6)], marker="o", markersize=5.5, zorder=4,
            markerfacecolor=canvas.tone("ink" if way.kept else "ground"),
            markeredgecolor=canvas.tone("ink"), markeredgewidth=1.2,
        )  # fmt: skip
    if data.best:
        axes.plot(
            [x.place(data.best.hours)], [y.place(data.best.micros / 1e6)], marker="o",
            markersize=10, zorder=5, color=canvas.tone("blue"),
            markeredgecolor=canvas.tone("ground"), markeredgewidth=1.5,
        )  # fmt: skip
    _names(data, axes, x, y)


def _name(way: Way) -> str:
    return f"{short(way.name, 26)} · {short(way.market, 26)} · {_dollars(way.micros)}"


def _names(data: FrontData, axes: Axes, x: _Scale, y: _Scale) -> None:
    """Below and left of its dot the front leaves room; whoever finds none there stays nameless,
    save the last of the front, which has room at its right. The chosen is first, then the ends,
    then the rest from the fastest."""
    late = x.place(data.deadline_hours) if data.deadline_hours else x.inches * 2
    dear = y.place(data.budget / 1e6) if data.budget else _HIGH * 2
    ends = [data.front[0], data.front[-1]]
    order = ([data.best] if data.best else []) + ends + list(data.front)
    taken: list[tuple[float, float, float]] = []  # left, right, middle
    named: list[Way] = []
    for way in order:
        if way in named:
            continue
        chosen = way is data.best
        long = canvas.text_width(_name(way), _SIZE, bold=chosen)
        right, middle = x.place(way.hours) - 0.08, y.place(way.micros / 1e6) - 0.15
        if right - long < late < right and way is data.front[-1]:
            right, middle = right + 0.18 + long, middle + 0.15
        left = right - long
        crossed = left < late < right or abs(middle - dear) < _LINE / 2
        beside = any(left < r and right > a and abs(middle - m) < _LINE for a, r, m in taken)
        if not chosen and (crossed or beside or right > x.inches):
            continue
        taken.append((left, right, middle))
        named.append(way)
        axes.text(
            right, middle, _name(way), size=_SIZE, ha="right", va="center_baseline", zorder=6,
            weight="bold" if chosen else "normal",
            color=canvas.tone("blue" if chosen else "ink" if way.kept else "quiet"),
        )  # fmt: skip


def _limits(data: FrontData, axes: Axes, x: _Scale, y: _Scale, width: float) -> None:
    how: dict[str, Any] = {
        "color": canvas.tone("quiet"),
        "linewidth": 0.9,
        "linestyle": (0, (4, 3)),
        "zorder": 1.5,
    }
    shade: dict[str, Any] = {"color": canvas.tone("stripe"), "linewidth": 0, "zorder": 0}
    if data.deadline_hours:
        at = x.place(data.deadline_hours)
        axes.axvspan(at, width, **shade)
        axes.plot([at, at], [0, _HIGH], **how)
        text = f"deadline {span(data.deadline_hours)}"
        half = canvas.text_width(text, _SIZE) / 2
        axes.text(
            min(max(at, half), width - half), _HIGH + 0.06, text, size=_SIZE, ha="center",
            va="bottom", color=canvas.tone("quiet"),
        )  # fmt: skip
    if data.budget:
        at = y.place(data.budget / 1e6)
        axes.axhspan(at, _HIGH, **shade)
        axes.plot([0, width], [at, at], **how)
        axes.text(
            width - 0.05, at + 0.05, f"budget {_dollars(data.budget)}", size=_SIZE, ha="right",
            va="bottom", color=canvas.tone("quiet"),
        )  # fmt: skip


def _tick(dollars: float) -> str:
    return f"${dollars:,.10g}" if dollars >= 10 else money(dollars * 1e6)


def _ticks(axes: Axes, x: _Scale, y: _Scale) -> None:
    inside = [t for t in _TIMES if x.low <= t <= x.high]
    if not x.log or len(inside) < 3:
        rough = (x.high - x.low) / 8
        step = next((t for t in _TIMES if t >= rough), rough)
        first = int(x.low / step) + (x.low > 0)
        inside = [n * step for n in range(first, int(x.high / step) + 1)]
    axes.set_xticks([x.place(t) for t in inside], [span(t) for t in inside])
    axes.set_xlabel("time until done")
    dollars = canvas.dollar_ticks(y.low, y.high, log=y.log)
    axes.set_yticks([y.place(t) for t in dollars], [_tick(t) for t in dollars])
    axes.set_ylabel("cost")
    axes.grid(axis="y")
