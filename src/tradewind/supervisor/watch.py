"""The machine's own clock, as everything on it reckons: seconds since it came up.

`speed` is 1; tests let it run faster, so that the minutes of `model/timing.py` pass in seconds
while processes and files stay real.
"""

from __future__ import annotations

from dataclasses import dataclass

from tradewind.base import clock


@dataclass(frozen=True, slots=True)
class Watch:
    since_s: float
    """By the computer's monotonic clock."""
    speed: float = 1.0

    def uptime_s(self) -> float:
        return self.at_s(clock.monotonic())

    def at_s(self, monotonic_s: float) -> float:
        """What the uptime was at a moment of the computer's monotonic clock."""
        return (monotonic_s - self.since_s) * self.speed

    def monotonic_s(self, uptime_s: float) -> float:
        return self.since_s + uptime_s / self.speed

    def real_s(self, seconds: float) -> float:
        """How long to wait for so many seconds to pass."""
        return seconds / self.speed
