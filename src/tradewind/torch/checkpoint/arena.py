"""The memory that tensors are copied into: one piece, as long as the rank's file and laid out like
it, so that nothing is copied again to be written.

For a GPU it is registered with the driver, or copies would not run by themselves. That takes
seconds for tens of gigabytes, so a thread does it ahead of the first save, a chunk at a time:
between chunks the driver is free for training.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
"""Python's own choice is memory that can be shared, and for that there are no huge pages."""
CHUNK = 128 << 20
"""No copy may cross a border between two registered chunks."""
_HUGE = 2 << 20
_TOUCHERS = 4
_POPULATE_WRITE = 23  # of madvise, since Linux 5.14: pages come into being with what they hold


class Arena:
    """`device` is the GPU that copies into it, or None."""

    def __init__(self, size: int, device: Any) -> None:
        import torch

        unit = CHUNK if device is not None else _HUGE
        self.size = max(unit, -(-size // unit) * unit)
        self._map = mmap.mmap(-1, self.size + _HUGE, flags=PRIVATE)
        # Begins on a border of a huge page: there are 512 times fewer of those to be pinned.
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._skip = -address % _HUGE
        self.address = address + self._skip
        # A process that is forked, as for loading data, does not get it: pinned pages would have
        # to be copied for it at once, all of them.
        for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
            with suppress(OSError, AttributeError):
                self._map.madvise(getattr(mmap, advice))
        whole = torch.frombuffer(self._map, dtype=torch.uint8)
        self.tensor: Any = whole[self._skip : self._skip + self.size]
        self.memory = memoryview(self._map)[self._skip : self._skip + self.size]
        self.pinned = 0
        """Bytes from the start."""
        self.trouble = ""
        self.ready = threading.Event()
        self._closed = False
        self._device = device
        if device is None:
            self.ready.set()
        threading.Thread(target=self._make, name="tradewind-arena", daemon=True).start()

    def stop(self, timeout_s: float) -> None:
        """No more is pinned than is by now."""
        self._closed = True
        self.ready.wait(timeout_s)

    def close(self) -> None:
        self.stop(30)
        if self.pinned:
            import torch

            torch.cuda.synchronize()
            for at in range(0, self.pinned, CHUNK):
                torch.cuda.cudart().cudaHostUnregister(self.address + at)
            self.pinned = 0

    def _make(self) -> None:
        """Pages come into being by several threads at once, and only then are registered."""

        def touch(at: int) -> None:
            # By ctypes, which lets other threads run. An older kernel refuses: then it is slower.
            size = ctypes.c_size_t(min(CHUNK, self.size - at))
            libc.madvise(ctypes.c_void_p(self.address + at), size, _POPULATE_WRITE)

        try:
            libc = ctypes.CDLL(None)
            with ThreadPoolExecutor(_TOUCHERS) as pool:
                touched = [pool.submit(touch, at) for at in range(0, self.size, CHUNK)]
                for number, done in enumerate(touched):
                    done.result()
                    if self._closed or (self._device and not self._pin(number * CHUNK)):
                        pool.shutdown(wait=False, cancel_futures=True)
                        return
        except Exception as error:
            self.trouble = str(error)
        finally:
            self.ready.set()

    def _pin(self, at: int) -> bool:
        import torch

        if not at:
            torch.cuda.set_device(self._device)
        code = int(torch.cuda.cudart().cudaHostRegister(self.address + at, CHUNK, 1))
        if code:
            self.trouble = f"cudaHostRegister failed with {code}"
            return False
        self.pinned = at + CHUNK
        return True
