"""How a training hears that its machine goes.

SIGTERM, or the file `$TRADEWIND_SAVE`, or the end of the torchrun that has started it: killed, that
tells its workers nothing, and nobody would watch them any more. Whichever comes first. From then on
there is so much time; when it has passed, the process ends, whatever it does: what it saved until
then is saved. A second SIGTERM ends it at once, unless a supervisor looks after it: that kills when
time is up, and until then one end of a machine may be told by several signals, seconds apart (Slurm
signals all processes of a step, and then what its batch script forwards). (Several ranks agree on a
save over a store that torchrun itself keeps, so after its death they end with what they had saved.)

A signal's handler runs when Python next does: never, while the main thread waits for a rank that is
gone. So signals also write into a pipe, which another thread looks at.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakSet

from tradewind.base import clock

GRACE_S = 25.0
"""torchrun kills its workers 30 s after it was asked to end."""
EXIT_CODE = 143
"""128 and SIGTERM: what a process that obeyed it would have."""
_ELASTIC = "TORCHELASTIC_RUN_ID"
"""Set by torchrun."""
_SAME_S = 1.0
"""torchrun and whoever asked it may both send the first signal."""


_here: WeakSet[Notice] = WeakSet()
_installs = count()


@cache
def _forks() -> None:
    """A child never runs with our handler, not even for an instant."""
    masks = threading.local()

    def before() -> None:
        masks.kept = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

    def after() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, masks.kept)

    def in_child() -> None:
        # The newest first: the oldest knows what was there before all of them.
        for each in sorted(_here, key=lambda notice: -notice.installed):
            each.forked()
        after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=in_child)


class Notice:
    def __init__(
        self, save_file: Path | None, *, grace_s: float = GRACE_S, say: Callable[[str], None]
    ) -> None:
        self._file, self._grace_s, self._say = save_file, grace_s, say
        self._at: float | None = None
        self._until = 0.0
        self._before: Any = None
        self._installed = False
        self.installed = 0
        """How many were installed before it."""
        self._pipe: tuple[int, int] | None = None
        self._handled = self._piped = self._signals = 0
        self._signalled_s: float | None = None
        self._parent = os.getppid() if _ELASTIC in os.environ else None

    def install(self) -> None:
        """Only a main thread can have handlers; elsewhere the file has to do."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._handler)
            self._installed, self.installed = True, next(_installs)
            _forks()
            _here.add(self)
            reading, writing = self._pipe = os.pipe()
            os.set_blocking(reading, False)
            os.set_blocking(writing, False)
            before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
            if before != -1:  # somebody's event loop, which needs it more
                signal.set_wakeup_fd(before)

    def remove(self) -> None:
        """In the main thread too, after whoever looks has ended."""
        if self._installed and self._pipe is not None:
            self._installed = False
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)
            now = signal.set_wakeup_fd(-1)
            if now != self._pipe[1]:
                signal.set_wakeup_fd(now)
            for end in self._pipe:
                os.close(end)
            self._pipe = None

    def forked(self) -> None:
        """In a child, which is asked to end for reasons of its own, and shares our pipe."""
        if self._installed:
            self._installed = False
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)

    @property
    def asked(self) -> bool:
        return self._at is not None

    def left_s(self) -> float:
        return self._until - clock.monotonic() if self.asked else 1e9

    def told(self, left_s: float) -> None:
        """Another rank has heard of it."""
        self._begin(left_s, "another process was told")

    def look(self) -> None:
        """From time to time, by another thread: for the file, and whether time is up."""
        if self._at is None and self._file is not None and self._file.exists():
            self._begin(self._said_s(), "the supervisor's file is there")
        if self._parent is not None and os.getppid() != self._parent:
            self._begin(self._grace_s, "torchrun, which started this, is gone")
        if self._pipe is not None:
            with suppress(BlockingIOError):
                self._piped += os.read(self._pipe[0], 64).count(signal.SIGTERM)
            self._counted(self._piped)
        if self._at is not None and clock.monotonic() > self._until:
            os._exit(EXIT_CODE)

    def _said_s(self) -> float:
        """How long there is, as the file says; where there is none, or it is empty, as is usual.
        torchrun, which was asked too, does not wait for longer than that."""
        try:
            told_s = float(json.loads(self._file.read_bytes())["within_s"]) if self._file else 0.0
        except (OSError, ValueError, TypeError, KeyError):
            told_s = 0.0
        if told_s <= 0:
            return self._grace_s
        return min(told_s, self._grace_s) if _ELASTIC in os.environ else told_s

    def _begin(self, left_s: float, why: str) -> None:
        if self._at is None:
            now = clock.monotonic()
            self._until = now + left_s
            self._at = now
            self._say(f"asked to save and to end ({why}); {left_s:.0f} s left")

    def _handler(self, number: int, frame: FrameType | None) -> None:
        self._handled += 1
        self._counted(self._handled)
        if callable(self._before):
            self._before(number, frame)

    def _counted(self, signals: int) -> None:
        """Each signal is counted twice if Python runs, by its handler and through the pipe."""
        if signals <= self._signals:
            return
        self._signals = signals
        now = clock.monotonic()
        if self._signalled_s is None:  # the first, though it may have heard otherwise before
            self._signalled_s = now
            self._begin(self._said_s(), "SIGTERM")
        elif self._file is None and now - self._signalled_s > _SAME_S:
            os._exit(EXIT_CODE)
