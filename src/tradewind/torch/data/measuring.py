"""How fast a dataset gives batches: in this process, and with workers. About two seconds in all.

Random numbers are put back afterwards, so that measuring changes nothing that is trained.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from tradewind.base import clock
from tradewind.torch.data.choice import Probe, Trial
from tradewind.torch.feeds import seeding
from tradewind.torch.feeds.order import permutation

_PROBE_S, _TRIAL_S = 0.5, 0.3
TRIALS_S = 2.0
"""In all: no further one is begun after it."""
_PROBE_MOST, _TRIAL_MOST = 50, 200
LONGEST_STEP_S = 0.05
"""Longer ones are not waited for in trials: they give a loader all the time it needs."""
SLOWEST_S = 0.3
"""A batch that takes longer is not tried with workers: nothing would be known after two seconds."""


class Samples:
    """Numbers of samples to measure with, each once as long as there are some: what was read
    before is in memory, and comes too fast."""

    def __init__(self, dataset: Any, batch: int) -> None:
        self._size, self._batch = len(dataset), batch
        if hasattr(dataset, "tradewind_order"):  # in its own order: anywhere else costs a download
            self._order = dataset.tradewind_order(0, 0, ranks=1, batch=batch, shuffle=False)
        else:
            self._order = permutation(self._size, 0, 0)
        self._at = 0

    def batches(self) -> Iterator[list[int]]:
        while True:
            if self._at + self._batch > self._size:
                self._at = 0
            found = self._order[self._at : self._at + self._batch]
            self._at += self._batch
            yield found.tolist() if hasattr(found, "tolist") else list(found)


def probe(batches: Iterator[Any]) -> Probe | None:
    """Of an iterator that makes a batch in this process; None: it makes none."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a worker
    walls: list[float] = []
    runs: list[float] = []
    queues: list[float] = []
    last: Any = None
    try:
        with seeding.aside():
            if next(batches, None) is None:  # the first one opens files, and does not count
                return None
            until = clock.stopwatch() + _PROBE_S
            while len(walls) < _PROBE_MOST and (not walls or clock.stopwatch() < until):
                wall, (ran, queued) = clock.stopwatch(), _busy_s()
                batch = next(batches, None)
                if batch is None:
                    break
                walls.append(clock.stopwatch() - wall)
                after = _busy_s()
                queues.append(after[1] - queued)
                runs.append(after[0] - ran)
                last = batch
    finally:
        torch.set_num_threads(threads)
    if not walls:
        return None
    usual = max(1e-6, sum(walls) / len(walls))
    by_time = sorted(walls)
    slow, middle = by_time[int(0.95 * (len(walls) - 1))], by_time[len(walls) // 2]
    uneven = slow / max(1e-6, middle)
    ran_s = min(usual, sum(runs) / len(runs))
    queued_s = min(usual - ran_s, sum(queues) / len(queues))
    return Probe(usual, ran_s + queued_s, queued_s, size_of(last), uneven)


def _busy_s() -> tuple[float, float]:
    """How long this thread was on the processor, and how long it was ready for it: on a busy
    machine a computation must not look as if it waited for a disk."""
    try:
        with open("/proc/thread-self/schedstat") as stream:  # noqa: PTH123 -- thrice as fast
            queued_s = int(stream.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        queued_s = 0.0
    return time.thread_time(), queued_s


def made(dataset: Any, samples: Samples, collate: Callable[[Any], Any]) -> Iterator[Any]:
    """Batches as a loader without workers makes them."""
    many = getattr(dataset, "__getitems__", None)
    for numbers in samples.batches():
        yield collate(many(numbers) if callable(many) else [dataset[each] for each in numbers])


class Ending:
    """A batch sampler that can be ended early: what workers have begun is taken then, and none is
    cut off while it sends a batch, of which it would print a traceback."""

    def __init__(self, batches: Iterable[Any]) -> None:
        self._batches, self._over = batches, False

    def __iter__(self) -> Iterator[Any]:
        for each in self._batches:
            if self._over:
                return
            yield each

    def end(self, batches: Iterator[Any]) -> None:
        """Of the loader's own."""
        self._over = True
        for _ in batches:
            pass


def trial(
    dataset: Any, workers: int, samples: Samples, options: dict[str, Any], step_s: float = 0.0
) -> Trial:
    """With so many workers, once all of them are at it. `step_s` is waited for after each batch, as
    for a GPU: being woken up for every batch has its price on a busy machine."""
    from torch.utils.data import DataLoader

    sampler = Ending(list(islice(samples.batches(), 4 * workers + _TRIAL_MOST)))
    with seeding.aside(), unwarned():
        loader = DataLoader(dataset, batch_sampler=sampler, num_workers=workers, **options)
        batches = iter(loader)
        for _ in range(workers + 1):
            next(batches)
        began, cpu, count = clock.stopwatch(), time.thread_time(), 0
        for _ in batches:
            count += 1
            if step_s:
                clock.sleep(step_s)
            taken_s = clock.stopwatch() - began
            if taken_s > _TRIAL_S and (count >= 2 * workers or taken_s > 3 * _TRIAL_S):
                break
        taken_s = max(clock.stopwatch() - began, 1e-6)
        taking_s = (time.thread_time() - cpu) / max(1, count)
        sampler.end(batches)
    return Trial(workers, taken_s / max(1, count), taking_s, paced=step_s > 0)


@contextmanager
def unwarned() -> Iterator[None]:
    """PyTorch warns of more workers than cores; those that wait for a store need them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


def size_of(batch: Any, depth: int = 5) -> int:
    """Bytes of its tensors."""
    if hasattr(batch, "element_size"):
        return int(batch.numel() * batch.element_size())
    if hasattr(batch, "nbytes"):
        return int(batch.nbytes)
    inside = batch.values() if isinstance(batch, dict) else batch
    if depth and isinstance(batch, dict | list | tuple):
        return sum(size_of(each, depth - 1) for each in inside)
    return len(batch) if isinstance(batch, str | bytes) else 8
