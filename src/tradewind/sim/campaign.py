"""Many seeds through `simulate`, added up.

A seed's outcome depends on nothing but the seed, and what is added up does not depend on how the
seeds were shared out: with one process or several, the same tally. A violation does not end the
campaign, so that one says how common it is; the first seed that showed one is kept.
"""

from __future__ import annotations

import gc
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tradewind.controller import Controller
from tradewind.sim.faults import Outcome, Simulation, simulate
from tradewind.sim.scenario import Scenario

_CHUNK = 50  # seeds that a process is given at once: some tenths of a second
_GC_THRESHOLD = 200_000


@dataclass
class Tally:
    seeds: int = 0
    violations: int = 0
    first_violation_seed: int | None = None
    first_violation: str = ""
    crash_points: int = 0
    faults: int = 0
    by_outcome: Counter[str] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.seeds += 1
        self.crash_points += outcome.crash_points
        self.faults += outcome.faults
        self.by_outcome[outcome.outcome or "not at all"] += 1
        self.by_fault.update(outcome.kinds)
        if outcome.violation:
            self.violations += 1
            self._first(outcome.seed, outcome.violation)

    def merge(self, other: Tally) -> None:
        self.seeds += other.seeds
        self.violations += other.violations
        self.crash_points += other.crash_points
        self.faults += other.faults
        self.by_outcome.update(other.by_outcome)
        self.by_fault.update(other.by_fault)
        if other.first_violation_seed is not None:
            self._first(other.first_violation_seed, other.first_violation)

    def _first(self, seed: int, violation: str) -> None:
        if self.first_violation_seed is None or seed < self.first_violation_seed:
            self.first_violation_seed, self.first_violation = seed, violation


def run(
    seeds: int,
    *,
    first: int = 0,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Tally:
    """Seeds `first` to `first + seeds - 1`, in `jobs` processes."""
    last = first + seeds
    starts = range(first, last, _CHUNK)
    chunks = (range(start, min(start + _CHUNK, last)) for start in starts)
    tally = Tally()
    with _rarely_collecting(), _mapping(min(jobs, len(starts))) as each:
        for part in each(_chunk, chunks):
            tally.merge(part)
            progress(tally.seeds, seeds)
    return tally


def told(seed: int) -> tuple[list[Scenario], Outcome]:
    """What this seed stands for, of each run, and what came of it, with its story: at its beginning
    the same scenarios, as the program would write them."""
    return Simulation(seed, tell=False, make=Controller).scenarios, simulate(seed, tell=True)


@contextmanager
def _mapping(jobs: int) -> Iterator[Callable[..., Iterable[Tally]]]:
    """Something like `map`, over this process or several. These are fresh ones and no forks: a
    progress bar has a thread, and a fork would copy the locks it holds."""
    if jobs == 1:
        yield map
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)


def _chunk(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        tally.add(simulate(seed))
    return tally


@contextmanager
def _rarely_collecting() -> Iterator[None]:
    """A simulation makes much and lives shortly: looking for cycles as often as Python does by
    default, through all that was imported too, takes a tenth to a quarter of the time."""
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD, *threshold[1:])
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        if not frozen:
            gc.unfreeze()
