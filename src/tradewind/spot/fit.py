"""Learn the regimes of spot capacity from measured series: expectation and maximisation.

The regimes are a grid of levels; the hazards by age, common to all regimes, and how often each
regime is met are fitted, on a grid of ten minutes. How wide the levels are, and how fast regimes
change, was chosen once by leaving whole measurement campaigns out; see docs/design/006-spot.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue
from tradewind.policy.learned import Learned
from tradewind.policy.regimes import Regimes
from tradewind.spot.cases import overlapping
from tradewind.spot.series import Series

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

STEP_S = 600
AGES_S = tuple(60.0 * minutes for minutes in (0, 10, 20, 40, 80, 160, 320, 640, 1280))
LEVELS = (-1.5, -0.5, 0.5, 1.5, 2.5)
DRIFT = JUMP = 0.003
ROUNDS = 10
LEAST_H = 24.0
TOGETHER = (1, 2, 3, 5)
EVEN = 0.2  # of the start's weight is spread over all regimes


def fit(series: Sequence[Series], made_at: str, nodes: int = 1) -> Learned:
    """InvalidValue: there is too little to learn from."""
    series = [s for s in series if s.ticks * s.gap_s >= 2 * STEP_S]  # else nothing can change
    hours = {s.trace_id: round(s.ticks * s.gap_s / 3600, 1) for s in series}
    if sum(hours.values()) < LEAST_H:
        raise InvalidValue(f"{sum(hours.values()):g} hours are too little to learn from")
    ups = [_sampled(s, nodes) for s in series]
    shapes, start = _shapes(ups)
    model = _model(made_at, hours, shapes, {1: start})
    starts = {1: start}
    for number in TOGETHER[1:]:
        joined = _joined(series, nodes, number)
        if joined:
            starts[number] = _met(Regimes(model), _Ticks(joined), start)[0]
    return _model(made_at, hours, shapes, starts)


def _model(
    made_at: str, hours: dict[str, float], shapes: Floats, starts: dict[int, Floats]
) -> Learned:
    return Learned(
        format=1,
        made_at=made_at,
        sources=hours,
        ages_s=AGES_S,
        up=tuple(round(float(rate), 5) for rate in shapes[1]),
        down=tuple(round(float(rate), 5) for rate in shapes[0]),
        levels=LEVELS,
        drift=DRIFT,
        jump=JUMP,
        start={n: tuple(round(float(p), 5) for p in start) for n, start in starts.items()},
    )


def _sampled(series: Series, nodes: int, from_s: int = 0) -> Bools:
    import numpy as np

    number = (series.ticks * series.gap_s - from_s) // STEP_S
    at = (np.arange(number) * STEP_S + from_s) // series.gap_s
    found: Bools = series.up(nodes)[at]
    return found


def _joined(series: Sequence[Series], nodes: int, number: int) -> list[Bools]:
    """Whether any of so many zones was up, for zones that were measured together."""
    import numpy as np

    found = []
    for together in overlapping(series):
        for chosen in list(combinations(together, number))[:20]:
            start_s = max(s.start_s for s in chosen)
            ups = [_sampled(s, nodes, start_s - s.start_s) for s in chosen]
            ticks = min(len(up) for up in ups)
            if ticks > 1:
                found.append(np.any([up[:ticks] for up in ups], axis=0))
    return found


class _Ticks:
    """All series side by side: state, age and change of each tick; short ones are filled up."""

    def __init__(self, ups: Sequence[Bools]) -> None:
        import numpy as np

        most = max(len(up) for up in ups) - 1
        self.state = np.zeros((most, len(ups)), int)
        self.age = np.zeros((most, len(ups)), int)
        self.change = np.zeros((most, len(ups)), bool)
        self.real = np.zeros((most, len(ups)), bool)
        for n, up in enumerate(ups):
            ticks = len(up) - 1
            change = up[1:] != up[:-1]
            at = np.arange(ticks)
            began = np.maximum.accumulate(np.where(np.append(True, change[:-1]), at, 0))
            self.state[:ticks, n] = up[:-1]
            self.age[:ticks, n] = np.searchsorted(AGES_S, (at - began) * STEP_S, side="right") - 1
            self.change[:ticks, n] = change
            self.real[:ticks, n] = True


def _shapes(ups: Sequence[Bools]) -> tuple[Floats, Floats]:
    import numpy as np

    ticks = _Ticks([up for up in ups if len(up) > 1])
    cells = (ticks.state[ticks.real], ticks.age[ticks.real])
    changes, hours = np.zeros((2, len(AGES_S))), np.zeros((2, len(AGES_S)))
    np.add.at(changes, cells, ticks.change[ticks.real])
    np.add.at(hours, cells, STEP_S / 3600)
    shapes = (changes + 0.5) / (hours + 1)
    start = np.full(len(LEVELS) ** 2, 1 / len(LEVELS) ** 2)
    for _ in range(ROUNDS):
        now = Regimes(_model("", {}, shapes, {1: start}))
        start, met = _met(now, ticks, start)
        weighed = np.zeros_like(hours)
        factors = (met * now.factors[:, ticks.state].transpose(1, 2, 0)).sum(axis=2)
        np.add.at(weighed, cells, factors[ticks.real] * STEP_S / 3600)
        shapes = (changes + 0.5) / (weighed + 1)
    return shapes, start


def _met(now: Regimes, ticks: _Ticks, start: Floats) -> tuple[Floats, Floats]:
    """How often each regime is met, and how likely it is in each tick: forward and backward."""
    import numpy as np

    change = 1 - np.exp(-now.hazards * STEP_S / 3600)
    moves = now.moved(STEP_S / 3600)
    chance = np.moveaxis(change[:, ticks.state, ticks.age], 0, -1)
    says = np.where(ticks.change[..., None], chance, 1 - chance)
    says[~ticks.real] = 1.0
    belief = np.tile(start, (says.shape[1], 1))
    met = np.empty_like(says)
    for n, seen in enumerate(says):
        belief = belief * seen
        belief /= belief.sum(axis=1, keepdims=True)
        met[n] = belief
        belief = belief @ moves
    later = np.ones_like(belief)
    for n in range(len(says) - 1, -1, -1):
        met[n] *= later
        met[n] /= met[n].sum(axis=1, keepdims=True)
        later = (says[n] * later) @ moves.T
        later /= later.sum(axis=1, keepdims=True)
    often = met[ticks.real].mean(axis=0)
    found: Floats = (often + EVEN / len(often)) / (1 + EVEN)
    return found, met
