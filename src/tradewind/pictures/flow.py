"""The questions that lead to where a workload belongs, with the path that was taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.pictures import canvas
from tradewind.pictures.chart import Provenance, Table

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.economics.placing import Placed

_ROW, _BOX, _WIDE, _TO = 1.0, 0.62, 6.2, 3.2


@dataclass(frozen=True)
class FlowData:
    placed: Placed

    @property
    def heading(self) -> str:
        best = self.placed.best
        if best is None:
            return "Nothing keeps every constraint"
        return f"{best.way.kind}: ${best.month:,.0f} a month"

    @property
    def caption(self) -> str:
        return " ".join(f"{text}." for text in self.placed.crossovers[:4])

    @property
    def provenance(self) -> Provenance:
        return Provenance()

    def tables(self) -> tuple[Table, ...]:
        rows = tuple((s.question, s.answer, s.to if s.yes else "") for s in self.placed.path)
        return (Table("The path", ("question", "answer", "leads to"), rows),)

    def size(self) -> tuple[float, float]:
        return canvas.WIDTH, 0.2 + _ROW * len(self.placed.path)

    def paint(self, area: canvas.Area) -> None:
        from matplotlib.patches import FancyBboxPatch

        sheet = area.sheet()
        last = len(self.placed.path) - 1
        blue, line, ink = canvas.tone("blue"), canvas.tone("grey"), canvas.tone("ink")
        for number, step in enumerate(self.placed.path):
            y = 0.1 + number * _ROW
            ends = step.yes and number == last
            sheet.add_patch(
                FancyBboxPatch(
                    (0.1, y), _WIDE, _BOX, boxstyle="round,pad=0.04", lw=1.6, ec=blue,
                    fc=canvas.tone("stripe"),
                )
            )  # fmt: skip
            sheet.text(0.3, y + 0.24, step.question, fontweight="bold", va="center", color=ink)
            quiet = canvas.tone("quiet")
            sheet.text(0.3, y + 0.48, step.answer, va="center", color=quiet, fontsize=8)
            tone, wide = (blue, 2.0) if step.yes else (line, 0.9)
            sheet.annotate(
                "", (8.0, y + 0.31), (_WIDE + 0.16, y + 0.31),
                arrowprops={"arrowstyle": "->", "color": tone, "lw": wide},
            )  # fmt: skip
            sheet.text(7.0, y + 0.2, "yes", color=tone, ha="center", fontsize=8)
            sheet.add_patch(
                FancyBboxPatch(
                    (8.1, y + 0.06), _TO, _BOX - 0.12, boxstyle="round,pad=0.04", lw=wide, ec=tone,
                    fc=blue if ends else "none",
                )
            )  # fmt: skip
            sheet.text(8.1 + _TO / 2, y + 0.31, step.to, ha="center", va="center", fontsize=8.5,
                       color=canvas.tone("ground") if ends else ink,
                       fontweight="bold" if ends else "normal")  # fmt: skip
            if number < last:
                sheet.annotate(
                    "", (1.0, y + _ROW - 0.05), (1.0, y + _BOX + 0.06),
                    arrowprops={"arrowstyle": "->", "color": blue, "lw": 2.0},
                )  # fmt: skip


def draw(placed: Placed, path: Path, made_at: datetime) -> None:
    from tradewind.pictures import drawing

    note = f"Tradewind, {made_at:%Y-%m-%d}"
    drawing.draw([FlowData(placed)], path, title="Where does it belong?", note=note)
