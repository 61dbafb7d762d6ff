"""What a check has found. The words are for people; `measured` is for programs."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

OK, WARNING, BROKEN = "ok", "warning", "broken"


class Finding(Struct, frozen=True, kw_only=True):
    about: str
    """store, credentials, clocks, computer, budgets, runs, orphans"""
    level: str
    what: str
    why: str = ""
    """Why it matters; empty where all is well."""
    todo: str = ""
    measured: dict[str, Any] = {}
