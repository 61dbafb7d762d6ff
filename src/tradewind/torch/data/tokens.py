"""`tw.tokens`: windows of token files, read where they are by memory map.

Map-style, so the session's order applies to them: every window once an epoch, shuffled without a
list of them, and gone on with to the bit by any number of ranks and workers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from tradewind.base.errors import InvalidValue, NotFound
from tradewind.torch.data import places
from tradewind.torch.data.tokenfiles import KINDS, TokenFile, opened, write_tokens

__all__ = ["Tokens", "tokens", "write_tokens"]

_MOST_OPEN = 256
"""Maps at a time: a process may have only so many."""


class Tokens:
    """Windows of `length` tokens. Sample n is (inputs, targets): the targets are the inputs one
    token further. Windows touch, do not overlap and do not cross from one file into the next; what
    is left over at a file's end is not used."""

    draws_nothing = True  # feeds need not seed each sample

    def __init__(self, files: Sequence[TokenFile], length: int) -> None:
        self._files, self.length = list(files), length
        self._ends = list(accumulate(max(0, (f.tokens - 1) // length) for f in files))
        self._maps: OrderedDict[int, Any] = OrderedDict()
        if not len(self):
            most = max(f.tokens for f in files)
            raise InvalidValue(
                f"there is no window of {length} tokens and one more: the largest file has {most}",
                hint="make length smaller",
            )

    @property
    def token_count(self) -> int:
        return sum(each.tokens for each in self._files)

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        import numpy as np
        import torch

        index = range(len(self))[index]
        number = bisect_right(self._ends, index)
        start = (index - (self._ends[number - 1] if number else 0)) * self.length
        window = self._map(number)[start : start + self.length + 1].astype(np.int64)
        both = torch.from_numpy(window)
        return both[:-1], both[1:]

    def _map(self, number: int) -> Any:
        import numpy as np

        found = self._maps.get(number)
        if found is None:
            file = self._files[number]
            kind = f"<u{KINDS[file.kind]}"
            found = np.memmap(file.path, kind, "r", offset=file.begin, shape=(file.tokens,))
            self._maps[number] = found
            if len(self._maps) > _MOST_OPEN:
                self._maps.popitem(last=False)
        else:
            self._maps.move_to_end(number)
        return found

    def __getstate__(self) -> dict[str, Any]:
        """For workers that are spawned: a map would be copied as all of its numbers."""
        return {**self.__dict__, "_maps": OrderedDict()}


def tokens(
    where: str | Path | Iterable[str | Path],
    length: int = 1024,
    *,
    dtype: str | None = None,
    cache: str | Path | None = None,
) -> Tokens:
    """Windows of `length` tokens of `.bin` and `.npy` files: one, several, a folder, or a pattern
    like `data/*.npy`. Those of a store (`s3://bucket/tokens/*.npy`) are brought to `cache` first,
    by one process of each host. `dtype`: of `.bin` files without a head, `uint16` or `uint32`."""
    if dtype is not None and dtype not in KINDS:
        raise InvalidValue(f"tokens cannot be {dtype!r}", hint="uint16 or uint32")
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise InvalidValue(f"a window cannot have {length!r} tokens", hint="length=1024")
    given = [where] if isinstance(where, str | Path) else list(where)
    found: list[Path] = []
    for each in given:
        found += places.files(str(each), (".bin", ".npy"), cache)
    if not found:
        raise NotFound("no token files are named", hint="for example data/*.npy")
    return Tokens([opened(path, dtype) for path in found], length)
