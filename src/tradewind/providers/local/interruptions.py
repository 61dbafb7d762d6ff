"""When spot machines can be had, and when they are taken. Pure: a purchase, `now`, and a seed or a
trace decide, so that whoever asks again is told the same.

On-demand machines come here only in a run that asks for it, because it has no spot ones: else they
can always be had and are never taken.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.providers.base import Refused
from tradewind.providers.local.trace import Trace


class Interruptions(Protocol):
    @property
    def notice_s(self) -> float:
        """How long before it is taken a machine is told; 0: it is not."""

    @property
    def from_work_s(self) -> float:
        """A life counts from when the machine's job works, or from so long after the purchase at
        the latest; 0: from the purchase."""

    def takes_all(self, run_id: str) -> bool:
        """Whether machines of that run are taken on whatever market they were bought."""

    def lives(self, zone: str, machine_ids: Sequence[str], now: float) -> tuple[float | None, ...]:
        """When each machine of a purchase made now will be taken; None: never. Refused while they
        cannot be had."""


class Chaos(Struct, frozen=True):
    """Every machine has a random life of its own, as long on average as is said, and forgetful: an
    old machine is as likely to be taken in the next minute as a new one."""

    mean_life_s: float
    notice_s: float
    seed: int
    from_work_s: float = 0.0
    everywhere: bool = False

    def takes_all(self, run_id: str) -> bool:
        return self.everywhere

    def __post_init__(self) -> None:
        if not 0 < self.mean_life_s < math.inf:
            raise InvalidValue(f"machines cannot live for {self.mean_life_s} s on average")
        _check_notice(self.notice_s)
        _check_notice(self.from_work_s)

    def lives(self, zone: str, machine_ids: Sequence[str], now: float) -> tuple[float, ...]:
        return tuple(now - self.mean_life_s * math.log(self._draw(name)) for name in machine_ids)

    def _draw(self, machine_id: str) -> float:
        """Evenly between 0 and 1, never 0."""
        digest = hashlib.sha256(f"{self.seed}/{machine_id}".encode()).digest()
        return (int.from_bytes(digest[:7], "big") + 1) / (1 << 56)


class Replay(Struct, frozen=True):
    """What really happened in some zones, again and at any speed. Other zones have always room.

    A trace counts how many of the `nodes` machines that were tried could be had. The ranks of a
    purchase queue for them: rank 0 is taken last. Where all that were tried could be had, there is
    room for more. Purchases do not see each other."""

    traces: Mapping[str, Trace]
    """By zone."""
    began_s: float
    """The moment at which the traces stood at `offset_s`, for everyone who replays together."""
    offset_s: float
    speed: float
    """Seconds of the trace in one of ours; the notice is in ours."""
    notice_s: float
    least_s: float = 0.0
    """Nor is what would be taken within so long of ours to be had: it is wanted back already."""
    from_work_s: float = 0.0
    """What was measured is of the world, which does not wait for a job."""

    def takes_all(self, run_id: str) -> bool:
        return False

    def __post_init__(self) -> None:
        if not 0 < self.speed < math.inf:
            raise InvalidValue(f"a trace cannot be replayed at {self.speed} times its speed")
        _check_notice(self.notice_s)

    def lives(self, zone: str, machine_ids: Sequence[str], now: float) -> tuple[float | None, ...]:
        trace = self.traces.get(zone)
        if trace is None:
            return (None,) * len(machine_ids)
        at_s = self.offset_s + (now - self.began_s) * self.speed
        there, wanted = trace.count(at_s), min(len(machine_ids), trace.nodes)
        if there < wanted:
            raise Refused(
                "no_capacity", f"{zone} has {there} of {wanted} spot machines ({trace.trace_id})"
            )
        left_s = [
            trace.until_below(min(rank + 1, trace.nodes), at_s) for rank in range(len(machine_ids))
        ]
        lives = tuple(None if left is None else now + left / self.speed for left in left_s)
        if any(taken_s is not None and taken_s < now + self.least_s for taken_s in lives):
            raise Refused("no_capacity", f"{zone} takes its spot machines back ({trace.trace_id})")
        return lives


def _check_notice(notice_s: float) -> None:
    if not 0 <= notice_s < math.inf:
        raise InvalidValue(f"{notice_s} s is not a valid notice")
