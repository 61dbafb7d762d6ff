"""Whether the provider has told that it will take this machine, and what is left until it does.

`Boot.notice` names the source. A path: a file that appears, and may hold the seconds that are left,
or, as local machines have it, `{"taken_at_s": …}` by this computer's clock. Else the name of a
cloud, whose metadata is asked (providers/NAME/aboard.py).
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, json

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.providers import registry

if TYPE_CHECKING:
    from tradewind.providers.cloud import Notice


class _Taken(Struct):
    taken_at_s: float


def source(named: str) -> Notice:
    if is_rented(named):
        return registry.aboard(named).notice()
    return _File(Path(named) if named else None)


def is_rented(named: str) -> bool:
    """Whether a cloud tells it: then the machine is one of that cloud's."""
    return bool(named) and "/" not in named


class _File:
    at_risk = False

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __call__(self) -> float | None:
        if self._path is None:
            return None
        try:
            text = self._path.read_text("utf-8", "replace")
        except OSError:
            return None
        left_s = _left_s(text)
        return left_s if isfinite(left_s) and left_s > 0 else 0.0


def _left_s(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        at_s = json.decode(text, type=_Taken).taken_at_s
    except UNREADABLE:
        return 0.0
    return max(at_s - clock.now().timestamp(), 0.1)
