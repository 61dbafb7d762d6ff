"""Many questions at once, and no longer than one's patience."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from tradewind.base import clock
from tradewind.base.errors import TradewindError

T = TypeVar("T")


def within(patience_s: float, jobs: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """What they answer, all at once; those that take longer, or fail, are not there. A bug is
    raised here, and does not die with its thread."""
    found: dict[str, T] = {}
    bugs: list[Exception] = []

    def do(name: str) -> None:
        try:
            found[name] = jobs[name]()
        except TradewindError:
            pass
        except Exception as error:
            bugs.append(error)

    # Not a pool of the standard library: that would wait, at exit, for what we have given up.
    threads = [threading.Thread(target=do, args=(name,), daemon=True) for name in jobs]
    for thread in threads:
        thread.start()
    until = clock.monotonic() + patience_s
    for thread in threads:
        thread.join(max(until - clock.monotonic(), 0))
    if bugs:
        raise bugs[0]
    return dict(found)  # what comes later is not looked at
