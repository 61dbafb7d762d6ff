"""How far off an estimate may be, by how much was measured of what it speaks of.

    measured   the stack on that very accelerator, in many rows or several sources
    scarce     the stack on that generation of accelerators, but little, or on another chip
    kin        the stack, or the generation, but not together; or on chips far faster only
    new        neither

The widths are those that held four fifths of rows that were left out of the fit (`left_out.py`),
judged by what the rest still had measured. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tradewind.estimate.cases import Cases
from tradewind.estimate.constants import calibration

if TYPE_CHECKING:
    from tradewind.estimate.cases import Column

CLASSES = ("measured", "scarce", "kin", "new")
MANY_ROWS, MANY_SOURCES = 30, 3
# 16-bit peaks of the chips that stand for a generation. One that reaches no more than half of it
# is of another make: an A10 is no small A100.
_PEAKS = {"volta": 125e12, "ampere": 312e12, "hopper": 989e12, "blackwell": 2250e12}


class Kind(NamedTuple):
    """What a measurement speaks of, for the width of its band."""

    stack: str
    generation: str
    chip: str


class Evidence:
    """Which kinds were measured, and how often."""

    def __init__(self, counts: Iterable[tuple[Kind, int, int]]) -> None:
        """Of each kind its rows and sources."""
        self.counts = {kind: (rows, sources) for kind, rows, sources in counts}
        self._pairs = {(kind.stack, kind.generation) for kind in self.counts}
        self.stacks = {kind.stack for kind in self.counts}
        self._generations = {kind.generation for kind in self.counts}

    @classmethod
    def of(cls, kinds: Sequence[Kind], sources: Sequence[str]) -> Evidence:
        rows = Counter(kinds)
        distinct: dict[Kind, set[str]] = defaultdict(set)
        for kind, source in zip(kinds, sources, strict=True):
            distinct[kind].add(source)
        return cls((kind, rows[kind], len(distinct[kind])) for kind in rows)

    def has(self, stack: str, generation: str) -> bool:
        return (stack, generation) in self._pairs

    def familiarity(self, kind: Kind) -> str:
        rows, sources = self.counts.get(kind, (0, 0))
        if rows >= MANY_ROWS or sources >= MANY_SOURCES:
            return "measured"
        if self.has(kind.stack, kind.generation):
            return "scarce"
        known = kind.stack in self.stacks or kind.generation in self._generations
        return "kin" if known else "new"


def kinds(cases: Cases) -> list[Kind]:
    generations = [
        f"slower chips of {name}" if peak <= 0.5 * _PEAKS.get(name, 0) else name
        for name, peak in zip(cases.generation.tolist(), cases.peak16.tolist(), strict=True)
    ]
    columns = (cases.stack.tolist(), generations, cases.chip.tolist())
    return [Kind(*row) for row in zip(*columns, strict=True)]


@cache
def _published() -> Evidence:
    return Evidence((Kind(s, g, c), rows, n) for s, g, c, rows, n in calibration()["measured"])


def half_width(cases: Cases) -> Column:
    """Half of the 80 % band in the logarithm: the estimate is right within a factor exp(±that)."""
    wanted = kinds(cases)
    return widths(wanted, [_published().familiarity(kind) for kind in wanted])


def widths(wanted: Sequence[Kind], familiarity: Sequence[str]) -> Column:
    import numpy as np

    bands = calibration()["bands"]
    found = {}
    for kind, known in set(zip(wanted, familiarity, strict=True)):
        own = bands["kinds"].get(" ".join(kind)) if known == "measured" else None
        found[kind, known] = own or bands[known]
    column: Column = np.array([found[pair] for pair in zip(wanted, familiarity, strict=True)])
    return column


def on_record(stack: str, generation: str) -> bool:
    """Whether the stack was measured on that generation at all."""
    return _published().has(stack, generation)


@cache
def reason(kind: Kind) -> str:
    """Why the band is as wide as it is, in words."""
    familiarity = _published().familiarity(kind)
    chip = kind.chip or kind.generation
    rows, sources = _published().counts.get(kind, (0, 0))
    many = f"{rows:,} rows of {sources} source{'s' if sources > 1 else ''}"
    if familiarity == "measured":
        return f"{kind.stack} on {chip} was measured: {many}"
    if familiarity == "scarce" and rows:
        return f"{kind.stack} on {chip} was hardly measured: {many}"
    if familiarity == "scarce":
        return f"{kind.stack} was not measured on {chip}, but on others of {kind.generation}"
    if familiarity == "kin":
        return f"{kind.stack} was not measured on {kind.generation}: taken from their kin"
    return f"neither {kind.stack} nor {kind.generation} was measured: taken from its peaks"
