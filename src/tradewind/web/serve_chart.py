"""The chart of a pool of machines by hour: on demand below, spot above, and what is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tradewind.web import serve_words as words
from tradewind.web.svg import Plot, round_marks

if TYPE_CHECKING:
    from tradewind.model.serveplan import ServingPool

_HEIGHT = 180
_GAP = 0.08  # of an hour, between bars
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY, _WEEK = 24, 168


def by_hour(pool: ServingPool) -> str:
    many = len(pool.hours)
    most = max(pool.committed + max(hour.on_demand + hour.spot for hour in pool.hours), 1)
    plot = Plot(
        (0.0, float(many)), (0.0, most * 1.1), height=_HEIGHT,
        label=f"up to {most} machines over {many} hours",
    )  # fmt: skip
    whole = [mark for mark in round_marks(0, most) if mark == int(mark) and mark]
    plot.up([(mark, f"{mark:,.0f}") for mark in whole])
    plot.across(_marks(many))
    stairs: list[tuple[float, float]] = []
    for at, hour in enumerate(pool.hours):
        title = f"{_named(at, many)}: {words.held(hour)}, {words.digits(hour.rate)} requests/s"
        below = 0
        for count, kind in (
            (pool.committed, "committed"),
            (hour.on_demand, "on-demand"),
            (hour.spot, "spot"),
        ):
            if count:
                top = plot.y(below + count)
                plot.bar(at + _GAP, at + 1 - _GAP, top, plot.y(below) - top, kind, title)
            below += count
        stairs += [(at, hour.needed), (at + 1, hour.needed)]
    plot.line(stairs, "needed")
    keys = [("needed-key", "needed for the targets")]
    if any(hour.spot for hour in pool.hours):
        keys.insert(0, ("spot", "on spot"))
    if any(hour.on_demand for hour in pool.hours):
        keys.insert(0, ("on-demand", "on demand"))
    if pool.committed:
        keys.insert(0, ("committed", "committed to"))
    listed = "".join(f'<li><i class="{kind}"></i>{text}</li>' for kind, text in keys)
    return plot.made() + f'\n<ul class="keys">{listed}</ul>'


def _named(at: int, many: int) -> str:
    if many == _WEEK:
        return f"{_DAYS[at // _DAY]} {at % _DAY:02d}:00"
    return f"{at:02d}:00" if many == _DAY else f"hour {at + 1}"


def _marks(many: int) -> list[tuple[float, str]]:
    if many == _WEEK:
        return [(float(_DAY * day), name) for day, name in enumerate(_DAYS)]
    if many == _DAY:
        return [(float(at), f"{at:02d}:00") for at in range(0, _DAY + 1, 4)]
    return [(mark, f"{mark:,.0f} h") for mark in round_marks(0, many, 6)]
