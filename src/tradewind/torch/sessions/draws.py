"""Whether a loop without a loader draws random numbers before its forward passes.

One that fetches its next batch in the middle of a step (`X = get_batch()` after the forward pass,
as nanoGPT does) draws none between two steps. When it goes on, its first batch is fetched before
the loop, in place of the one that was fetched ahead and is in no checkpoint: other random numbers,
so another training. That can be seen at the first forward pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from tradewind.torch.feeds import seeding

WORDS = (
    "random numbers are drawn before the first step, and between the steps before the checkpoint"
    " there were none: a batch that the loop had fetched ahead is in no checkpoint, and another"
    " takes its place; fetch at the beginning of the step, or keep the batch:"
    " session.variables(batch=…)"
)
_LOOKS = 3


def now() -> str:
    """A digest of the random numbers that come next."""
    state = seeding.captured()
    tensors = [state["torch"], *state.get("cuda", ())]
    digest = hashlib.sha256(repr(state["python"]).encode())
    if "numpy" in state:
        _, keys, *rest = state["numpy"]
        tensors.append(keys)
        digest.update(repr(rest).encode())
    for tensor in tensors:
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


class Draws:
    """`module` is the one that is trained."""

    def __init__(self, module: Any, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._at_step = now()
        self._expected: bool | None = None
        self._seen: list[bool] = []
        self._first = True
        self._hook = module.register_forward_pre_hook(self._forward)

    def goes_on(self, drew: bool | None) -> None:
        """`drew`: of the steps before the checkpoint."""
        self._expected, self._at_step = drew, now()

    def made(self) -> None:
        """A step."""
        if self._hook is not None:
            self._at_step = now()

    def state(self) -> bool | None:
        """Whether there were any between the first steps; None: nobody knows yet."""
        return any(self._seen) if len(self._seen) >= _LOOKS else self._expected

    def close(self) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _forward(self, *_: Any) -> None:
        if self._at_step == "":
            return  # not the first of this step
        drew, self._at_step = now() != self._at_step, ""
        if not self._first:
            self._seen.append(drew)
        elif self._expected is False and drew:
            self._warn(WORDS)
        self._first = False
        if len(self._seen) >= _LOOKS:
            self.close()
