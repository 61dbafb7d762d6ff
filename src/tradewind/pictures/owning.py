"""Buy or rent: what each way costs, by what it is for, and what decides between them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.economics.owning import PARTS
from tradewind.economics.words import dollars, sentence
from tradewind.pictures import canvas
from tradewind.pictures.chart import Provenance, Table, short

if TYPE_CHECKING:
    from datetime import datetime

    from matplotlib.axes import Axes

    from tradewind.economics.own import Answer

_ROW, _TOP, _GAP, _AXIS, _LEFT, _SWINGS = 0.42, 0.3, 0.75, 0.5, 3.6, 8
_TONES = dict(zip(PARTS, ("blue", "grey", "pink", "gold", "orange", "green", "sky"), strict=True))


@dataclass(frozen=True)
class OwningData:
    answer: Answer

    @property
    def heading(self) -> str:
        return sentence(self.answer)

    @property
    def caption(self) -> str:
        low, _, high = self.answer.spread
        return (
            f"Above: dollars of today over {self.answer.question.terms.years} years. Below: owning "
            "less renting when one input is as low and as high as it may be; orange ones decide. "
            f"Owning is cheaper in {self.answer.chance:.0%} of draws; the difference is "
            f"{dollars(low)} to {dollars(high)} in eight of ten."
        )

    @property
    def provenance(self) -> Provenance:
        return Provenance()

    def tables(self) -> tuple[Table, ...]:
        answer = self.answer
        ways = tuple((o.words, dollars(o.total), f"${o.usd_hour:.2f}") for o in answer.options)
        swings = tuple((s.name, dollars(s.at_low), dollars(s.at_high)) for s in answer.swings)
        return (
            Table("Ways", ("way", "total", "accelerator-hour"), ways),
            Table("Owning less renting", ("input", "when low", "when high"), swings),
        )

    def size(self) -> tuple[float, float]:
        swings = min(len(self.answer.swings), _SWINGS)
        return canvas.WIDTH, _TOP + _ROW * len(self.answer.options) + _GAP + _ROW * swings + _AXIS

    def paint(self, area: canvas.Area) -> None:
        answer, width = self.answer, area.width - _LEFT - 1.2
        high = _ROW * len(answer.options)
        _ways(area.axes(_LEFT, _TOP, width, high), answer)
        swings = answer.swings[:_SWINGS]
        if swings:
            below = area.axes(_LEFT, _TOP + high + _GAP, width, _ROW * len(swings))
            _tornado(below, answer)


def draw(answer: Answer, path: Path, made_at: datetime) -> None:
    from tradewind.pictures import drawing

    title = f"Buy or rent: {answer.question.accelerator}"
    drawing.draw([OwningData(answer)], path, title=title, note=f"Tradewind, {made_at:%Y-%m-%d}")


def _ways(axes: Axes, answer: Answer) -> None:
    named: set[str] = set()
    most = max(sum(v for v in o.parts.values() if v > 0) for o in answer.options)
    for row, option in enumerate(answer.options):
        left = 0.0
        for part in PARTS:
            value = option.parts.get(part, 0.0)
            label = part if part not in named and value else None
            named |= {part} if value else set()
            start = value if value < 0 else left
            axes.barh(row, abs(value), left=start if value < 0 else left, height=0.6,
                      color=canvas.tone(_TONES[part]), label=label)  # fmt: skip
            left += max(value, 0.0)
        axes.text(left + most * 0.01, row, dollars(option.total), va="center", fontweight="bold")
    axes.set_yticks(range(len(answer.options)))
    axes.set_yticklabels([short(o.words, 48) for o in answer.options])
    axes.tick_params(axis="y", labelcolor=canvas.tone("ink"), length=0)
    axes.invert_yaxis()
    axes.axvline(0, color=canvas.tone("quiet"), lw=0.8)
    axes.set_xlim(right=most * 1.12)
    _money_axis(axes)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=len(PARTS), frameon=False,
                fontsize=8, handlelength=1)  # fmt: skip


def _tornado(axes: Axes, answer: Answer) -> None:
    swings = answer.swings[:_SWINGS]
    usual = answer.owning.total - answer.renting.total
    for row, swing in enumerate(swings):
        low, high = sorted((swing.at_low, swing.at_high))
        tone = canvas.tone("orange" if swing.decides else "grey")
        axes.barh(row, high - low, left=low, height=0.6, color=tone)
    axes.axvline(usual, color=canvas.tone("ink"), lw=1)
    axes.axvline(0, color=canvas.tone("blue"), lw=1.2)
    axes.set_yticks(range(len(swings)))
    axes.set_yticklabels([swing.name for swing in swings])
    axes.tick_params(axis="y", labelcolor=canvas.tone("ink"), length=0)
    axes.invert_yaxis()
    _money_axis(axes)
    axes.text(0, -0.65, "left of it, owning is cheaper", color=canvas.tone("blue"), ha="center",
              va="bottom", fontsize=8)  # fmt: skip


def _money_axis(axes: Axes) -> None:
    axes.xaxis.set_major_formatter(lambda value, _: dollars(value))
    axes.locator_params(axis="x", nbins=7)
    axes.grid(axis="x")
