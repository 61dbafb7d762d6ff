"""What a check has found. The words are for people; `measured` is for programs."""

from __future__ import annotations

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
