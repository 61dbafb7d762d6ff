"""A save under way, and one that is done."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from tradewind.base import clock
from tradewind.torch.checkpoint.save import Image
from tradewind.torch.checkpoint.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint of ours that is durable."""

    step: int
    key: str
    folder: Path | None
    bytes: int
    """Of this rank."""
    stage_s: float
    write_s: float
    total_s: float
    """From `save` until all ranks had agreed that it exists."""


class Job:
    """A save under way."""

    def __init__(
        self, number: int, step: int, limit_s: float, *, hurry: bool, waited: bool = False
    ) -> None:
        """`waited`: somebody stands still until it is durable."""
        self.number, self.step, self.limit_s = number, step, limit_s
        self.hurry, self.waited = hurry, waited
        self.begun_s = clock.monotonic()
        self.snapshot: Snapshot
        self.image: Image
        self.free = threading.Event()
        """The arena may be used for another."""
        self.over = threading.Event()
        """It exists, or never will."""
        self.unread = threading.Event()
        """It need not be read back any more: the disk is needed, or the process ends."""
        self.cleared = threading.Event()
        """What it replaces is removed, and it was read back."""

    def left_s(self) -> float:
        return max(0.0, self.begun_s + self.limit_s - clock.monotonic())
