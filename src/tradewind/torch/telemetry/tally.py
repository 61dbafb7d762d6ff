"""What the loop itself counts: a few additions a step, without a lock. Another thread reads it, and
may find a step half counted, which the next look puts right."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from tradewind.base import clock

now_s = clock.stopwatch
_KEPT = 4096


class Tally:
    __slots__ = ("_how", "data_s", "ends", "samples", "saving_s", "steps", "tokens", "told")

    def __init__(self) -> None:
        self.steps = 0
        self.data_s: float | None = None
        """Waited for batches; None: none was asked for yet."""
        self.saving_s = 0.0
        self.tokens = self.samples = 0.0
        self.told = False
        """The script says how many tokens there are: then they are not looked for."""
        self.ends: deque[tuple[float, float, float]] = deque(maxlen=_KEPT)
        """When the last steps were over, and the tokens and samples until then."""
        self._how: Callable[[Any], None] | None = None

    def made(self, tokens: Any = None) -> None:
        self.steps += 1
        if tokens is not None:
            if not self.told:
                self.told, self.tokens = True, 0.0
            # A tensor on a device would have to be waited for.
            if isinstance(tokens, int | float):
                self.tokens += tokens
        self.ends.append((now_s(), self.tokens, self.samples))

    def waited(self, from_s: float, batch: Any) -> None:
        """Since then, for this batch."""
        self.data_s = (self.data_s or 0.0) + now_s() - from_s
        if self._how is None:
            self._how = self._found(batch)
        try:
            self._how(batch)
        except Exception:  # another kind of batch than the first: looked at anew next time
            self._how = None

    def saved(self, from_s: float) -> None:
        self.saving_s += now_s() - from_s

    def _found(self, batch: Any) -> Callable[[Any], None]:
        """How tokens and samples are counted, by the first batch: whole numbers of two dimensions
        are tokens, under the name that tokenizers give them or as the first part."""
        if isinstance(batch, Mapping) and "input_ids" in batch:
            return lambda each: self._count(each["input_ids"])
        if isinstance(batch, Mapping) and batch:
            name = next(iter(batch))
            return lambda each: self._count_samples(each[name])
        if isinstance(batch, list | tuple) and batch:
            if _is_tokens(batch[0]):
                return lambda each: self._count(each[0])
            return lambda each: self._count_samples(each[0])
        if _is_tokens(batch):
            return self._count
        return self._count_samples if hasattr(batch, "shape") else lambda each: None

    def _count(self, ids: Any) -> None:
        self.samples += ids.shape[0]  # len() of a tensor is a long way through Python
        if not self.told:
            self.tokens += ids.numel()

    def _count_samples(self, part: Any) -> None:
        self.samples += part.shape[0] if hasattr(part, "shape") else len(part)


def _is_tokens(part: Any) -> bool:
    return getattr(part, "ndim", 0) == 2 and str(getattr(part, "dtype", "")) in (
        "torch.int64",
        "torch.int32",
    )
