"""What a training says on standard error."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


class Voice:
    """Of one rank. Past Python's own buffers: signal handlers have something to say too."""

    def __init__(self, rank: int) -> None:
        self._rank = rank

    def say(self, words: str) -> None:
        """What all ranks know: the first says it."""
        if self._rank == 0:
            _write(f"tradewind.torch: {words}\n")

    def warn_once(self, words: str) -> None:
        self.say(f"warning: {words}")

    def warn(self, words: str) -> None:
        """Of each rank: they may have different troubles."""
        rank = f" rank {self._rank}:" if self._rank else ""
        _write(f"tradewind.torch:{rank} warning: {words}\n")


def _write(words: str) -> None:
    with suppress(OSError):
        os.write(2, (_line() + words).encode())


def _line() -> str:
    """A line of its own, where a progress bar stands on this one."""
    tqdm = sys.modules.get("tqdm")
    bars = getattr(getattr(tqdm, "tqdm", None), "_instances", None)
    return "\n" if bars else ""
