"""A shuffled order of any number of samples that takes no memory. Pure.

A Feistel network is one-to-one whatever its rounds compute, so it permutes the numbers below 4^k;
those that come out at `size` or above go through again until they are below it (less than four
times on average). Each place is computed when it is asked for: an order of 10^9 windows costs as
much to begin with as one of ten.
"""

from __future__ import annotations

from typing import Any

from tradewind.torch.feeds.mixing import mixed

_ROUNDS = 6


class Scattered:
    """As a NumPy array of the numbers below `size`, in an order that follows from `key`; to be
    sliced with steps of one."""

    def __init__(self, size: int, key: int) -> None:
        self._size = size
        self._half = max(1, ((size - 1).bit_length() + 1) // 2)
        self._keys = [mixed(key, each, 7) for each in range(_ROUNDS)]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, places: slice) -> Any:
        import numpy as np

        start, stop, step = places.indices(self._size)
        assert step == 1
        found = self._once(np.arange(start, max(start, stop), dtype=np.uint64))
        while (over := found >= self._size).any():
            found[over] = self._once(found[over])
        return found.astype(np.int64)

    def _once(self, numbers: Any) -> Any:
        import numpy as np

        bits, low = np.uint64(self._half), np.uint64((1 << self._half) - 1)
        left, right = numbers >> bits, numbers & low
        for key in self._keys:
            left, right = right, left ^ (_mixed(right ^ np.uint64(key)) & low)
        return left << bits | right


def _mixed(words: Any) -> Any:
    """splitmix64's finish, of many words at once; what runs over is meant to."""
    import numpy as np

    words = (words ^ words >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ words >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return words ^ words >> np.uint64(31)
