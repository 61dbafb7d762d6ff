"""Whether the provider has told that it will take this machine, and what is left until it does.

`Boot.notice` names the source. A path: a file that appears, and may hold the seconds that are left,
or, as local machines have it, `{"taken_at_s": …}` by this computer's clock.
Each source is a function without arguments that returns at once: None while there is no notice,
else the seconds that are left, or 0 where it does not say.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, json

from tradewind import clock
from tradewind.errors import InvalidValue

Notice = Callable[[], float | None]


class _Taken(Struct):
    taken_at_s: float


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
        left_s = _left_s(text)
        return left_s if isfinite(left_s) and left_s > 0 else 0.0

    return look


def _left_s(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        at_s = json.decode(text, type=_Taken).taken_at_s
    except (DecodeError, ValidationError):
        return 0.0
    return max(at_s - clock.now().timestamp(), 0.1)
