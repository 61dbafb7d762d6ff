"""What loader workers do about signals.

A notice of interruption is sent to the whole process group. A worker that dies of it takes the
training down before it could save, so workers take SIGTERM from their own training process only.
Ctrl-C is for the training too, which ends its workers itself. That is so for the workers of every
loader in the process: it may be evaluating, with a loader that we have never seen.
"""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any


class WorkerStart:
    """The worker_init_fn of our loaders, around the user's. `turn`: which of the workers plays the
    first, where a stream goes on in the middle of a round."""

    def __init__(self, theirs: Callable[[int], Any] | None, *, turn: int = 0) -> None:
        self._theirs, self._turn = theirs, turn

    def __call__(self, worker_id: int) -> None:
        import torch

        _shield()
        info = torch.utils.data.get_worker_info()
        if info is not None:
            # People's code knows its own dataset, and shards by the worker's number. It is said to
            # be fixed once it is made, hence this way in.
            worker_id = (worker_id + self._turn) % info.num_workers
            object.__setattr__(info, "dataset", info.dataset.dataset)
            object.__setattr__(info, "id", worker_id)
        if self._theirs is not None:
            self._theirs(worker_id)


class _Shielded:
    """Anybody's worker_init_fn, in a worker that the training's notice does not end."""

    def __init__(self, theirs: Callable[[int], Any] | None) -> None:
        self._theirs = theirs

    def __call__(self, worker_id: int) -> None:
        _shield()
        if self._theirs is not None:
            self._theirs(worker_id)


@cache
def shield_all() -> None:
    """From now on, of every DataLoader of this process."""
    from torch.utils.data import DataLoader

    theirs = DataLoader.__iter__

    @wraps(theirs)
    def __iter__(self: Any) -> Any:  # noqa: N807
        start = self.worker_init_fn
        if not self.num_workers or isinstance(start, WorkerStart):
            return theirs(self)
        self.worker_init_fn = _Shielded(start)
        try:
            with _blocked():
                return theirs(self)
        finally:
            self.worker_init_fn = start

    DataLoader.__iter__ = __iter__


def _shield() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    threading.Thread(target=_listen, name="signals", daemon=True).start()


def _listen() -> None:
    """PyTorch ends workers that hang by SIGTERM, and waits for it to work."""
    while True:
        if signal.sigwaitinfo({signal.SIGTERM}).si_pid == os.getppid():
            os._exit(0)


@contextmanager
def shielded() -> Iterator[None]:
    """Workers that are started inside never see a moment in which SIGTERM would end them."""
    with _blocked(), warnings.catch_warnings():
        # PyTorch has said so when the script's own loader was made.
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


@contextmanager
def _blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
