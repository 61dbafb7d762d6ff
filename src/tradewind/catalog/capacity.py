"""How likely machines are there when they are asked for. Pure, but for reading its table.

A doubt grows with how rarely a provider of that kind has one accelerator on that market, with how
scarce its generation is, with the accelerators in a machine, and with the machines that are wanted
at once:

    doubt = doubt of one (kind of provider, market) × scarcity × accelerators ^ 0.3 × machines ^ 0.8
    chance = (1 + doubt / 2) ^ −2

That is a prior, worth half an answer. Each answer that was seen, a launch, a refusal or an
interruption, is worth one when it is fresh and half as much every twelve hours; the chance is the
mean of the prior and the answers (a beta distribution's). Of machines that are there, fewer are
there too; where some were refused, more would be: so an answer counts in full for those, and for
the others as far as their doubts are alike.

All figures stand in `data/capacity.csv`, and in words in docs/capacity.md:

    kind        provider/glob of types → kind of provider; the first that fits counts, and the
                last line is of every provider that has none
    chance      kind/market → chance to get one accelerator of scarcity 1
    scarcity    globs of accelerators, `|` between them → factor; the first that fits counts
    gang        the powers of the accelerators in a machine, and of the machines
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tradewind.base import csvfile
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.catalog.globs import fits

if TYPE_CHECKING:
    from tradewind.model import Observation

TABLE = Path(__file__).parent / "data" / "capacity.csv"
_TAIL = 2.0
"""How slowly the chance falls where the doubt is large: a little hope is left."""
STRENGTH = 0.5
"""Answers that the prior is worth."""
HALF_LIFE = timedelta(hours=12)
"""After so long, an answer counts half."""
FORGOTTEN = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Priors:
    kinds: dict[str, tuple[tuple[str, str], ...]]  # by provider, `*` for all others: glob, kind
    doubts: dict[tuple[str, str], float]  # of one plentiful accelerator, by kind and market
    scarcities: tuple[tuple[tuple[str, ...], float], ...]
    powers: tuple[float, float]  # of the accelerators in a machine, and of the machines

    def kind(self, provider: str, instance_type: str) -> str:
        name = instance_type.lower()
        known = self.kinds.get(provider) or self.kinds["*"]
        return next(kind for glob, kind in known if fits(name, glob))

    def scarcity(self, accelerator: str) -> float:
        name = accelerator.lower()
        return next(
            factor for globs, factor in self.scarcities if any(fits(name, glob) for glob in globs)
        )

    def size(self, accelerators: Any, machines: Any) -> Any:
        """By how much so many in a machine and so many machines raise the doubt of one."""
        return accelerators ** self.powers[0] * machines ** self.powers[1]


def chance(doubt: Any) -> Any:
    """Of a number or a column."""
    return (1 + doubt / _TAIL) ** -_TAIL


class Seen(NamedTuple):
    """What came of asking, once."""

    doubt: float  # of what was asked for
    there: bool
    weight: float  # 1 when it has just been seen


def weight(expires_at: datetime, now: datetime) -> float:
    """In full until it expires, half as much every half-life after."""
    age = max(now - expires_at, timedelta())
    return 0.0 if age >= FORGOTTEN else float(0.5 ** (age / HALF_LIFE))


def sharpened(doubt: Any, seen: Sequence[Seen]) -> Any:
    """The chance of a doubt, or of each in a column, after what was seen there."""
    import numpy as np

    answers, there = STRENGTH, STRENGTH * chance(doubt)
    for one in seen:
        alike = doubt / one.doubt if one.doubt else 1.0
        counts = one.weight * np.minimum(1 / alike if one.there else alike, 1.0)
        answers = answers + counts
        there = there + (counts if one.there else 0.0)
    return there / answers


def words(seen: Iterable[Observation]) -> str:
    """`2 launches and 1 refusal, the last of 2026-11-15 10:00`."""
    listed = sorted(seen, key=lambda one: one.seen_at)
    there = sum(one.available for one in listed)
    parts = [
        f"{number} {noun if number == 1 else plural}"
        for number, noun, plural in (
            (there, "time there", "times there"),
            (len(listed) - there, "time not", "times not"),
        )
        if number
    ]
    return f"seen {' and '.join(parts)}, the last on {listed[-1].seen_at:%Y-%m-%d %H:%M}"


@cache
def priors() -> Priors:
    kinds: dict[str, list[tuple[str, str]]] = {}
    doubts: dict[tuple[str, str], float] = {}
    scarcities: list[tuple[tuple[str, ...], float]] = []
    powers: dict[str, float] = {}
    for line, cells in csvfile.rows(TABLE):
        part, key, value = cells["part"], cells["key"], cells["value"]
        try:
            if part == "kind":
                provider, _, types = key.partition("/")
                kinds.setdefault(provider, []).append((types or "*", value))
            elif part == "chance":
                kind, _, market = key.partition("/")
                doubts[kind, market] = _TAIL * (float(value) ** (-1 / _TAIL) - 1)
            elif part == "scarcity":
                scarcities.append((tuple(key.lower().split("|")), float(value)))
            elif part == "gang":
                powers[key] = float(value)
            else:
                raise InvalidValue(f"no part is called {part!r}")
        except (ValueError, ZeroDivisionError, InvalidValue) as error:
            raise BadFile(f"{TABLE} line {line}: {error}") from None
    return Priors(
        {provider: tuple(several) for provider, several in kinds.items()},
        doubts,
        tuple(scarcities),
        (powers["accelerators"], powers["machines"]),
    )
