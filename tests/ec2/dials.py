"""What a test can turn while the equipment runs, and how each request is measured against it.

Capacity is by zone, instance type and market: the most machines of that type that may live there at
once. `*` stands for any; the entry that names most decides, and `*` as a type is a limit for each
type by itself. Without an entry there is always room.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PLENTY = 10**9

STATUS = {
    "DryRunOperation": 412,
    "InsufficientInstanceCapacity": 500,  # so boto3 asks again, as with the real one
    "InsufficientCapacity": 500,
    "InternalError": 500,
    "InternalFailure": 500,
    "RequestLimitExceeded": 503,
    "ServiceUnavailable": 503,
    "Unavailable": 503,
    "UnauthorizedOperation": 403,
    "AccessDenied": 403,
}
"""Of errors that are not answered by 400."""


_TURNED = ("lag_s", "iam_lag_s", "group_lag_s", "pending_s", "shutting_down_s", "speed", "body_env")


@dataclass
class Fault:
    """The next `count` calls of `action` (`*`: any) are answered so, and not carried out."""

    action: str
    code: str
    message: str
    status: int
    count: int


@dataclass
class Dials:
    capacity: dict[tuple[str, str, str], int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    """How many answers of an action get lost: it is carried out, then the line is cut."""
    lag_s: float = 0.0
    """For so long a new machine is not listed, and one that ended is listed as it was."""
    iam_lag_s: float = 0.0
    """For so long a launch does not know an instance profile that was given its role just now."""
    group_lag_s: float = 0.0
    """For so long a new placement group is pending, and no launch knows it."""
    pending_s: float = 0.3
    shutting_down_s: float = 0.2
    speed: float = 1.0
    """How fast traces go, and how much shorter notices are."""
    credentials: dict[str, str] = field(default_factory=dict)
    """What the metadata gives as keys of a role: access_key, secret_key, token."""
    body_env: dict[str, str] = field(default_factory=dict)
    """Variables that the user-data of bodies sees besides the usual few."""

    def limit(self, zones: tuple[str, ...], kind: str, market: str) -> int:
        best, found = -1, PLENTY
        for (zone, of_kind, of_market), most in self.capacity.items():
            if zone not in (*zones, "*") or of_kind not in (kind, "*"):
                continue
            if of_market not in (market, "*"):
                continue
            named = sum(part != "*" for part in (zone, of_kind, of_market))
            if named >= best:
                best, found = named, most
        return found

    def fault(self, action: str) -> Fault | None:
        for each in self.faults:
            if each.count > 0 and each.action in (action, "*"):
                each.count -= 1
                return each
        return None

    def loses(self, action: str) -> bool:
        left = self.lost.get(action, 0)
        if left > 0:
            self.lost[action] = left - 1
        return left > 0

    def turn(self, **settings: Any) -> None:
        for name, value in settings.items():
            if name not in _TURNED:
                raise ValueError(f"there is no dial {name!r}")
            setattr(self, name, value)
