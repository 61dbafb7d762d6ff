"""Requests that were answered as well as they should be. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tradewind.measure.server import Reply


@dataclass(frozen=True, slots=True)
class Targets:
    """Seconds; None: whatever it is."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def met(self, reply: Reply) -> bool:
        """From when it was due: waiting to be sent counts. An error meets nothing."""
        if reply.error is not None:
            return False
        first, last = reply.arrivals_s[0], reply.arrivals_s[-1]
        each = (last - first) / max(reply.tokens - 1, 1)
        return all(
            limit is None or taken <= limit
            for taken, limit in (
                (first - reply.due_s, self.ttft_s),
                (each, self.tpot_s),
                (last - reply.due_s, self.e2e_s),
            )
        )


@dataclass(frozen=True, slots=True)
class Goodput:
    good: int
    due: int  # sent or not: a load that was broken off is not a smaller load
    seconds: float

    @property
    def attainment(self) -> float:
        return self.good / self.due if self.due else 0.0

    @property
    def requests_per_s(self) -> float:
        return self.good / self.seconds if self.seconds else 0.0


def of(targets: Targets, replies: Iterable[Reply], due: int, seconds: float) -> Goodput:
    return Goodput(sum(map(targets.met, replies)), due, seconds)
