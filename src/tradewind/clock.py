"""The only door through which wall time, ids and randomness enter.

Code in the middle takes `now`, `today` or a generator as an argument; code at the rim reads them
here and passes them in. The linter bans the standard library's own doors everywhere else.
"""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random


def now() -> datetime:
    return datetime.now(UTC)


def today() -> date:
    return now().date()


def stopwatch() -> float:
    """Seconds from an arbitrary start: for differences only, never for dates."""
    return time.perf_counter()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def new_id(prefix: str) -> str:
    """A fresh id that sorts by creation time: `run-0199f0c2a4b7-5e1d9c`."""
    import secrets

    return f"{prefix}-{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(3)}"


def generator(seed: int | None = None) -> random.Random:
    """A random generator; without a seed, one that nobody can repeat."""
    import random

    return random.Random(seed)
