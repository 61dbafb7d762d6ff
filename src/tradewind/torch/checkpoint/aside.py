"""Copies of tensors on their own device, which is a hundred times as fast as copying them to the
computer's memory: what is copied so is out of training's way at once.

Small tensors are gathered in one piece, laid out as the file is, and leave the device in one copy.
Large ones are cloned, where the device has memory to spare. That memory is the training's: it is
taken for the second that a save needs to leave the device, and lies idle after that in a pool from
which PyTorch serves the training rather than run out of memory. A pool, because memory that was
just given back would be cut up by the next allocation, and the driver takes 60 ms to get it back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tradewind.torch.checkpoint.layout import Entry, Layout

Sources = list[tuple[Entry, Any]]
_SPARED, _SPARED_SHARE = 2 << 30, 0.02
"""What is left free: others than PyTorch need memory too, and cannot have the pool's."""


class Gathered:
    """The small entries of a layout that are on the device, which lie together."""

    def __init__(self, layout: Layout, entries: Sequence[Entry], device: Any) -> None:
        import torch

        self.first, self.last = entries[0].at, layout.small_bytes
        self.space = torch.zeros(self.last - self.first, dtype=torch.uint8, device=device)
        self._views = _views(self.space, self.first, entries)
        frames = [(at, data) for at, data in layout.frames if self.first <= at < self.last and data]
        held = bytearray(b"".join(data for _, data in frames))
        told = torch.frombuffer(held, dtype=torch.uint8)
        if told.device != torch.device(device):  # from pinned memory, or training would wait for it
            told = told.pin_memory().to(device, non_blocking=True)
        parts = told.split([len(data) for _, data in frames])
        begin = self.first
        torch._foreach_copy_(
            [self.space[at - begin : at - begin + len(data)] for at, data in frames], list(parts)
        )

    def gather(self, sources: Mapping[int, Any]) -> None:
        """By the stream that trains; sources by the id of their entry."""
        _copy(self._views, sources)


def small(layout: Layout, device: Any) -> Gathered | None:
    """For those so small that room need not be asked for: hundreds of copies become one."""
    entries = [e for e in layout.entries if e.part.small and e.part.device != "cpu"]
    return Gathered(layout, entries, device) if entries else None


class Room:
    """Memory for clones of the entries at the end of a layout. Once training has had to take some
    of it, it is not used any more, and goes back to the driver when nothing lies in it: with a
    tensor of training's in it, the rest could be had by nobody."""

    def __init__(self, entries: Sequence[Entry], size: int, device: Any) -> None:
        self._entries, self._device = entries, device
        self._pool = _pool()
        self._wanted = False
        self.first, self.bytes = entries[0].at, size

    def clone(self, sources: Mapping[int, Any]) -> Sources | None:
        """By the stream that trains. Who drops them gives the memory back; None: training has some
        of it by now."""
        import torch

        if self.look():
            return None
        try:
            with self._within():
                space = torch.empty(self.bytes, dtype=torch.uint8, device=self._device)
        except torch.cuda.OutOfMemoryError:
            self._wanted = True
            return None
        views = _views(space, self.first, self._entries)
        _copy(views, sources)
        return sorted((each for kind in views.values() for each in kind), key=lambda e: e[0].at)

    def look(self) -> bool:
        """While no save uses it: whether training wants it, or once did."""
        self._wanted = self._wanted or self._used()
        return self._wanted

    def can_go(self) -> bool:
        """In the thread that trains: whether it wants it, and has nothing in it at the moment."""
        return self._wanted and not self._used()

    def _used(self) -> bool:
        if self._pool is None:
            return False
        blocks = (block for segment in self._pool.snapshot() for block in segment["blocks"])
        return any(block["state"] != "inactive" for block in blocks)

    def _within(self) -> AbstractContextManager[Any]:
        import torch

        if self._pool is None:
            return nullcontext()
        made: AbstractContextManager[Any] = torch.cuda.use_mem_pool(self._pool, self._device)
        return made


def room_for(layout: Layout, device: Any) -> Room | None:
    """For as much of the end of a layout as the device has free, of large tensors on it."""
    import torch

    free, total = torch.cuda.mem_get_info(device)
    room = free - max(_SPARED, int(_SPARED_SHARE * total))
    number = len(layout.entries)
    while number:
        before = layout.entries[number - 1]
        part = before.part
        if part.small or part.device == "cpu" or layout.bytes - before.at > room:
            break
        number -= 1
    if number == len(layout.entries):
        return None
    entries = layout.entries[number:]
    return Room(entries, layout.bytes - entries[0].at, device)


def _pool() -> Any:
    """None where PyTorch has none: then it is memory like any other, between saves."""
    import torch

    try:
        return torch.cuda.MemPool(use_on_oom=True)
    except (AttributeError, TypeError, RuntimeError):
        return None


def _views(space: Any, first: int, entries: Sequence[Entry]) -> dict[Any, Sources]:
    """By type, as they are copied."""
    found: dict[Any, Sources] = defaultdict(list)
    for entry in entries:
        part, at = entry.part, entry.data - first
        view = space[at : at + part.bytes].view(part.dtype).view(part.sizes)
        found[part.dtype].append((entry, view))
    return found


def _copy(views: Mapping[Any, Sources], sources: Mapping[int, Any]) -> None:
    import torch

    with torch.no_grad():
        for kind in views.values():
            torch._foreach_copy_(
                [view for _, view in kind], [sources[id(entry)] for entry, _ in kind]
            )
