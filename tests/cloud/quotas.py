"""How much of something an account may have at once. What counts against which quota is the face's.

Known lie: everybody may have plenty of everything unless a test says otherwise (a new account often
may have no GPU at all), and asking for more is granted by nobody.
"""

from __future__ import annotations

from collections.abc import Mapping

DEFAULT = 100_000.0


class Quotas:
    def __init__(self, known: Mapping[str, str]) -> None:
        self._known = known
        self._set: dict[tuple[str, str], float] = {}

    def put(self, code: str, value: float, region: str = "*") -> None:
        if code not in self._known:
            raise ValueError(f"there is no quota {code!r}; there are {sorted(self._known)}")
        self._set[region, code] = value

    def value(self, region: str, code: str) -> float:
        return self._set.get((region, code), self._set.get(("*", code), DEFAULT))
