"""One case of spot with a deadline: capacity, and for each policy what it held, how far the work
was, and what it spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from tradewind.base.units import format_hours
from tradewind.pictures import canvas
from tradewind.pictures.chart import Provenance, Table, money

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _RIGHT = 1.5, 0.9
_STRIP, _ROW, _GAP, _AXIS, _LANE = 0.17, 1.25, 0.32, 0.55, 0.06
_STEPS_H = (0.25, 0.5, 1, 2, 3, 6, 12, 24, 48, 96, 168, 336)
NOTHING, SPOT, ON_DEMAND = "line", "green", "orange"


@dataclass(frozen=True)
class Course:
    """What one policy did, tick by tick."""

    name: str
    held: tuple[int, ...]
    """The zone; −1: nothing; the number of zones: on-demand."""
    done: tuple[float, ...]
    """Share of the work."""
    spent: tuple[float, ...]
    """Micro-dollars."""
    late: bool
    restarts: int
    finish_h: float | None


@dataclass(frozen=True)
class SpotCaseData:
    zones: tuple[str, ...]
    up: tuple[tuple[bool, ...], ...]
    tick_h: float
    work_h: float
    deadline_h: float
    optimum: float
    """Micro-dollars that perfect foresight would have paid."""
    courses: tuple[Course, ...]

    @property
    def heading(self) -> str:
        hours = f"{self.work_h:.3g} h of work by {self.deadline_h:.3g} h"
        return f"{hours}; perfect foresight pays {money(self.optimum)}"

    @property
    def caption(self) -> str:
        return (
            "Above: when each zone had capacity. Below, for each policy: the share of the work "
            "done (blue) against the straight line to the deadline (dotted); money spent (pink, "
            "right) against what perfect foresight pays (dotted), and by how much it is more; and "
            f"what was held (green spot, orange on-demand, grey nothing{self._lanes})."
        )

    @property
    def _lanes(self) -> str:
        return "; lanes are the zones as above, then on-demand" if len(self.zones) > 1 else ""

    @property
    def provenance(self) -> Provenance:
        return Provenance()

    def tables(self) -> tuple[Table, ...]:
        columns = ("policy", "finished after", "late", "restarts", "spot", "on-demand", "cost")
        rows = []
        for c in self.courses:
            safe = sum(held == len(self.zones) for held in c.held)
            spot = sum(0 <= held < len(self.zones) for held in c.held)
            rows.append(
                (
                    c.name,
                    "never" if c.finish_h is None else format_hours(c.finish_h),
                    "yes" if c.late else "no",
                    str(c.restarts),
                    format_hours(spot * self.tick_h),
                    format_hours(safe * self.tick_h),
                    money(c.spent[-1]),
                )
            )
        return (Table("Policies", columns, tuple(rows)),)

    def size(self) -> tuple[float, float]:
        strips = len(self.zones) * (_STRIP + 0.06) + 0.25
        return canvas.WIDTH, strips + len(self.courses) * (_ROW + self._gap) + _AXIS

    @property
    def _held(self) -> float:
        """Height of what was held: where there are several zones, a lane for each, and one more
        for on-demand."""
        return 0.1 if len(self.zones) == 1 else _LANE * (len(self.zones) + 1)

    @property
    def _gap(self) -> float:
        return self._held + _GAP

    def paint(self, area: canvas.Area) -> None:
        width = area.width - _LEFT - _RIGHT
        end_h = len(self.up[0]) * self.tick_h
        top = 0.0
        for name, up in zip(self.zones, self.up, strict=True):
            axes = area.axes(_LEFT, top, width, _STRIP)
            _strip(axes, [SPOT if one else NOTHING for one in up], self.tick_h, end_h)
            axes.text(-0.01, 0.5, name, transform=axes.transAxes, ha="right", va="center")
            top += _STRIP + 0.06
        top += 0.25
        most = max(max(c.spent[-1] for c in self.courses), self.optimum) * 1.08
        for course in self.courses:
            self._course(area.axes(_LEFT, top, width, _ROW), course, end_h, most)
            strip = area.axes(_LEFT, top + _ROW + 0.04, width, self._held)
            if len(self.zones) == 1:
                _strip(strip, [_colour(held, 1) for held in course.held], self.tick_h, end_h)
            else:
                _held_lanes(strip, course.held, len(self.zones), self.tick_h, end_h)
            top += _ROW + self._gap
        self._hours(area.axes(_LEFT, top - _GAP + 0.1, width, 0.2), end_h)

    def _course(self, axes: Axes, course: Course, end_h: float, most: float) -> None:
        hours = [0.0] + [(n + 1) * self.tick_h for n in range(len(course.done))]
        blue, pink = canvas.tone("blue"), canvas.tone("pink")
        axes.plot([0, self.deadline_h], [0, 1], color=canvas.tone("quiet"), lw=1, ls=":")
        axes.plot(hours, [0.0, *course.done], color=blue, lw=1.8)
        axes.axvline(self.deadline_h, color=canvas.tone("ink"), lw=1)
        axes.set_xlim(0, end_h)
        axes.set_ylim(0, 1.05)
        axes.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
        axes.tick_params(labelbottom=False, length=0)
        right = axes.twinx()
        right.plot(hours, [0.0, *course.spent], color=pink, lw=1.3)
        right.axhline(self.optimum, color=pink, lw=0.7, ls=":")
        right.set_ylim(0, most)
        right.set_yticks([0, self.optimum, course.spent[-1]])
        near = abs(course.spent[-1] - self.optimum) < 0.12 * most
        right.set_yticklabels(["", "" if near else money(self.optimum), money(course.spent[-1])])
        right.tick_params(length=0, labelcolor=pink)
        for side in ("top", "right"):
            right.spines[side].set_visible(False)
        over = course.spent[-1] / self.optimum - 1
        words = [
            "late" if course.late else f"done {format_hours(course.finish_h or 0)}",
            f"{over:+.1%}" if not course.late else money(course.spent[-1]),
            f"{course.restarts} restarts",
        ]
        axes.text(
            -0.05, 1.0, course.name, transform=axes.transAxes, ha="right", va="top", weight="bold"
        )
        for n, word in enumerate(words):
            tone = canvas.tone("orange" if course.late and not n else "quiet")
            axes.text(
                -0.05,
                0.82 - 0.15 * n,
                word,
                transform=axes.transAxes,
                ha="right",
                va="top",
                color=tone,
                size=8,
            )

    def _hours(self, axes: Axes, end_h: float) -> None:
        axes.set_xlim(0, end_h)
        axes.set_ylim(0, 1)
        axes.set_axis_off()
        quiet = canvas.tone("quiet")
        step = next((h for h in _STEPS_H if end_h / h <= 14), max(end_h // 14, 1))
        for n in range(int(end_h / step) + 1):
            axes.text(n * step, 1, f"{n * step:g}", ha="center", va="top", size=8, color=quiet)
        words = "hours; the upright line is the deadline"
        axes.text(end_h / 2, -0.3, words, ha="center", va="top", size=8, color=quiet)


def _colour(held: int, zones: int) -> str:
    return NOTHING if held < 0 else ON_DEMAND if held == zones else SPOT


def _strip(axes: Axes, colours: Sequence[str], tick_h: float, end_h: float) -> None:
    axes.set_xlim(0, end_h)
    axes.set_ylim(0, 1)
    axes.set_axis_off()
    at = 0
    for colour, ticks in groupby(colours):
        number = len(list(ticks))
        axes.broken_barh([(at * tick_h, number * tick_h)], (0, 1), color=canvas.tone(colour), lw=0)
        at += number


def _held_lanes(axes: Axes, held: Sequence[int], zones: int, tick_h: float, end_h: float) -> None:
    axes.set_xlim(0, end_h)
    axes.set_ylim(zones + 1, 0)
    axes.set_axis_off()
    ended_h = len(held) * tick_h
    axes.broken_barh([(0, ended_h)], (0, zones + 1), color=canvas.tone(NOTHING), lw=0)
    at = 0
    for lane, ticks in groupby(held):
        number = len(list(ticks))
        if lane >= 0:
            tone = canvas.tone(_colour(lane, zones))
            axes.broken_barh([(at * tick_h, number * tick_h)], (lane, 1), color=tone, lw=0)
        at += number
