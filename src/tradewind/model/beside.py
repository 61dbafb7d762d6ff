"""What a rented machine is charged for beside its own price. Pure.

How much of it there is, a provider's folder tells (`beside` in providers/cloud.py); what it costs,
the rate card. Plans and runs both reckon by these lines, so that they count the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

MONTH_H = 30 * 24
_SPARE = 1.5


class Beside(Struct, frozen=True, kw_only=True):
    """Of one machine, as it is sold."""

    disk_gb: int = 0
    """Of its disk, for all but checkpoints; 0: the disk is in its price."""
    disk: str = ""
    """The kind of disk, as the rate card calls it, where there are several."""
    addresses: float = 0.0
    """Public ones that are paid for; half a one is one at half its price."""
    workers: int = 1
    """Machines that it is, of which each reports to the store: of a slice there are several."""


NOTHING = Beside()
BesideOf = Callable[[str, str, str, str], Beside]
"""By provider, region, instance type and market."""


def nothing(provider: str, region: str, instance_type: str, market: str) -> Beside:
    return NOTHING


def disk_gb(state_bytes: float, keep: int, nodes: Any, system_gb: Any) -> Any:
    """For the checkpoints that a machine keeps beside those in the store, the one that is being
    written among them, and `system_gb` for all else. One value or a column of them."""
    kept_gb = _SPARE * state_bytes * (keep + 1) / 1e9
    return (kept_gb / nodes + 0.5) // 1 + system_gb


def disk_hour(gb: Any, usd_month: Any) -> Any:
    """Micro-dollars, of a disk at so many dollars for a gigabyte and month."""
    return gb * usd_month * 1_000_000 / MONTH_H
