"""What this process has of its computer, as Linux tells."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class Processor:
    def __init__(self, thread: int) -> None:
        """`thread` is the system's number of the one that trains."""
        self._schedule = Path(f"/proc/self/task/{thread}/schedstat")
        self.cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1

    def busy_s(self) -> float:
        """All of its threads, not its children."""
        taken = os.times()
        return taken.user + taken.system

    def crowded_s(self) -> float | None:
        """How long the training thread could have run, and another process did."""
        with suppress(OSError, ValueError, IndexError):
            return int(self._schedule.read_bytes().split()[1]) / 1e9
        return None

    def memory(self) -> int:
        with suppress(OSError, ValueError, IndexError):
            pages = int(Path("/proc/self/statm").read_bytes().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
        return 0
