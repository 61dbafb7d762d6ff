"""A finding of ours, and what to do about an error."""

from __future__ import annotations

from tradewind.base.errors import TradewindError
from tradewind.model.finding import About

found = About("gcp")


def todo(error: TradewindError, otherwise: str) -> str:
    """Its hint, unless that is to run what this is."""
    own = ("doctor gcp", "--print setup-role")
    return otherwise if not error.hint or any(e in error.hint for e in own) else error.hint
