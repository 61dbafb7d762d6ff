"""Whether a save is due, and whether this is a good moment for it."""

from __future__ import annotations

from tradewind.torch.sessions.gradients import Gradients

PATIENCE = 64
"""Steps that a save by time waits for gradients to be used up: without them it is smaller."""

_SHARE = 0.2
"""Of the time that is left."""


class Due:
    def __init__(self) -> None:
        self.by_time = self.by_count = False
        self._postponed = 0

    def now(self, gradients: Gradients) -> bool:
        """After each step, on every rank: by the same gradients they come to the same answer."""
        if not self.by_time and not self.by_count:
            return False
        if self._postponed < PATIENCE and (
            gradients.hidden() or (not self.by_count and gradients.any())
        ):
            self._postponed += 1
            return False
        self.by_time = self.by_count = False
        self._postponed = 0
        return True


def patience(left_s: float, step_s: float) -> int:
    """How many steps a training that is asked to end goes on, until its gradients are used up."""
    return min(PATIENCE, int(_SHARE * left_s / step_s)) if step_s > 0 else 0
