"""What a check has found. The words are for people; `measured` is for programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

OK, MISSING, WARNING, BROKEN = "ok", "missing", "warning", "broken"
"""Missing: an optional part. Nothing is wrong; `why` is then what it is needed for."""


class Finding(Struct, frozen=True, kw_only=True):
    about: str
    """One of what doctor looks at (upkeep/about.py)."""
    level: str
    what: str
    why: str = ""
    """Why it matters; empty where all is well."""
    todo: str = ""
    measured: dict[str, Any] = {}


class About:
    """Makes findings about one thing."""

    def __init__(self, about: str) -> None:
        self._about = about

    def __call__(
        self,
        level: str,
        what: str,
        why: str = "",
        todo: str = "",
        measured: Mapping[str, Any] | None = None,
    ) -> Finding:
        told = dict(measured or {})
        return Finding(about=self._about, level=level, what=what, why=why, todo=todo, measured=told)
