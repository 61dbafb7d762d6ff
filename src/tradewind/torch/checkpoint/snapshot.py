"""One moment's tensors on their way into the arena, for whoever writes it to follow."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from queue import SimpleQueue
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import SourceFailed

_LOOK_S = 0.001


class Snapshot:
    """`hasty` is told the names of tensors that training wrote to while they were copied."""

    def __init__(self, size: int, hasty: set[str], *, on_device: bool = False) -> None:
        self.size, self._hasty, self._on_device = size, hasty, on_device
        self.issued = threading.Event()
        self.gated = threading.Event()
        """The gate knows what to wait for: `safe`, after which training may change everything."""
        self.safe: Any = None
        self.copied = threading.Event()
        """What is in the computer's memory, that is."""
        self.filled: SimpleQueue[int | None] = SimpleQueue()
        """Up to which byte the arena is, once what is in the computer's memory is there too; None
        at the end."""
        self.held: list[Any] = []
        self._watched: list[tuple[str, Any, int]] = []
        self._lock = threading.Lock()
        self.started: Any = None
        self.end: Any = None
        self.begun_s = self.copied_s = clock.monotonic()
        self.trouble = ""

    def progress(self) -> Iterator[int]:
        """Waits, and says up to which byte the arena is filled; last, up to where all of it is."""
        while (upto := self.filled.get()) is not None:
            if self._on_device:
                self.copied.wait()
            yield upto
        self.copied.wait()
        if self.end is not None:
            wait_for(self.end)
        self.look(over=False)
        if self.trouble:
            raise SourceFailed(self.trouble)
        self.held.clear()  # the tensors may go
        yield self.size

    def settle(self) -> None:
        """Waits until nothing copies into the arena out of turn any more, for a save that failed
        before it was all there."""
        self.issued.wait()
        self.copied.wait()
        self.held.clear()

    def watch(self, named: Iterable[tuple[str, Any]]) -> None:
        """A device copies these, whoever knows when: nothing may write to them before the gate."""
        self._watched = [(name, tensor, written(tensor)) for name, tensor in named]

    def look(self, *, over: bool) -> None:
        """Whether something did. `over`: from now on it may."""
        with self._lock:
            for name, tensor, times in self._watched:
                self.compare(name, tensor, times)
            if over:
                self._watched = []

    def compare(self, name: str, tensor: Any, times: int) -> None:
        if written(tensor) != times:
            self._hasty.add(name)
            self.trouble = (
                f"{name} was changed before the next optimizer step, while it was copied; from now"
                " on it is copied at once"
            )

    def finish_copies(self, *, last: bool) -> None:
        """`last`: nothing comes from a device."""
        self.copied_s = clock.monotonic()
        self.copied.set()
        if last:
            self.filled.put(None)

    def copy_s(self) -> float:
        """How long the copying took."""
        if self.end is None:
            return self.copied_s - self.begun_s
        return float(self.started.elapsed_time(self.end)) / 1e3


def written(tensor: Any) -> int:
    """How often it was written to, as far as PyTorch counts."""
    return 0 if tensor.is_inference() else int(tensor._version)


def wait_for(event: Any) -> None:
    """By looking now and then. Events that wake who waits for them can be had few at a time: with
    more of them in a stream, all that is sent to the device waits."""
    while not event.query():
        clock.sleep(_LOOK_S)
