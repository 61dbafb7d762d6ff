"""What a test can turn while the equipment runs, and how each request is measured against it.

Capacity is by zone, machine type and market: the most machines of that type that may live there at
once. `*` stands for any; the entry that names most decides, and `*` as a type is a limit for each
type by itself. Without an entry there is always room.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

PLENTY = 10**9


@dataclass
class Fault:
    """The next `count` calls of `action` (`*`: any) are answered so: not carried out, or, with
    `after`, carried out first."""

    action: str
    code: str
    message: str
    status: int
    count: int
    after: bool = False


@dataclass
class Dials:
    """A face may have a subclass with more."""

    capacity: dict[tuple[str, str, str], int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)
    """How many answers of an action get lost: it is carried out, then the line is cut."""
    pace_s: dict[str, float] = field(default_factory=dict)
    """How far apart calls of an action must be, by the equipment's clock; `*`: calls of any."""
    lag_s: float = 0.0
    """For so long a new machine is not listed, and one that ended is listed as it was."""
    pending_s: float = 0.3
    shutting_down_s: float = 0.2
    speed: float = 1.0
    """How fast traces go, and how much shorter notices are."""
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
        known = {each.name for each in fields(self)} - {"capacity", "faults", "lost"}
        for name, value in settings.items():
            if name not in known:
                raise ValueError(f"there is no dial {name!r}; there are {sorted(known)}")
            setattr(self, name, value)
