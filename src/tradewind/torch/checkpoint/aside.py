"""A clone of tensors on their own device, where it has memory to spare.

The device copies within itself a hundred times as fast as to the computer's memory. What is cloned
is out of training's way at once. The clone is laid out as the end of the file is, framing included,
and so leaves the device in few copies. It is kept from save to save: memory that is given back
would be cut up by the next allocation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from tradewind.torch.checkpoint.layout import Entry, Layout

Sources = list[tuple[Entry, Any]]
_SPARED, _SPARED_SHARE = 2 << 30, 0.10
"""What is left for others: training may yet need more than it ever did."""


class Aside:
    """Those entries of a layout, which lie together, up to the byte `last`."""

    def __init__(self, layout: Layout, entries: Sequence[Entry], last: int, device: Any) -> None:
        import torch

        self.first, self.last = entries[0].at, last
        self.space = torch.zeros(self.last - self.first, dtype=torch.uint8, device=device)
        self._views: dict[Any, list[tuple[Entry, Any]]] = defaultdict(list)
        for entry in entries:
            view = self._at(entry.data, entry.part.bytes).view(entry.part.dtype)
            self._views[entry.part.dtype].append((entry, view.view(entry.part.sizes)))
        frames = [(at, data) for at, data in layout.frames if self.first <= at < last and data]
        held = bytearray(b"".join(data for _, data in frames))
        told = torch.frombuffer(held, dtype=torch.uint8).to(device)
        parts = told.split([len(data) for _, data in frames])
        torch._foreach_copy_([self._at(at, len(data)) for at, data in frames], list(parts))

    def clone(self, sources: Mapping[int, Any]) -> None:
        """By the stream that trains; sources by the id of their entry."""
        import torch

        with torch.no_grad():
            for views in self._views.values():
                torch._foreach_copy_(
                    [view for _, view in views], [sources[id(entry)] for entry, _ in views]
                )

    def _at(self, at: int, size: int) -> Any:
        return self.space[at - self.first : at - self.first + size]


def small(layout: Layout, device: Any) -> Aside | None:
    """For those so small that room need not be asked for: hundreds of copies become one."""
    entries = [e for e in layout.entries if e.part.small and e.part.device != "cpu"]
    return Aside(layout, entries, layout.small_bytes, device) if entries else None


def set_aside(layout: Layout, device: Any) -> Aside | None:
    """For as much of the end of a layout as there is room for, of large tensors on the device."""
    import torch

    room = _room(device)
    number = len(layout.entries)
    while number:
        before = layout.entries[number - 1]
        part = before.part
        if part.small or part.device == "cpu" or layout.bytes - before.at > room:
            break
        number -= 1
    if number == len(layout.entries):
        return None
    try:
        return Aside(layout, layout.entries[number:], layout.bytes, device)
    except torch.cuda.OutOfMemoryError:  # what is free lies in pieces that are too small
        return None


def _room(device: Any) -> int:
    """Bytes that nobody uses, and training did not even at its most."""
    import torch

    free, total = torch.cuda.mem_get_info(device)
    cached = torch.cuda.memory_reserved(device) - torch.cuda.max_memory_allocated(device)
    return int(free + max(0, cached) - max(_SPARED, _SPARED_SHARE * total))
