"""How far a download is, on a terminal as one line that changes, elsewhere as a line now and then:
logs are read later, by people who want to know where the time went."""

from __future__ import annotations

import sys
import threading
from typing import TextIO

from tradewind.base import clock
from tradewind.torch.data.words import Say, sized

_TERMINAL_S, _LINE_S = 0.2, 30.0


class Progress:
    def __init__(self, name: str, say: Say, *, stream: TextIO | None = None) -> None:
        self._name, self._say = name, say
        self._stream = sys.stderr if stream is None else stream
        self._terminal = bool(getattr(self._stream, "isatty", lambda: False)())
        self._began = self._last = clock.monotonic()
        self._lock = threading.Lock()
        self._first: int | None = None
        self._done = 0
        self._drawn = 0

    def __call__(self, done: int, size: int | None) -> None:
        with self._lock:
            if self._first is None:
                self._first = done
            self._done = done
            now_s = clock.monotonic()
            if now_s - self._last < (_TERMINAL_S if self._terminal else _LINE_S):
                return
            self._last = now_s
            words = f"{self._name}: {self._words(done, size, now_s)}"
        if self._terminal:
            self._draw(words)
        else:
            self._say(words)

    def _words(self, done: int, size: int | None, now_s: float) -> str:
        speed = (done - (self._first or 0)) / max(now_s - self._began, 1e-9)
        words = sized(done)
        if size:
            words += f" of {sized(size)} ({100 * done // size} %)"
        words += f", {sized(int(speed))}/s"
        if size and speed > 0:
            words += f", {(size - done) / speed:.0f} s left"
        return words

    def _draw(self, words: str) -> None:
        self._stream.write("\r" + words + " " * (self._drawn - len(words)))
        self._stream.flush()
        self._drawn = len(words)

    def done(self, what: str) -> None:
        """The last line, which stays."""
        taken_s = max(clock.monotonic() - self._began, 1e-3)
        fresh = self._done - (self._first or 0)
        if self._terminal and self._drawn:
            self._draw("")
            self._stream.write("\r")
            self._stream.flush()
        self._say(
            f"{self._name}: {sized(self._done)} in {taken_s:.1f} s"
            f" ({sized(int(fresh / taken_s))}/s){what}"
        )
