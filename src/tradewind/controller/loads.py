"""What a service's front has seen, by periods, for as long as its rule looks back.

Kept in the store by the hour, so that another controller, or the same one after it was killed, need
not begin to learn again. A period in which the front did not answer is as the one before it.
"""

from __future__ import annotations

from msgspec import Struct, json

from tradewind.base.decoding import decoder
from tradewind.services.counting import load_of
from tradewind.services.replay import PERIOD_S
from tradewind.services.scaling import BACK_S
from tradewind.services.seen import FrontSeen

_MOST = BACK_S // PERIOD_S
HOUR = 3600 // PERIOD_S
_RECENT, _WEIGHT = 6, 0.05


class Kept(Struct):
    """One hour in the store; periods are counted since 1970."""

    first: int
    load: list[float]
    requests: list[float]
    replicas: list[int] = []
    """How many answered."""


decode = decoder(Kept)


class Loads:
    def __init__(self) -> None:
        self._first = 0
        self._load: list[float] = []
        self._requests: list[float] = []
        self._replicas: list[int] = []
        self._period = 0
        self._sum, self._count, self._asked, self._now = 0.0, 0, 0.0, 0.0
        self._ready = 0
        self._total: int | None = None
        self._answer_s, self._rate = 0.0, 0.0

    def add(self, front: FrontSeen | None, at_once: int, at_s: float) -> None:
        """A look, at this moment of the wall clock."""
        period = int(at_s // PERIOD_S)
        if not self._period or period < self._period:
            self._period = period  # the first look, or the clock was set back
            self._first = period - len(self._load)
        while self._period < period:
            self._close()
        if front is None:
            return
        self._ready = len(front.up)
        if self._total is not None and front.total > self._total:
            self._asked += front.total - self._total
        self._total = front.total
        self._took(front)
        self._now = load_of(front, at_once, self._answer_s, self._rate)
        self._sum += self._now
        self._count += 1

    def _took(self, front: FrontSeen) -> None:
        """By what was answered and how many were at work, while nobody waits: an answer's time. By
        what has come in the last whole period: the rate."""
        recent = self._requests[-_RECENT:]
        self._rate = self._requests[-1] / PERIOD_S if self._requests else 0.0
        if front.queued or front.held or not front.current or not sum(recent):
            return
        now = front.current * len(recent) * PERIOD_S / sum(recent)
        self._answer_s += (now - self._answer_s) * (_WEIGHT if self._answer_s else 1.0)

    def _close(self) -> None:
        before = self._load[-1] if self._load else 0.0
        self._load.append(round(self._sum / self._count, 4) if self._count else before)
        self._requests.append(self._asked)
        self._replicas.append(self._ready)
        self._sum, self._count, self._asked = 0.0, 0, 0.0
        self._period += 1
        if len(self._load) > _MOST:
            for each in (self._load, self._requests, self._replicas):
                del each[: len(each) - _MOST]
        self._first = self._period - len(self._load)

    @property
    def load(self) -> tuple[float, ...]:
        """By period; the last one is what is there now."""
        return (*self._load, self._now) if self._period else ()

    @property
    def requests(self) -> tuple[float, ...]:
        return (*self._requests, self._asked) if self._period else ()

    def hour(self, at_s: float) -> tuple[int, bytes] | None:
        """Of the hour that it is, as it is kept; None where nothing was seen in it."""
        hour = int(at_s // 3600)
        since = max(hour * HOUR - self._first, 0)
        if since >= len(self._load):
            return None
        kept = Kept(
            self._first + since,
            self._load[since:],
            self._requests[since:],
            self._replicas[since:],
        )
        return hour, json.encode(kept)

    def restore(self, hours: list[bytes], at_s: float) -> None:
        """Before the first look: as far as it can be read. In hours that miss nobody looked."""
        now = int(at_s // PERIOD_S)
        for data in hours:
            kept = decode(data)
            if kept is None or not len(kept.load) == len(kept.requests) <= HOUR:
                continue
            if kept.first < now - _MOST or kept.first + len(kept.load) > now:
                continue
            gap = kept.first - (self._first + len(self._load)) if self._load else 0
            if gap < 0:
                continue
            if not self._load:
                self._first = kept.first
            ready = [*kept.replicas, *[0] * len(kept.load)][: len(kept.load)]
            self._load += [self._load[-1] if self._load else 0.0] * gap + kept.load
            self._requests += [0.0] * gap + kept.requests
            self._replicas += [0] * gap + ready
        if self._load:
            self._period = self._first + len(self._load)
