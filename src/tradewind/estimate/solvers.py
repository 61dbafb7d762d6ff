"""scipy's solvers, which only fitting needs."""

from __future__ import annotations

from typing import Any

from tradewind.base.errors import MissingExtra


def optimize() -> Any:
    """`scipy.optimize`, or the extra to install."""
    try:
        import scipy.optimize
    except ImportError:
        raise _missing() from None
    return scipy.optimize


def sparse() -> Any:
    """`scipy.sparse`, or the extra to install."""
    try:
        import scipy.sparse
    except ImportError:
        raise _missing() from None
    return scipy.sparse


def _missing() -> MissingExtra:
    return MissingExtra("calibrating needs scipy", hint="pip install 'tradewind[calibrate]'")
