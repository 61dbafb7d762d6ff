"""The store on a thread of its own, so that a call which hangs holds up nothing but the next call.

A `Channel` does one step at a time, in order: no heartbeat can overtake an older one. An `Exchange`
drives a generator of steps (beat.py) over it without ever waiting: `go_on` tells whether it has
come to its end, or an answer is still to come. What takes too long fails with SourceFailed; the
channel stays busy until the call has really ended, and what is asked of it meanwhile fails at once.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

from tradewind.base.errors import NotFound, SourceFailed, TradewindError
from tradewind.base.steps import Steps
from tradewind.store.base import Store
from tradewind.store.steps import performer


class _Answer:
    __slots__ = ("done", "error", "value")

    def __init__(self) -> None:
        self.done = False
        self.value: Any = None
        self.error: TradewindError | None = None


class Channel:
    def __init__(self, store: Store, wake: Callable[[], None]) -> None:
        """`wake` is called from the channel's thread whenever an answer has come."""
        self._perform = performer(store)
        self._wake = wake
        self._asked: queue.SimpleQueue[tuple[Any, _Answer] | None] = queue.SimpleQueue()
        self._last: _Answer | None = None
        threading.Thread(target=self._work, name="store", daemon=True).start()

    @property
    def busy(self) -> bool:
        return self._last is not None and not self._last.done

    def ask(self, step: Any) -> _Answer:
        assert not self.busy
        self._last = answer = _Answer()
        self._asked.put((step, answer))
        return answer

    def close(self) -> None:
        self._asked.put(None)

    def _work(self) -> None:
        while (asked := self._asked.get()) is not None:
            step, answer = asked
            try:
                answer.value = self._perform(step)
            except (NotFound, SourceFailed) as error:
                answer.error = error
            except Exception as error:
                # No right to write, a full disk, a bug: whatever it is, the store is out of reach.
                answer.error = SourceFailed(f"{type(error).__name__}: {error}")
            answer.done = True
            self._wake()


class Exchange:
    def __init__(self, steps: Steps[None], channel: Channel, until_s: float) -> None:
        self._steps, self._channel, self._until_s = steps, channel, until_s
        self._answer: _Answer | None = None
        self._begun = False

    def go_on(self, uptime_s: float) -> bool:
        try:
            if not self._begun:
                self._begun = True
                self._ask(next(self._steps))
            while True:
                answer = self._answer
                if answer is None:
                    busy = SourceFailed("the store has not answered the last question yet")
                    self._ask(self._steps.throw(busy))
                elif not answer.done:
                    if uptime_s < self._until_s:
                        return False
                    late = SourceFailed("the store took too long to answer")
                    self._ask(self._steps.throw(late))
                elif answer.error is not None:
                    self._ask(self._steps.throw(answer.error))
                else:
                    self._ask(self._steps.send(answer.value))
        except StopIteration:
            return True

    def drop(self) -> None:
        """As if we had been cut off here: an answer that comes later is nobody's."""
        self._steps.close()

    def _ask(self, step: Any) -> None:
        self._answer = None if self._channel.busy else self._channel.ask(step)
