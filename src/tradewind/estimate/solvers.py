"""scipy's solvers, which only fitting needs."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import MissingExtra


def optimize() -> Any:
    """`scipy.optimize`, or the extra to install."""
    try:
        import scipy.optimize
    except ImportError:
        raise MissingExtra(
            "calibrating needs scipy", hint="pip install 'tradewind[calibrate]'"
        ) from None
    return scipy.optimize
