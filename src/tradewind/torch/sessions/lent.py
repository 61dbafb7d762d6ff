"""Memory of the GPU that checkpoints use while training does not: how much is said, and it is given
back when training comes to need it."""

from __future__ import annotations

from typing import Any

from tradewind.base import clock
from tradewind.torch.sessions.words import Voice

_LOOK_S = 1.0


class Lent:
    def __init__(self, checkpoints: Any, voice: Voice) -> None:
        self._checkpoints, self._voice = checkpoints, voice
        self._said = False
        self._next_s = 0.0

    def look(self) -> None:
        """From time to time, by another thread."""
        now_s = clock.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _LOOK_S
        self._checkpoints.look()
        if not self._said and (held := self._checkpoints.held()):
            self._said = True
            self._voice.say(
                f"checkpoints are copied by way of {held / 1e9:.1f} GB of the GPU that are free;"
                " training gets them when it needs more"
            )

    def between(self) -> None:
        """Between two steps, now and then, by the thread that trains."""
        if given := self._checkpoints.give_back():
            self._voice.say(
                f"training needs more memory of the GPU: the {given / 1e9:.1f} GB that checkpoints"
                " were copied by way of are given back, and each save holds it up for longer now"
            )
