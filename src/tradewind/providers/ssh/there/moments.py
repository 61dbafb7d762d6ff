"""Clocks of a host: they tell how long something took, and never when it was."""

from __future__ import annotations

import time
from pathlib import Path


def wall() -> float:
    return time.time()  # noqa: TID251 -- none of Tradewind is here


def since_boot() -> float:
    """While the host sleeps it goes on."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def sleep(seconds: float) -> None:
    time.sleep(seconds)  # noqa: TID251


def boot_id() -> str:
    """Another after each start of the host."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""
