"""Where metrics go besides the folder's own file: TensorBoard, Weights & Biases, MLflow.

Each is written to by one thread and may take its time: nothing waits for it, and what it cannot
take is let go. Rows are thinned for them, as their pages show a thousand points or so: a few each
second, and those that carry telemetry. `metrics.jsonl` has every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

from tradewind.base import clock

Row = dict[str, float]
_MOST_A_FLUSH = 4
_MOST_WAITING = 5000
_FAILURES = 3
_SEEK_S = 2.0


class Sink(Protocol):
    name: str

    def seek(self) -> None:
        """In the main thread, every few seconds: whether there is something to write to."""

    def write(self, rows: Sequence[Row]) -> None:
        """Rows that have a `step`, in order."""

    def close(self) -> None: ...


class Sinks:
    def __init__(self, sinks: Sequence[Sink], warn: Callable[[str], None]) -> None:
        self._sinks, self._warn = list(sinks), warn
        self._failures: dict[str, int] = {}
        self._waiting: deque[Row] = deque(maxlen=_MOST_WAITING)
        self._next_s = 0.0
        self._closed = False

    def put(self, rows: Sequence[Row]) -> None:
        """From whichever thread has read them."""
        if self._sinks:
            self._waiting.extend(rows)

    def seek(self, now_s: float) -> None:
        if self._sinks and now_s >= self._next_s:
            self._next_s = now_s + _SEEK_S
            for sink in self._sinks:
                with suppress(Exception):
                    sink.seek()

    def flush(self) -> None:
        rows = []
        while self._waiting:
            rows.append(self._waiting.popleft())
        if not rows:
            return
        for sink in list(self._sinks):
            try:
                sink.write(thinned(rows))
                self._failures[sink.name] = 0
            except Exception as error:  # whatever their libraries raise, training goes on
                failures = self._failures[sink.name] = self._failures.get(sink.name, 0) + 1
                if failures == 1:
                    self._warn(f"metrics do not reach {sink.name}: {error}")
                if failures == _FAILURES:
                    self._warn(f"metrics go to {sink.name} no more")
                    self._sinks.remove(sink)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.flush()
        for sink in self._sinks:
            with suppress(Exception):
                sink.close()


def thinned(rows: Sequence[Row], most: int = _MOST_A_FLUSH) -> list[Row]:
    """A few, evenly, the last among them; and all that carry telemetry."""
    if len(rows) <= most:
        return list(rows)
    kept = {len(rows) - 1 - round(i * len(rows) / most) for i in range(most)}
    return [
        row
        for number, row in enumerate(rows)
        if number in kept or any(name.startswith("telemetry/") for name in row)
    ]


def now_ms() -> int:
    return round(clock.epoch() * 1000)
