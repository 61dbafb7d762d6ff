"""What a number of replicas would have meant for a load that was seen. Pure.

Load is in replicas: the work that arrives in a second over the work that one replica does in a
second inside its target. Time is cut in seconds. What arrives and finds no replica free waits at
the front, first come first served, and is late when it waits longer than the target leaves room
for. A replica takes requests `cold_s` after it was ordered, and is paid from the order on; one that
is given up takes no new ones at once, and is paid until the answers that it still gives are done.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Column = NDArray[Any]

PERIOD_S = 10
"""Between two decisions."""
GIVE_UP_S = 120.0
"""Who waits longer at the front is told to come again."""
PATIENT_S = 30.0
"""Who is late anyway waits so long at most behind those who are not, and less where so much waits
that it would have to give up."""
_IN_ALL_S = 0.75 * GIVE_UP_S


@dataclass(frozen=True, slots=True)
class Replicas:
    """What all replicas of a kind have in common."""

    cold_s: int
    """From the order to the first request: machine, image, weights, warming up."""
    slack_s: float
    """What the target leaves for waiting."""
    drain_s: int
    """The longest answers."""
    patient_s: float = 0.0
    """0: first come, first served."""


@dataclass(frozen=True, slots=True)
class Outcome:
    seconds: float
    """Of replicas that are paid."""
    requests: float
    late: float
    lost: float

    @property
    def attainment(self) -> float:
        return 1 - self.late / self.requests if self.requests else 1.0


def outcome(
    load: Column, requests: Column, ordered: Column, kind: Replicas, most_late: float = inf
) -> Outcome:
    """`ordered`: how many there should be, by period; the first of them are there already. Counting
    ends where more than `most_late` requests are late."""
    import numpy as np

    dropped = np.maximum(-np.diff(ordered), 0).sum()
    late, lost = waited(load, requests, ready_of(ordered, kind.cold_s), kind, most_late)
    return Outcome(
        seconds=float(ordered.sum()) * PERIOD_S + float(dropped) * kind.drain_s,
        requests=float(requests.sum()),
        late=late,
        lost=lost,
    )


def waited(
    load: Column, requests: Column, ready: Column, kind: Replicas, most_late: float = inf
) -> tuple[float, float]:
    """Requests that are late, and that wait for nothing, where so many replicas take them by
    period."""
    import numpy as np

    by_second = np.repeat(ready, PERIOD_S)[: len(load)]
    return (_late_last if kind.patient_s else _in_turn)(load, requests, by_second, kind, most_late)


def ready_of(ordered: Column, cold_s: int) -> Column:
    """How many take requests. Orders that are not up yet are taken back first, so those are ready
    that have been wanted all the time that one needs to come up."""
    return _of_last(ordered, -(-cold_s // PERIOD_S) + 1, "min")


def most_of_last(values: Column, periods: int) -> Column:
    return _of_last(values, periods, "max")


def _of_last(values: Column, periods: int, which: str) -> Column:
    """The least or greatest of the last so many, by doubling; before the first was what it is."""
    import numpy as np

    join = np.minimum if which == "min" else np.maximum
    found = values.copy()
    reach = 1
    while reach < periods:
        step = min(reach, periods - reach)
        shifted = np.concatenate([np.full(step, found[0]), found[:-step]])[: len(found)]
        found = join(found, shifted)
        reach += step
    return found


def _in_turn(
    load: Column, requests: Column, ready: Column, kind: Replicas, most_late: float
) -> tuple[float, float]:
    """Requests that wait too long, and for nothing: first come, first served."""
    import numpy as np

    capacity, after = _behind(load, ready)
    before = np.concatenate([[0.0], after[:-1]]) / capacity
    after = after / capacity
    late, lost = (_share(before, after, limit) for limit in (kind.slack_s, GIVE_UP_S))
    return float(requests @ late), float(requests @ lost)


def _late_last(
    load: Column, requests: Column, ready: Column, kind: Replicas, most_late: float
) -> tuple[float, float]:
    """The same where what is late anyway waits for what is not. Second by second where there is too
    much; elsewhere both are the same."""
    import numpy as np

    capacity, behind = _behind(load, ready)
    beyond = np.flatnonzero(behind > kind.slack_s * capacity + 1e-9)
    if not len(beyond):
        return 0.0, 0.0
    usual = max(float(load.sum()), 1e-9) / max(float(requests.sum()), 1e-9)
    coming, asked, room_for = load.item, requests.item, capacity.item
    late = lost = 0.0
    next_ = 0
    while next_ < len(beyond) and late <= most_late:
        at = int(beyond[next_])
        fresh = float(behind[at - 1]) if at else 0.0
        waiting = deque[list[float]]()  # its turn, how much, work of a request, since when
        turn = 0.0
        while at < len(load) and late <= most_late:
            room = full = room_for(at)
            while waiting and at - waiting[0][3] > GIVE_UP_S:
                _, work, one, _ = waiting.popleft()
                lost += work / one
            room = _serve(waiting, room, at)
            fresh += coming(at)
            taken = min(fresh, room)
            fresh -= taken
            _serve(waiting, room - taken, inf)
            too_much = fresh - kind.slack_s * full
            if too_much > 0:
                fresh -= too_much
                one = coming(at) / asked(at) if coming(at) and asked(at) else usual
                late += too_much / one
                spare = _IN_ALL_S - float(behind[at]) / full
                turn = max(turn, at + min(kind.patient_s, max(spare, 0.0)))
                waiting.append([turn, too_much, one, at])
            elif not waiting:
                break
            at += 1
        next_ = int(np.searchsorted(beyond, at, "right"))
    return late, lost


def _serve(waiting: deque[list[float]], room: float, until: float) -> float:
    """Those whose turn is by then; what room is left."""
    while waiting and room > 0 and waiting[0][0] <= until:
        done = min(waiting[0][1], room)
        room -= done
        waiting[0][1] -= done
        if waiting[0][1] <= 1e-12:
            waiting.popleft()
    return room


def _behind(load: Column, ready: Column) -> tuple[Column, Column]:
    """What is done in a second, and what is left at its end."""
    import numpy as np

    capacity = np.maximum(ready, 1e-9).astype(float)
    behind = np.cumsum(load - capacity)
    return capacity, behind - np.minimum(np.minimum.accumulate(behind), 0.0)


def _share(first: Column, last: Column, limit: float) -> Column:
    """Of values spread evenly between two, how many are above."""
    import numpy as np

    low, high = np.minimum(first, last), np.maximum(first, last)
    found: Column = np.clip((high - limit) / np.maximum(high - low, 1e-12), 0.0, 1.0)
    return found
