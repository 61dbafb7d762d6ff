"""What a machine costs: the one place where time becomes money."""

from __future__ import annotations


def bill(price_hour: int, seconds: int, step_s: int) -> int:
    """Micro-dollars for a machine that was billed for so long; a step that was begun is paid whole,
    and a fraction of a micro-dollar too."""
    steps = -(-max(seconds, 1) // step_s)
    return -(-price_hour * steps * step_s // 3600)


THRESHOLDS = (50, 80, 100)
"""Percent of a budget, at which something is said."""
