"""One training as `tradewind top` shows it: a line for each rank, and what holds it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from tradewind.base.units import format_bytes
from tradewind.cli import render
from tradewind.telemetry.diagnose import Diagnosis, diagnose

if TYPE_CHECKING:
    from rich.console import Group

    from tradewind.api.follow import Sight
    from tradewind.model.figures import Figures

_MOST_RANKS = 32
_COLUMNS = [
    render.Column("rank", right=True, keep=9),
    render.Column("step", right=True, keep=9),
    render.Column("ms/step", right=True, keep=9),
    render.Column("tokens/s", right=True, keep=7),
    render.Column("samples/s", right=True, keep=3),
    render.Column("loss", right=True, keep=8),
    render.Column("norm", right=True, keep=3),
    render.Column("data", right=True, keep=8),
    render.Column("comm", right=True, keep=8),
    render.Column("save", right=True, keep=6),
    render.Column("cpu", right=True, keep=4),
    render.Column("GPU", right=True, keep=8),
    render.Column("memory", right=True, keep=5),
    render.Column("power", right=True, keep=4),
    render.Column("MHz", right=True, keep=3),
    render.Column("slowed", keep=4),
    render.Column("host", keep=1),
]


class View:
    def __init__(
        self, name: str, *, figures: list[Figures], status: str = "", over: bool = False
    ) -> None:
        self.name, self.figures, self.status = name, figures, status
        self.diagnosis: list[Diagnosis] = diagnose(figures)
        self.over = over or (bool(figures) and all(each.over for each in figures))

    @classmethod
    def of(cls, sight: Sight) -> View:
        from tradewind.base import clock
        from tradewind.cli.runs import runview

        now = clock.now().timestamp()
        status = runview.status(sight.state, sight.beats, now)
        return cls(sight.run_id, figures=sight.figures, status=status, over=bool(sight.outcome))

    def told(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "status": self.status,
            "over": self.over,
            "figures": [_whole(each) for each in self.figures],
            "diagnosis": [to_builtins(each) for each in self.diagnosis],
        }

    def drawn(self, width: int) -> Group:
        from textwrap import wrap

        from rich.console import Group
        from rich.text import Text

        head = self.name + (f"  {self.status}" if self.status else "")
        parts: list[Any] = [Text(head, style="bold", no_wrap=True, overflow="ellipsis")]
        if self.figures:
            rows = [_texts(each) for each in self.figures[:_MOST_RANKS]]
            parts.append(render.drawn(_COLUMNS, rows, width))
            if len(self.figures) > _MOST_RANKS:
                parts.append(Text(f"and {len(self.figures) - _MOST_RANKS} more ranks"))
        elif not self.over:
            parts.append(Text("its job has told nothing of itself yet"))
        for found in self.diagnosis:
            lines = wrap(found.words, max(width, 40), subsequent_indent="  ")
            parts.append(Text("\n".join(lines)))
        return Group(*parts)


def _whole(figures: Figures) -> dict[str, Any]:
    """With what is not known as null: whoever reads it wants the same names each time."""
    from msgspec.structs import asdict

    found = asdict(figures)
    if figures.gpu is not None:
        found["gpu"] = asdict(figures.gpu)
    return found


def _texts(each: Figures) -> list[str]:
    gpu = each.gpu
    memory = each.memory if gpu is None else gpu.memory_used
    return [
        str(each.rank),
        f"{each.step:,}",
        "" if each.step_s is None else _short(1000 * each.step_s),
        "" if each.tokens_rate is None else _short(each.tokens_rate),
        "" if each.samples_rate is None else _short(each.samples_rate),
        "" if each.loss is None else f"{each.loss:.4g}",
        "" if each.grad_norm is None else f"{each.grad_norm:.3g}",
        _percent(each.data),
        _percent(each.comm),
        _percent(each.saving or None),
        "" if each.cpu is None else f"{each.cpu:.1f}",
        "" if gpu is None else _percent(gpu.busy),
        format_bytes(memory, digits=1) if memory else "",
        "" if gpu is None or gpu.power_w is None else f"{gpu.power_w:.0f} W",
        "" if gpu is None or gpu.clock_mhz is None else str(gpu.clock_mhz),
        "" if gpu is None else ", ".join(gpu.slowed),
        each.host,
    ]


def _short(value: float) -> str:
    """Three digits, and no more than are needed."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"
