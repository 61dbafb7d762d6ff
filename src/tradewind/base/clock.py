"""The only door through which wall time, ids and randomness enter.

Code in the middle takes `now`, `today` or a generator as an argument; code at the rim reads them
here and passes them in. The linter bans the standard library's own doors everywhere else.

`$TRADEWIND_NOW` (an ISO date or time) holds the wall clock still, so that an answer that depends on
the day, such as what is stale, can be had again.
"""

from __future__ import annotations

import os
import time
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue

if TYPE_CHECKING:
    import random


def now() -> datetime:
    held = os.environ.get("TRADEWIND_NOW")
    if not held:
        return datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(held)
    except ValueError:
        raise InvalidValue(
            f"TRADEWIND_NOW is {held!r}, which is no date or time", hint="for example 2026-11-15"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def today() -> date:
    return now().date()


stopwatch = time.perf_counter
"""Seconds from an arbitrary start: for differences only, never for dates. Itself, and no function
around it, as the loops of trainings ask it several times a step."""


def epoch() -> float:
    """Seconds since 1970, to tell how long ago something was across processes of one computer.
    `$TRADEWIND_NOW` does not hold it: waiting goes on."""
    return time.time()


def monotonic() -> float:
    """Seconds of this computer's own clock, which all its processes share: for its uptime."""
    return time.monotonic()


def sleep(seconds: float) -> None:
    time.sleep(seconds)


def new_id(prefix: str) -> str:
    """A fresh id that sorts by creation time: `run-0199f0c2a4b7-5e1d9c`."""
    import secrets

    return f"{prefix}-{time.time_ns() // 1_000_000:012x}-{secrets.token_hex(3)}"


def secret(size: int) -> bytes:
    """Bytes that nobody can guess."""
    import secrets

    return secrets.token_bytes(size)


def generator(seed: int | None = None) -> random.Random:
    """A random generator; without a seed, one that nobody can repeat."""
    import random

    return random.Random(seed)
