"""On a node: SIGTERM is its notice, when a job is preempted and when its time is nearly up.

How long it has then it cannot ask. A job that is near its time limit has what is left of that; else
it is preempted, and has what its partition gives (`GraceTime`), or what Slurm waits between SIGTERM
and SIGKILL.
"""

from __future__ import annotations

import os

from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.model.secrets import Reference

GRACE, LIMIT = "TRADEWIND_GRACE_S", "TRADEWIND_LIMIT_S"
_KILL_WAIT_S = 30.0
"""Slurm's own default (`KillWait`)."""
_NEAR_S = 240.0
"""Slurm looks at time limits every half minute, and may signal a minute early."""


class Sigterm:
    """A notice by signal."""

    at_risk = False

    def __init__(self, grace_s: float, limit_s: float) -> None:
        self._grace_s = grace_s
        self._limit_at = clock.monotonic() + limit_s if limit_s else None
        self._taken_at: float | None = None

    def heard(self) -> None:
        if self._taken_at is not None:
            return
        now = clock.monotonic()
        self._taken_at = now + self._grace_s
        if self._limit_at is not None and self._limit_at - now < _NEAR_S:
            self._taken_at = self._limit_at

    def __call__(self) -> float | None:
        at = self._taken_at
        return None if at is None else max(at - clock.monotonic(), 0.1)


def _seconds(name: str) -> float:
    try:
        return max(float(os.environ.get(name, "")), 0.0)
    except ValueError:
        return 0.0


class _Aboard:
    def notice(self) -> Sigterm:
        return Sigterm(_seconds(GRACE) or _KILL_WAIT_S, _seconds(LIMIT))

    def secret(self, reference: Reference, *, rented: bool) -> str:
        raise InvalidValue(
            "Slurm keeps no secrets for jobs",
            hint="let the job read it from a file of yours that only you can read",
        )


ABOARD = _Aboard()
