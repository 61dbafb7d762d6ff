"""How others scale, as their documentation and code tell it. Each has one number to be set, which
is set in hindsight to the cheapest that keeps the goal: more than any user of theirs could do.

static    so many, always
hpa       Kubernetes' autoscaler by utilisation: a tolerance of a tenth, down by the most of the
          last five minutes
requests  SkyServe and dstack by requests of a replica over a minute: up and down after the load
          has asked for it so long (300 and 1,200 s are SkyServe's defaults)
knative   concurrency over a minute; over six seconds where that is twice of what there is
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from math import ceil
from typing import TYPE_CHECKING

from tradewind.services.replay import PERIOD_S, Replicas

if TYPE_CHECKING:
    from tradewind.services.replay import Column

Policy = Callable[["Column", float, int, Replicas], Iterator[int]]
"""Load by period, the number that is set, how many there are at first → how many, by period."""
_MINUTE = 60 // PERIOD_S


def static(load: Column, setting: float, start: int, kind: Replicas) -> Iterator[int]:
    most = max(float(load.max()), 1.0)
    for _ in load:
        yield max(ceil(most * setting), 1)


def hpa(load: Column, setting: float, start: int, kind: Replicas) -> Iterator[int]:
    ready, coming, have = start, deque[int](), start
    asked: deque[int] = deque(maxlen=300 // PERIOD_S)
    minute: deque[float] = deque(maxlen=_MINUTE)
    for at, now in enumerate(load.tolist()):
        while coming and coming[0] <= at:
            coming.popleft()
            ready += 1
        minute.append(now)
        used = min(sum(minute) / len(minute) / ready, 1.0)
        near = abs(used / setting - 1) <= 0.1
        want = max(have if near else ceil(ready * used / setting - 1e-9), 1)
        asked.append(want)
        want = want if want >= have else min(max(asked), have)
        while want < have and coming:
            coming.pop()
            have -= 1
        ready, have = ready - max(have - want, 0), min(have, want)
        for _ in range(want - have):
            coming.append(at + -(-kind.cold_s // PERIOD_S))
        have = want
        yield have


def _requests(up_s: int, down_s: int) -> Policy:
    def policy(load: Column, setting: float, start: int, kind: Replicas) -> Iterator[int]:
        have, ups, downs = start, 0, 0
        minute: deque[float] = deque(maxlen=_MINUTE)
        for now in load.tolist():
            minute.append(now)
            want = max(ceil(sum(minute) / len(minute) / setting - 1e-9), 1)
            ups = ups + PERIOD_S if want > have else 0
            downs = downs + PERIOD_S if want < have else 0
            if ups >= up_s or downs >= down_s:
                have, ups, downs = want, 0, 0
            yield have

    return policy


def knative(load: Column, setting: float, start: int, kind: Replicas) -> Iterator[int]:
    have, panics_until = start, -1
    minute: deque[float] = deque(maxlen=_MINUTE)
    for at, now in enumerate(load.tolist()):
        minute.append(now)
        want = max(ceil(sum(minute) / len(minute) / setting - 1e-9), 1)
        sudden = ceil(now / setting - 1e-9)
        if sudden >= 2 * have:
            panics_until = at + _MINUTE
        have = max(want, sudden, have) if at < panics_until else want
        yield have


RIVALS: dict[str, Policy] = {
    "static": static,
    "hpa": hpa,
    "requests-300-1200": _requests(300, 1200),
    "requests-60-600": _requests(60, 600),
    "knative": knative,
}
