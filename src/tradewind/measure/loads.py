"""Sends a load to a server: so many clients at once, or an open loop at a rate.

An open loop sends each request when it is due, whether or not others were answered, and latency is
counted from then: a server that falls behind cannot slow down who measures it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tradewind.base import clock
from tradewind.measure.server import Reply

MOST_AT_ONCE = 512  # threads of ours: beyond this we would measure ourselves
Ask = Callable[[float], Reply]
"""Sends one request; it is due at that moment of the stopwatch."""


@dataclass(slots=True)
class Sent:
    """What came of a load. Between `begun_s` and `ended_s` it was as heavy as was asked for."""

    begun_s: float
    ended_s: float = 0.0
    replies: list[Reply] = field(default_factory=list)
    saturated: bool = False  # so many waited at once that no more were sent


def clients(ask: Ask, many: int, requests: int) -> Sent:
    """A closed loop: each client sends its next request when the last one is answered.

    It is as heavy as that until the first client finds nothing left to send.
    """
    sent = Sent(clock.stopwatch())
    lock = threading.Lock()
    left = requests

    def work() -> None:
        nonlocal left
        while True:
            with lock:
                if not left:
                    sent.ended_s = sent.ended_s or clock.stopwatch()
                    return
                left -= 1
            reply = ask(clock.stopwatch())
            with lock:
                sent.replies.append(reply)

    _join([_started(work) for _ in range(many)])
    return sent


def open_loop(ask: Ask, arrivals: Sequence[float]) -> Sent:
    """Requests at these seconds from now, in order (`arrivals`), whatever becomes of them."""
    begun = clock.stopwatch() + 0.05
    moments = [begun + at for at in arrivals]
    sent = Sent(begun, moments[-1])
    lock = threading.Lock()
    threads = []

    def work(due: float) -> None:
        reply = ask(due)
        with lock:
            sent.replies.append(reply)

    for number, due in enumerate(moments):
        pause = due - clock.stopwatch()
        if pause > 0:
            clock.sleep(pause)
        with lock:
            waiting = number - len(sent.replies)
        if waiting >= MOST_AT_ONCE:
            sent.saturated, sent.ended_s = True, moments[number - 1]
            break
        threads.append(_started(lambda due=due: work(due)))  # type: ignore[misc]
    _join(threads)
    return sent


def _started(work: Callable[[], None]) -> threading.Thread:
    # Not waited for when the user interrupts: what is under way is the server's affair.
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _join(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()
