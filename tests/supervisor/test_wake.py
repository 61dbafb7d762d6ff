from __future__ import annotations

import subprocess
import sys
import threading
import time

from tradewind.supervisor.wake import Wake

# Handlers that come in the middle of one another, and of everything that the loop does.
_SIGNALS = """
import signal
from tradewind.supervisor.wake import Wake

wake, handled = Wake(), 0

def handler(number, frame):
    global handled
    handled += 1
    wake.set()
    signal.raise_signal(signal.SIGUSR1)

signal.signal(signal.SIGUSR1, lambda number, frame: wake.set())
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
while handled < 2000:
    wake.set()
    wake.wait(0.0002)
signal.setitimer(signal.ITIMER_REAL, 0)
"""


def test_signals_may_come_at_any_moment() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _SIGNALS], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_it_is_waited_for_once() -> None:
    wake = Wake()
    for _ in range(3):
        wake.set()
    wake.wait(60)
    wake.wait(0)  # nothing is left, and nobody waits
    timer = threading.Timer(0.01, wake.set)
    timer.start()
    began = time.monotonic()
    wake.wait(60)
    assert time.monotonic() - began < 50
    timer.join()
