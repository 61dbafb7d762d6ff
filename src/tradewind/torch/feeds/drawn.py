"""An epoch that a sampler draws, read piece by piece: `RandomSampler(num_samples=10**10)` is no
list, and a sampler `while True` never ends.

Only the newest pieces are there. What is asked for again from before them is drawn again, of the
same numbers. Random generators of the process stand still meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.feeds import seeding

LONG = 1 << 22
"""Samples of an epoch that are a list."""
ENDLESS = 1 << 62
_UNSAID = 1 << 18
"""Samples that are read of one that does not say how many it has."""
_PIECE = 1 << 14


class Drawn:
    """Looks like a list, as far as an order has to. `size`: None where only reading tells. `own`
    are the generators that the sampler itself has."""

    def __init__(self, sampler: Any, size: int | None, seed: int, own: list[Any]) -> None:
        self._sampler, self._seed, self._own = sampler, seed, own
        self._exact, self._size = size is not None, ENDLESS if size is None else size
        self._begin()
        if not self._exact:
            self._read(_UNSAID, 0)

    def _begin(self) -> None:
        self._iterator: Iterator[Any] | None = None
        self._numbers: seeding.Aside | None = None
        self._there: list[Any] = []
        self._from = 0
        self._over = False

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, wanted: slice) -> list[Any]:
        start, stop, _ = wanted.indices(self._size)
        if start < self._from:
            self._begin()
        # One piece more, so that an end that nobody has told is known before it is there.
        needed = stop if self._exact else stop + _PIECE
        if self._from + len(self._there) < needed and not self._over:
            self._read(needed, start)
        found = self._there[start - self._from : stop - self._from]
        if len(found) < stop - start and self._exact:
            raise InvalidValue(
                f"the {type(self._sampler).__name__} says that it draws {self._size} samples an"
                f" epoch, and ends after {self._from + len(self._there)}",
                hint="let its __len__ say how many it gives",
            )
        return found

    def _read(self, until: int, start: int) -> None:
        """`start`: what comes before it is not asked for any more."""
        here = seeding.Aside(self._own)
        try:
            if self._numbers is None:
                seeding.begin(self._seed, self._own)
                self._iterator = iter(self._sampler)
            else:
                self._numbers.back()
            assert self._iterator is not None
            while self._from + len(self._there) < until and not self._over:
                some = list(islice(self._iterator, _PIECE))
                self._there += some
                self._over = len(some) < _PIECE
                self._forget(start)
            self._numbers = seeding.Aside(self._own)
        finally:
            here.back()
        if self._over and not self._exact:
            self._size = self._from + len(self._there)

    def _forget(self, start: int) -> None:
        """What was given out long ago."""
        past = min(start - self._from, len(self._there)) - _PIECE
        if past > 0:
            del self._there[:past]
            self._from += past
