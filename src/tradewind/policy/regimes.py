"""Which regime a zone is in, by what was seen of its capacity: a filter over a few regimes. Pure.

In a regime, capacity is lost with the hazard `up[age]` and comes back with the hazard `down[age]`,
each times the regime's own factor; so a regime is a pair of levels: how long machines are held
there, and how long one waits. Regimes change slowly. As the factor does not depend on the age, a
spell of length l tells of a regime only by factor · exp(−factor · H(l)), with H the hazard summed
up to l: a whole spell is weighed at once, whatever the ticks it was seen in.

Several zones are watched as one by asking whether any of them is up.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache, lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any

from tradewind.policy.base import Spell
from tradewind.policy.learned import Learned, learned

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

HOUR_S = 3600.0
LONG_S = 12 * HOUR_S
"""Spells beyond the last age are weighed in pieces of this length."""
MOST_PIECES = 60
DEEP = 100
UNSEEN_S = 12 * HOUR_S
"""When nobody looked for longer, it is not guessed what was there meanwhile."""
Zone = tuple[tuple[Spell, ...], bool, float]
"""What was seen of a zone: what ended, whether it is up, and since when."""


class Regimes:
    """The regimes of what was learned, ready for use."""

    def __init__(self, model: Learned) -> None:
        import numpy as np

        self.model = model
        levels = np.array([(down, up) for up, down in product(model.levels, repeat=2)])
        self.factors = np.exp(levels)  # regime × (down, up)
        self.number = len(levels)
        shapes = np.array([model.down, model.up])
        self.hazards = self.factors[:, :, None] * shapes  # an hour; regime × (down, up) × age
        self.moves = _moves(model)
        self.starts = {zones: np.array(p) for zones, p in model.start.items()}
        self.lives = _lives(self.hazards, model.ages_s)
        typical = self.hazards.mean(axis=2)
        self.often_up = typical[:, 0] / typical.sum(axis=1)
        self.bounds = list(model.ages_s) + [
            model.ages_s[-1] + LONG_S * n for n in range(1, MOST_PIECES + 1)
        ]
        self._summed(shapes)
        self._pieces()

    def _summed(self, shapes: Column) -> None:
        last = len(self.model.ages_s) - 1
        self.sums: list[list[float]] = []
        self.slopes: list[list[float]] = []
        for shape in shapes:
            slopes = [float(shape[min(n, last)]) for n in range(len(self.bounds))]
            total, sums = 0.0, []
            for n, bound in enumerate(self.bounds):
                sums.append(total)
                if n + 1 < len(self.bounds):
                    total += slopes[n] * (self.bounds[n + 1] - bound) / HOUR_S
            self.sums.append(sums)
            self.slopes.append(slopes)

    def _pieces(self) -> None:
        """What a spell that has reached each bound says, with the moves meanwhile."""
        import numpy as np

        self.reached: list[list[Column]] = []
        for state in (0, 1):
            whole = np.eye(self.number)
            found = [whole]
            for n in range(len(self.bounds) - 1):
                seen = self.sums[state][n + 1] - self.sums[state][n]
                lived = np.exp(-self.factors[:, state] * seen)
                hours = (self.bounds[n + 1] - self.bounds[n]) / HOUR_S
                whole = (whole * lived) @ _moved(self.moves, hours)
                whole = whole / whole.sum()
                found.append(whole)
            self.reached.append(found)

    def lasting(self, belief: Column, up: bool, for_s: float) -> Column:
        """The belief after a spell has lasted so long, and not ended."""
        import numpy as np

        n = bisect_right(self.bounds, for_s) - 1
        state = int(up)
        within_s = min(for_s - self.bounds[n], LONG_S)
        seen = self.slopes[state][n] * within_s / HOUR_S
        found = (belief @ self.reached[state][n]) * np.exp(-self.factors[:, state] * seen)
        found = found + (found @ self.moves) * (within_s / HOUR_S)
        whole: Column = found / found.sum()
        return whole

    def ended(self, belief: Column, up: bool, after_s: float) -> Column:
        found = self.lasting(belief, up, after_s) * self.factors[:, int(up)]
        whole: Column = found / found.sum()
        return whole

    def unseen(self, belief: Column, zones: int, for_s: float) -> Column:
        import numpy as np

        start = self.start(zones)
        kept = float(np.exp(-(4 * self.model.drift + self.model.jump) * for_s / HOUR_S))
        found: Column = start + (belief - start) * kept
        return found

    def moved(self, hours: float) -> Column:
        """How regimes change in so many hours."""
        return _moved(self.moves, hours)

    def start(self, zones: int) -> Column:
        known = max((n for n in self.starts if n <= zones), default=min(self.starts))
        return self.starts[known]

    def first(self, zones: int, up: bool) -> Column:
        """Where the first thing that is seen is whether it is up."""
        found = self.start(zones) * (self.often_up if up else 1 - self.often_up)
        whole: Column = found / found.sum()
        return whole

    def age(self, for_s: float) -> int:
        return bisect_right(self.model.ages_s, for_s) - 1


def _moves(model: Learned) -> Column:
    import numpy as np

    side = len(model.levels)
    number = side * side
    moves = np.zeros((number, number))
    start = np.array(model.start[1])
    for a, b in product(range(side), repeat=2):
        for c, d in ((a + 1, b), (a - 1, b), (a, b + 1), (a, b - 1)):
            if 0 <= c < side and 0 <= d < side:
                moves[a * side + b, c * side + d] += model.drift
    moves += model.jump * start
    np.fill_diagonal(moves, 0.0)
    np.fill_diagonal(moves, -moves.sum(axis=1))
    return moves


def _moved(moves: Column, hours: float) -> Column:
    """The matrix exponential, by squaring: moves are slow."""
    import numpy as np

    part = moves * hours / 1024
    found: Column = np.eye(len(moves)) + part + part @ part / 2
    for _ in range(10):
        found = found @ found
    return found


def _lives(hazards: Column, ages_s: tuple[float, ...]) -> Column:
    """Hours that a spell of each age goes on for; regime × (down, up) × age."""
    import numpy as np

    lives: Column = np.empty_like(hazards)
    lives[:, :, -1] = 1 / hazards[:, :, -1]
    for n in range(len(ages_s) - 2, -1, -1):
        older = HOUR_S / (ages_s[n + 1] - ages_s[n])
        lives[:, :, n] = (1 + older * lives[:, :, n + 1]) / (hazards[:, :, n] + older)
    return lives


@cache
def regimes() -> Regimes:
    return Regimes(learned())


def forget() -> None:
    """For tools that put another model in the place of what was learned."""
    regimes.cache_clear()
    _at_last_change.cache_clear()
    _after.cache_clear()


class Seen:
    """What is believed of some zones, watched as one: up if any is, and down if none."""

    __slots__ = ("age", "belief", "for_s", "up")

    def __init__(self, up: bool, for_s: float, belief: Any) -> None:
        self.up, self.for_s, self.belief = up, for_s, belief
        self.age = regimes().age(for_s)

    def life_h(self) -> float:
        """How much longer it is expected to go on as it is."""
        return float(self.belief @ regimes().lives[:, int(self.up), self.age])


def watch(zones: tuple[Zone, ...]) -> Seen:
    """The same answer for the same zones, always; what ended is remembered only to be quick."""
    since_s = min(zone[2] for zone in zones)
    before, up, then_s = _at_last_change(
        tuple((history, up, for_s - since_s) for history, up, for_s in zones)
    )
    for_s = then_s + since_s
    return Seen(up, for_s, regimes().lasting(before, up, for_s))


@lru_cache(maxsize=4096)
def _at_last_change(zones: tuple[Zone, ...]) -> tuple[Any, bool, float]:
    """The belief before the present spell of them all, that spell, and its length by then."""
    filled = tuple(_filled(zone) for zone in zones)
    spells = _together(filled) if len(zones) > 1 else [*filled[0][0], filled[0][1:]]
    now, number = regimes(), len(zones)
    last, last_s = spells[-1]
    assert last is not None
    before = tuple(spells[:-1])
    for n in range(DEEP, len(before), DEEP):  # what is remembered nests no deeper
        _after(before[:n], before[n][0], number)
    belief = _after(before, last, number)
    return (now.first(number, last) if belief is None else belief), last, last_s


@lru_cache(maxsize=8192)
def _after(spells: tuple[Spell, ...], then: bool | None, number: int) -> Any:
    """The belief after these spells, by what came then; None before the first. Mostly only the last
    of them is new, and all before it is remembered."""
    if not spells:
        return None
    (up, for_s), now = spells[-1], regimes()
    belief = _after(spells[:-1], up, number)
    if up is None:
        return now.unseen(now.start(number) if belief is None else belief, number, for_s)
    belief = now.first(number, up) if belief is None else belief
    # Where nobody looked after it, it did not end as far as is known.
    return (now.lasting if then is None else now.ended)(belief, up, for_s)


@lru_cache(maxsize=512)  # a zone is in many classes
def _filled(zone: Zone) -> Zone:
    """Where nobody looked for a while, and found the same before and after, it was so all along; if
    not the same, it changed halfway."""
    history, up, for_s = zone
    if not any(past is None and past_s <= UNSEEN_S for past, past_s in history):
        return zone
    found: list[Spell] = []
    carry_s = 0.0
    for n, (past, past_s) in enumerate(history):
        then = history[n + 1][0] if n + 1 < len(history) else up
        before = found[-1] if found else None
        if past is None and past_s <= UNSEEN_S and before and before[0] is not None:
            part_s = past_s if before[0] is then else past_s / 2
            found[-1] = (before[0], before[1] + part_s)
            carry_s = past_s - part_s
        else:
            _append(found, past, past_s + carry_s)
            carry_s = 0.0
    if found and found[-1][0] is up:
        for_s += found.pop()[1]
    return tuple(found), up, for_s + carry_s


def _append(found: list[Spell], state: bool | None, for_s: float) -> None:
    if found and found[-1][0] is state:
        for_s += found.pop()[1]
    found.append((state, for_s))


def _together(zones: tuple[Zone, ...]) -> list[Spell]:
    """The spells of any of them being up; before the first look at a zone it counts as unseen."""
    changes: list[tuple[float, int, bool | None]] = []
    for n, (history, up, for_s) in enumerate(zones):
        ago_s = for_s
        changes.append((ago_s, n, up))
        for past, past_s in reversed(history):
            ago_s += past_s
            changes.append((ago_s, n, past))
    changes.sort(key=lambda change: -change[0])
    states: list[bool | None] = [None] * len(zones)
    found: list[Spell] = []
    began_s: float = changes[0][0]
    was: bool | None = None
    for index, (ago_s, n, state) in enumerate(changes):
        states[n] = state
        if index + 1 < len(changes) and changes[index + 1][0] == ago_s:
            continue
        now = True if True in states else (False if False in states else None)
        if now is not was:
            if began_s > ago_s:
                found.append((was, began_s - ago_s))
            began_s, was = ago_s, now
    found.append((was, began_s))
    return found
