"""Whether the provider has told that it will take this machine, and what is left until it does.

`Boot.notice` names the source. A path: a file that appears, and may hold the seconds that are left,
or, as local machines have it, `{"taken_at_s": …}` by this computer's clock. `aws`: EC2's metadata.
Each source is called without arguments and returns at once: None while there is no notice, else the
seconds that are left, or 0 where it does not say. `at_risk` says that one is likely, by its
provider's own word.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Protocol

from msgspec import Struct, json

from tradewind import clock
from tradewind.decoding import UNREADABLE
from tradewind.errors import InvalidValue


class Notice(Protocol):
    @property
    def at_risk(self) -> bool: ...

    def __call__(self) -> float | None: ...


class _Taken(Struct):
    taken_at_s: float


def source(named: str) -> Notice:
    if is_rented(named):
        from tradewind.supervisor.metadata import Ec2

        return Ec2()
    if named and "/" not in named:
        raise InvalidValue(f"nobody knows how {named!r} tells that it takes a machine")
    return _File(Path(named) if named else None)


def is_rented(named: str) -> bool:
    """Whether a provider's metadata service tells it: then the machine is one of a cloud."""
    return named == "aws"


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
