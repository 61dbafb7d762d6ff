"""Times as moto and EC2 write them."""

from __future__ import annotations

from datetime import UTC, datetime


def moment(seconds: float) -> datetime:
    """As moto has times: of UTC, and not saying so."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)


def gmt(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S GMT")
