"""I/O as a generator of steps.

Code that must be right wherever it is cut off (a pass of the controller, a beat of a supervisor) is
a generator: it yields what it wants done, a plain value, and is sent the answer, or the error is
thrown into it. Whoever drives it does the work: `run` at once and for real; the simulator in any
order, late, wrongly, or never again.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from tradewind.base.errors import TradewindError

T = TypeVar("T")
Steps = Generator[Any, Any, T]


def run(steps: Steps[T], perform: Callable[[Any], Any]) -> T:
    try:
        step = next(steps)
        while True:
            try:
                answer = perform(step)
            except TradewindError as error:
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as done:
        value: T = done.value
        return value
