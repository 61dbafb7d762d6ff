"""One moment's tensors on their way into the arena, for whoever writes it to follow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

from tradewind import clock
from tradewind.errors import SourceFailed


class Snapshot:
    """One moment's tensors on their way into the arena."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.marks: list[tuple[int, Any]] = []
        """Up to which byte the arena is filled once an event has come, in order."""
        self.issued = threading.Event()
        self.copied = threading.Event()
        """What is in the computer's memory, that is."""
        self.filled: SimpleQueue[int | None] = SimpleQueue()
        """Where nothing is on a device: up to which byte it is, and None at the end."""
        self.held: list[Any] = []
        self.started: Any = None
        self.end: Any = None
        self.begun_s = self.copied_s = clock.monotonic()
        self.trouble = ""

    def progress(self) -> Iterator[int]:
        """Waits, and says up to which byte the arena is filled; last, up to where all of it is."""
        self.issued.wait()
        if not self.marks:
            while (upto := self.filled.get()) is not None:
                yield upto
        self.copied.wait()
        for upto, event in self.marks:
            event.synchronize()
            yield upto
        if self.end is not None:
            self.end.synchronize()
        if self.trouble:
            raise SourceFailed(self.trouble)
        self.held.clear()  # the tensors may go
        yield self.size

    def settle(self) -> None:
        """Waits until nothing copies into the arena out of turn any more, for a save that failed
        before it was all there: what a device still copies comes before the next in its stream."""
        self.issued.wait()
        self.copied.wait()

    def finish_copies(self) -> None:
        self.copied_s = clock.monotonic()
        self.copied.set()
        self.filled.put(None)

    def copy_s(self) -> float:
        """How long the copying took."""
        if self.end is None:
            return self.copied_s - self.begun_s
        return float(self.started.elapsed_time(self.end)) / 1e3
