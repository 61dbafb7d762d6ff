"""Copies of tensors into the arena, while training goes on.

On a GPU the copies run on a stream of their own. It first waits for an event of the stream that
trains, or it would copy what the last step has not finished writing. Training waits for nothing but
the gate, before whatever changes the tensors next, and that wait is one of streams, as far as can
be:

- Small tensors are gathered on the device at once, in the training's own stream: so those that
  the next forward pass changes, such as a batch norm's, are of one moment too.
- As many large ones as the device has memory for are cloned there at once, which takes
  milliseconds (aside.py), and copied from that, whatever training does meanwhile.
- Of the others, what is rank's own (gradients) or was named `early` is copied first, and training
  waits for that; the rest is copied while the next forward and backward passes run.

A thread sends the copies, a few at a time. A device takes copies in the order in which they come:
with all of them in its queue, the next batch would wait for the last of them, half a step.

What is in the computer's memory is copied by a thread until the gate; small and early ones at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

from tradewind.torch.checkpoint import aside
from tradewind.torch.checkpoint.arena import CHUNK, Arena
from tradewind.torch.checkpoint.aside import Gathered, Room, Sources
from tradewind.torch.checkpoint.layout import Entry, Layout, source
from tradewind.torch.checkpoint.snapshot import Snapshot, wait_for, written

_AT_ONCE = 64 << 20
"""Bytes of one copy: a millisecond."""
_UNDER_WAY = 4
"""Copies that a device is given ahead, so that it is never idle while the thread sleeps."""


class Stager:
    def __init__(self, device: Any) -> None:
        import torch

        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        if self.cuda and self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self._stream: Any = torch.cuda.Stream(self.device) if self.cuda else None
        self._small: Gathered | None = None
        self._room: Room | None = None
        self._asked = self._framed = False
        self._hasty: set[str] = set()
        """Names of tensors that were seen to change before the gate."""

    @property
    def held(self) -> int:
        """Bytes of the device that are kept for clones, as long as training does not need them."""
        return self._room.bytes if self._room is not None else 0

    def look(self) -> None:
        """Now and then, by any thread, while no save is under way."""
        if self._room is not None:
            self._room.look()

    def give_back(self) -> int:
        """By the thread that trains, between steps: the memory for clones, once training has had to
        take some of it, as it gets each piece of it the slow way. How much that was."""
        room = self._room
        if room is None or not room.can_go():
            return 0
        self._room = None
        return room.bytes

    def enter(self) -> None:
        """In each thread: else it would make itself at home on the first GPU."""
        import torch

        if self.cuda:
            torch.cuda.set_device(self.device)

    def frame(self, layout: Layout, arena: Arena) -> None:
        """By the thread that writes the file."""
        if not self._framed:
            for at, data in layout.frames:
                arena.memory[at : at + len(data)] = data
            self._framed = True

    def prepare(self, layout: Layout) -> None:
        """That of small tensors goes onto the device; the framing into the arena with the first
        save, behind training's back: the memory comes into being by being written to."""
        self._framed = False
        self._small, self._room, self._asked = None, None, False
        if self.cuda:
            self._small = aside.small(layout, self.device)

    def start(
        self,
        layout: Layout,
        arena: Arena,
        tensors: Mapping[str, Any],
        own: Mapping[str, Any],
        early: Collection[str] = (),
    ) -> Snapshot:
        import torch

        snapshot = Snapshot(layout.bytes, self._hasty, on_device=self.cuda)
        named = {"tensor": tensors, "own": own}
        sources = [
            (entry, source(entry.part, named[entry.part.kind][entry.part.name]))
            for entry in layout.entries
        ]
        snapshot.held = [each for _, each in sources]

        def is_early(entry: Entry) -> bool:
            part = entry.part
            return part.kind == "own" or part.name in early or part.name in self._hasty

        on_cpu = [each for each in sources if each[0].part.device == "cpu"]
        later = [each for each in on_cpu if not (each[0].part.small or is_early(each[0]))]
        for entry, each in on_cpu:
            if entry.part.small or is_early(entry):
                _into(arena, entry, each)
        big = [each for each in sources if each[0].part.device != "cpu" and not each[0].part.small]
        if self.cuda:
            cloned, big = self._clone(layout, sources, big)
            begin = torch.cuda.Event()
            begin.record(torch.cuda.current_stream(self.device))
            now = [each for each in big if is_early(each[0])]
            rest = [each for each in big if not is_early(each[0])]
            snapshot.watch((entry.part.name, each) for entry, each in rest)
            if now:
                arena.ready.wait()
                self._begin(snapshot, arena, begin)
                for entry, each in now:
                    for _, to, part in _cut(snapshot, arena, entry, each):
                        self._send(to, part)
                self._wait_for(_mark(self._stream))
            if not rest:
                snapshot.gated.set()
            threading.Thread(
                target=self._carry, args=(snapshot, arena, begin, rest, cloned), daemon=True
            ).start()
        else:
            snapshot.issued.set()
            snapshot.gated.set()
        if later:
            times = [written(each) for _, each in later]
            threading.Thread(
                target=self._copy, args=(snapshot, arena, later, times), daemon=True
            ).start()
        else:
            snapshot.finish_copies(last=not self.cuda)
        return snapshot

    def gate(self, snapshot: Snapshot) -> None:
        snapshot.look(over=True)
        snapshot.gated.wait()
        snapshot.copied.wait()
        if snapshot.safe is not None:
            self._wait_for(snapshot.safe)

    def abandon(self) -> None:
        """What was begun and not finished is let run out, as the arena will be used again."""
        if self._stream is not None:
            self._stream.synchronize()

    def _clone(
        self, layout: Layout, all_of_them: Sources, large: Sources
    ) -> tuple[Sources, Sources]:
        """Clones, and what could not be cloned of the large ones. There is asked for room when
        training has shown what memory it needs, and again only for other tensors."""
        if not self._asked:
            self._asked, self._room = True, aside.room_for(layout, self.device)
        sources = {id(entry): each for entry, each in all_of_them}
        if self._small is not None:
            self._small.gather(sources)
        cloned = self._room.clone(sources) if self._room is not None else None
        if self._room is None or cloned is None:
            return [], large
        first = self._room.first
        return cloned, [each for each in large if each[0].at < first]

    def _begin(self, snapshot: Snapshot, arena: Arena, begin: Any) -> None:
        """What the copies wait for, and the first of them."""
        import torch

        self._stream.wait_event(begin)
        snapshot.started = torch.cuda.Event(enable_timing=True)
        snapshot.started.record(self._stream)
        if self._small is not None:
            first = self._small.first
            for at, upto in _cuts(first, self._small.last):
                self._send(arena.tensor[at:upto], self._small.space[at - first : upto - first])

    def _carry(
        self, snapshot: Snapshot, arena: Arena, begin: Any, rest: Sources, cloned: Sources
    ) -> None:
        """The thread: the arena may not be pinned yet, and nothing is in a hurry but `rest`."""
        import torch

        try:
            self.enter()
            arena.ready.wait()
            if snapshot.started is None:
                self._begin(snapshot, arena, begin)
            under_way: deque[tuple[int, Any]] = deque()
            for parts in (rest, cloned):
                for entry, each in parts:
                    for upto, to, part in _cut(snapshot, arena, entry, each):
                        self._send(to, part)
                        under_way.append((upto, _mark(self._stream)))
                        if len(under_way) > _UNDER_WAY:
                            _arrived(snapshot, under_way)
                if not snapshot.gated.is_set():  # nothing that training changes is read after it
                    snapshot.safe = _mark(self._stream)
                    snapshot.gated.set()
            while under_way:
                _arrived(snapshot, under_way)
            snapshot.end = torch.cuda.Event(enable_timing=True)
            snapshot.end.record(self._stream)
        except Exception as error:
            snapshot.trouble = f"the copy from the device failed: {error}"
            with suppress(Exception):
                self._stream.synchronize()
        finally:
            cloned.clear()  # training may have the memory
            snapshot.gated.set()
            snapshot.issued.set()
            snapshot.filled.put(None)

    def _send(self, to: Any, part: Any) -> None:
        import torch

        with torch.cuda.stream(self._stream), torch.no_grad():
            to.copy_(part, non_blocking=True)

    def _wait_for(self, event: Any) -> None:
        import torch

        torch.cuda.current_stream(self.device).wait_event(event)

    def _copy(self, snapshot: Snapshot, arena: Arena, parts: Sources, times: list[int]) -> None:
        try:
            for (entry, each), before in zip(parts, times, strict=True):
                _into(arena, entry, each)
                snapshot.compare(entry.part.name, each, before)
                if not self.cuda:
                    snapshot.filled.put(entry.data + entry.part.bytes)
        except Exception as error:
            snapshot.trouble = f"a copy failed: {error}"
        finally:
            snapshot.finish_copies(last=not self.cuda)


