"""Whether the provider has told that it will take this machine, and what is left until it does.

`Boot.notice` names the source. A path: a file that appears, and may hold the seconds that are left.
Each source is a function without arguments that returns at once: None while there is no notice,
else the seconds that are left, or 0 where it does not say.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path

from tradewind.errors import InvalidValue

Notice = Callable[[], float | None]


def source(named: str) -> Notice:
    if not named:
        return lambda: None
    if "/" not in named:
        raise InvalidValue(f"nobody knows how {named!r} tells that it takes a machine")
    path = Path(named)

    def look() -> float | None:
        try:
            text = path.read_text("utf-8", "replace")
        except OSError:
            return None
        try:
            left_s = float(text)
        except ValueError:
            return 0.0
        return left_s if isfinite(left_s) and left_s > 0 else 0.0

    return look
