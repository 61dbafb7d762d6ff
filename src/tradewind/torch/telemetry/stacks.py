"""Where the main thread is, found twenty times a second: the share of looks that find it in a
collective is the share of time that it waits there.

Twenty seconds have 400 looks, so a share is off by 2.5 points or less, two times in three. A look
costs some microseconds. It sees what Python calls (`all_reduce`, `wait_tensor`, fully_shard's own)
and waits for. Not what PyTorch does inside a backward pass, as DistributedDataParallel: `comms` has
that; and not what a GPU waits for, while Python goes on.
"""

from __future__ import annotations

import sys
from types import FrameType

EVERY_S = 0.05
_DEEP = 8
_COLLECTIVES = (
    "torch/distributed/distributed_c10d.py",
    "torch/distributed/_functional_collectives.py",
    "torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py",
)


class Stacks:
    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._known: dict[str, bool] = {}
        self.looks = self.talking = 0

    def look(self) -> None:
        frame: FrameType | None = sys._current_frames().get(self._thread)
        self.looks += 1
        for _ in range(_DEEP):
            if frame is None:
                return
            name = frame.f_code.co_filename
            found = self._known.get(name)
            if found is None:
                found = self._known[name] = name.replace("\\", "/").endswith(_COLLECTIVES)
            if found:
                self.talking += 1
                return
            frame = frame.f_back