def _into(arena: Arena, entry: Entry, each: Any) -> None:
    import torch

    if not entry.part.bytes:
        return
    room = arena.tensor[entry.data : entry.data + entry.part.bytes]
    with torch.no_grad():
        room.view(entry.part.dtype).view(entry.part.sizes).copy_(each)


def _mark(stream: Any) -> Any:
    import torch

    event = torch.cuda.Event()
    event.record(stream)
    return event


def _arrived(snapshot: Snapshot, under_way: deque[tuple[int, Any]]) -> None:
    upto, event = under_way.popleft()
    wait_for(event)
    snapshot.filled.put(upto)


def _cut(
    snapshot: Snapshot, arena: Arena, entry: Entry, each: Any
) -> Iterator[tuple[int, Any, Any]]:
    """Up to which byte, where to and what: bytes of the arena and of the tensor."""
    import torch

    flat = each.resolve_conj().resolve_neg().contiguous()
    if flat.data_ptr() != each.data_ptr():
        snapshot.held.append(flat)
    flat = flat.reshape(-1).view(torch.uint8)
    for at, upto in _cuts(entry.data, entry.data + entry.part.bytes):
        yield upto, arena.tensor[at:upto], flat[at - entry.data : upto - entry.data]


def _cuts(at: int, end: int) -> Iterator[tuple[int, int]]:
    """At the borders of what is registered, and between them into what a device copies at once."""
    while at < end:
        upto = min(end, (at // CHUNK + 1) * CHUNK, (at // _AT_ONCE + 1) * _AT_ONCE)
        yield at, upto
        at = upto
