"""How the ranks come to do the same thing after the same step, without waiting for each other.

Now and then each rank throws in what it wishes (save, stop, how long its steps take), as one small
reduction by gloo that goes on beside the training; some steps later all of them look at the same
words. So a wish is heeded by everyone after the same step. How many steps lie between follows from
the reduction itself: about a quarter of a second's. Where a step takes longer than that, ranks do
wait for each other after each one: it costs a thousandth of it.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from msgspec import Struct

from tradewind.base import clock

LOOK_S = 0.25
"""One rank too, which has nobody to ask, but still something to look at, and that takes longer than
a look at the clock."""
_MOST_STEPS = 500


class Wish(Struct, frozen=True):
    save: bool = False
    stop: bool = False
    left_s: float = 1e9
    """Until the machine goes: of all ranks, the least."""
    step_s: float = 0.0
    """How long a step takes: of all ranks, the most."""


class Agreement:
    """`group` is a gloo group of all ranks; None where there is one rank, which agrees at once."""

    def __init__(self, group: Any = None) -> None:
        self._group = group
        self._every = 1
        self._next = 1
        self._running: tuple[Any, Any] | None = None
        self._count = 0
        self._next_s = 0.0

    def due(self) -> bool:
        """Counts a step. Whether this is one after which ranks look."""
        if self._group is None:
            now_s = clock.stopwatch()
            if now_s < self._next_s:
                return False
            self._next_s = now_s + LOOK_S
            return True
        self._count += 1
        return self._count >= self._next

    def look(self, wish: Wish) -> Wish | None:
        """What all ranks wish, each the same; None: nothing is known yet. After a `due` step."""
        if self._group is None:
            return wish
        heard = self._heard() if self._running is not None else None
        self._throw_in(wish)
        if self._every == 1:
            heard = self._heard()
        self._next = self._count + self._every
        return heard

    def at_once(self, need: bool, can: bool = True) -> tuple[bool, bool]:
        """Whether any rank needs it and all of them can; who asks waits for the others. Raises
        RuntimeError where one of them is gone."""
        if self._group is None:
            return need, can
        import torch
        import torch.distributed as dist

        self._heard()
        words = torch.tensor([float(need), float(not can)])
        dist.all_reduce(words, op=dist.ReduceOp.MAX, group=self._group)
        return bool(words[0]), not words[1]

    def _throw_in(self, wish: Wish) -> None:
        import torch
        import torch.distributed as dist

        words = torch.tensor(
            [float(wish.save), float(wish.stop), -wish.left_s, wish.step_s], dtype=torch.float64
        )
        self._running = (
            words,
            dist.all_reduce(words, op=dist.ReduceOp.MAX, group=self._group, async_op=True),
        )

    def _heard(self) -> Wish | None:
        if self._running is None:
            return None
        words, work = self._running
        work.wait()
        self._running = None
        save, stop, left, step_s = words.tolist()
        # The same on all ranks, because what it follows from is.
        self._every = min(_MOST_STEPS, max(1, ceil(LOOK_S / step_s))) if step_s > 0 else 1
        return Wish(save > 0, stop > 0, -left, step_s)

    def close(self) -> None:
        """What still runs must end before the process group does."""
        if self._running is not None:
            self._running = None


def own_gloo() -> Any:
    """A group for this alone: what the training reduces must not come between."""
    import torch.distributed as dist

    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return None
    return dist.new_group(backend="gloo")
