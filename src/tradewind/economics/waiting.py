"""How long jobs wait for machines of one's own: a queue of the kind M/G/k.

`expected` is Sakasegawa's approximation with the correction of Allen and Cunneen for jobs whose
length varies: jobs that want several accelerators make servers of their size. `replayed` puts the
jobs that were drawn through such a cluster, first come, first served: it knows of office hours and
of large jobs that block small ones, which the formula does not.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from tradewind.economics.use import MONTH_H, Job, Use


def load(jobs: Sequence[Job]) -> float:
    """Accelerators that are busy on average."""
    return sum(job.hours_month for job in jobs) / MONTH_H


def expected(jobs: Sequence[Job], accelerators: float, share: float = 1.0) -> float:
    """Mean hours of waiting, for accelerators that are up for `share` of the time; infinite where
    more comes than can be done."""
    busy = load(jobs)
    if not jobs or busy <= 0:
        return 0.0
    able = accelerators * share
    if busy >= able or accelerators < max(job.accelerators for job in jobs):
        return math.inf
    work = sum(job.hours_month for job in jobs)
    size = sum(job.accelerators * job.hours_month for job in jobs) / work
    rate = sum(job.per_month * job.accelerators / size for job in jobs)
    mean = work / size / rate
    square = sum(job.per_month * job.accelerators / size * job.hours**2 for job in jobs) / rate
    varied, servers, rho = (1 + (square / mean**2 - 1)) / 2, able / size, busy / able
    root = math.sqrt(2 * (servers + 1)) - 1
    return float(varied * mean * rho**root / (servers * (1 - rho)))


def replayed(use: Use, accelerators: float) -> float | None:
    """Mean hours of waiting of the jobs that were drawn; None where none were."""
    if not use.starts:
        return None
    if accelerators < max(job.accelerators for job in use.jobs):
        return math.inf
    free, waited, now = accelerators, 0.0, 0.0
    running: list[tuple[float, float]] = []
    for come, number in use.starts:
        job = use.jobs[number]
        now = max(now, come)  # nobody overtakes who came before
        while running and running[0][0] <= now:
            free += heapq.heappop(running)[1]
        while free < job.accelerators:
            now, back = heapq.heappop(running)
            free += back
        waited += now - come
        free -= job.accelerators
        heapq.heappush(running, (now + job.hours, job.accelerators))
    return waited / len(use.starts)


def enough(jobs: Sequence[Job], each: float, most_h: float, share: float = 1.0) -> int:
    """The fewest machines of `each` accelerators with which jobs wait no longer than `most_h` on
    average."""
    largest = max(job.accelerators for job in jobs)
    number = max(math.ceil(largest / each), math.ceil(load(jobs) / each / share), 1)
    while expected(jobs, number * each, share) > most_h:
        number += 1
    return number
