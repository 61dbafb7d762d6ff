"""What a supervisor's loop waits for: that anything has happened.

It is set by other threads and by signal handlers. A handler may run while the loop, or another
handler, is inside of this very object: an Event's lock is not to be had again there, and the
supervisor would wait for itself for ever. A SimpleQueue may be put to from anywhere.
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue


class Wake:
    def __init__(self) -> None:
        self._told: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        self._told.put(None)

    def wait(self, within_s: float) -> None:
        """Until it is set, or that has passed. However often it was set, it is set no more then."""
        with suppress(Empty):
            self._told.get(timeout=max(within_s, 0.0))
            while True:
                self._told.get_nowait()
