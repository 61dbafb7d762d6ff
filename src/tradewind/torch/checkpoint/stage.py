"""Copies of tensors into the arena, while training goes on.

On a GPU the copies run on a stream of their own. It first waits for an event of the stream that
trains, or it would copy what the last step has not finished writing. Training waits for nothing but
the gate, before whatever changes the tensors next, and that wait is one of streams, not of Python:

- Small tensors are gathered on the device at once, in the training's own stream: so those that
  the next forward pass changes, such as a batch norm's, are of one moment too.
- As many large ones as the device has memory for are cloned there at once, which takes
  milliseconds (aside.py), and copied from that, whatever training does meanwhile.
- Of the others, what is rank's own (gradients) or was named `early` is copied first, and training
  waits for that; the rest is copied in pieces while the next forward and backward passes run.

What is in the computer's memory is copied by a thread until the gate; small and early ones at once.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Any

from tradewind.torch.checkpoint import aside
from tradewind.torch.checkpoint.arena import CHUNK, Arena
from tradewind.torch.checkpoint.aside import Aside, Sources
from tradewind.torch.checkpoint.layout import Entry, Layout, source
from tradewind.torch.checkpoint.snapshot import Snapshot, written

_MARKS = 16
"""So often who writes learns how far the copies are."""
_QUEUE = 600
"""Copies that a stream is given at once. It holds about a thousand; then whoever adds one waits."""


class Stager:
    def __init__(self, device: Any) -> None:
        import torch

        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        if self.cuda and self.device.index is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        self._stream: Any = torch.cuda.Stream(self.device) if self.cuda else None
        self._small: Aside | None = None
        self._aside: Aside | None = None
        self._asked = False
        self._hasty: set[str] = set()
        """Names of tensors that were seen to change before the gate."""

    def enter(self) -> None:
        """In each thread: else it would make itself at home on the first GPU."""
        import torch

        if self.cuda:
            torch.cuda.set_device(self.device)

    def prepare(self, layout: Layout, arena: Arena) -> None:
        """The framing goes into the arena, and that of small tensors onto the device."""

        for at, data in layout.frames:
            arena.memory[at : at + len(data)] = data
        self._small, self._aside, self._asked = None, None, False
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

        snapshot = Snapshot(layout.bytes, self._hasty)
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
            big = self._clone(layout, sources, big)
            begin = torch.cuda.Event()
            begin.record(torch.cuda.current_stream(self.device))
            now = [each for each in big if is_early(each[0])]
            rest = [each for each in big if not is_early(each[0])]
            snapshot.watch((entry.part.name, each) for entry, each in rest)
            if now or arena.ready.is_set():
                arena.ready.wait()
                self._begin(snapshot, layout, arena, begin, now)
                if now:
                    self._wait_for(_mark(self._stream))
                rest = self._issue(snapshot, arena, rest, _QUEUE)
            if not rest:
                self._safe(snapshot)
            # What is left is not training's affair, until the gate: the arena may not be pinned
            # yet, and a stream's queue cannot take all without waiting.
            threading.Thread(
                target=self._later, args=(snapshot, layout, arena, begin, rest), daemon=True
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
            snapshot.finish_copies()
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

    def _clone(self, layout: Layout, all_of_them: Sources, large: Sources) -> Sources:
        """Returns what could not be cloned of the large ones. There is asked for room when training
        has shown what memory it needs, and again only for other tensors."""
        if not self._asked:
            self._asked, self._aside = True, aside.set_aside(layout, self.device)
        sources = {id(entry): each for entry, each in all_of_them}
        for clone in (self._small, self._aside):
            if clone is not None:
                clone.clone(sources)
        rest = self._aside
        return [each for each in large if rest is None or each[0].at < rest.first]

    def _begin(
        self,
        snapshot: Snapshot,
        layout: Layout,
        arena: Arena,
        begin: Any,
        now: list[tuple[Entry, Any]],
    ) -> None:
        """What the copies wait for, and the first of them."""
        import torch

        self._stream.wait_event(begin)
        snapshot.started = torch.cuda.Event(enable_timing=True)
        snapshot.started.record(self._stream)
        self._issue_clone(snapshot, arena, self._small)
        self._issue(snapshot, arena, now, None)
        snapshot.marks.clear()  # those are of parts that lie anywhere

    def _issue(
        self, snapshot: Snapshot, arena: Arena, parts: list[tuple[Entry, Any]], most: int | None
    ) -> list[tuple[Entry, Any]]:
        """Returns what is left after so many copies."""
        import torch

        since = copies = 0
        often = max(CHUNK, snapshot.size // _MARKS)
        with torch.cuda.stream(self._stream), torch.no_grad():
            for number, (entry, each) in enumerate(parts):
                if most is not None and copies >= most:
                    return parts[number:]
                copies += self._send(snapshot, arena, entry, each)
                since += entry.part.bytes
                if since >= often:
                    snapshot.marks.append((entry.data + entry.part.bytes, _mark(self._stream)))
                    since = 0
        return []

    def _issue_clone(self, snapshot: Snapshot, arena: Arena, clone: Aside | None) -> None:
        import torch

        if clone is None:
            return
        marked, often = clone.first, max(CHUNK, snapshot.size // _MARKS)
        with torch.cuda.stream(self._stream):
            for at, upto in _cuts(clone.first, clone.last):
                part = clone.space[at - clone.first : upto - clone.first]
                arena.tensor[at:upto].copy_(part, non_blocking=True)
                if upto - marked >= often:
                    snapshot.marks.append((upto, _mark(self._stream)))
                    marked = upto

    def _end(self, snapshot: Snapshot) -> None:
        import torch

        snapshot.end = torch.cuda.Event(enable_timing=True)
        snapshot.end.record(self._stream)
        snapshot.issued.set()

    def _safe(self, snapshot: Snapshot) -> None:
        """Nothing is read any more that training changes, once this is done."""
        if snapshot.started is not None:
            snapshot.safe = _mark(self._stream)
        snapshot.gated.set()

    def _later(
        self, snapshot: Snapshot, layout: Layout, arena: Arena, begin: Any, rest: Any
    ) -> None:
        try:
            self.enter()
            if snapshot.started is None:
                arena.ready.wait()
                self._begin(snapshot, layout, arena, begin, [])
            if not snapshot.gated.is_set():
                self._issue(snapshot, arena, rest, None)
                self._safe(snapshot)
            self._issue_clone(snapshot, arena, self._aside)
            self._end(snapshot)
        except Exception as error:
            snapshot.trouble = f"the copy from the device failed: {error}"
        finally:
            snapshot.gated.set()
            snapshot.issued.set()

    def _wait_for(self, event: Any) -> None:
        import torch

        torch.cuda.current_stream(self.device).wait_event(event)

    def _send(self, snapshot: Snapshot, arena: Arena, entry: Entry, each: Any) -> int:
        import torch

        flat = each.resolve_conj().resolve_neg().contiguous()
        if flat.data_ptr() != each.data_ptr():
            snapshot.held.append(flat)
        flat = flat.reshape(-1).view(torch.uint8)
        cuts = _cuts(entry.data, entry.data + entry.part.bytes)
        for at, upto in cuts:
            arena.tensor[at:upto].copy_(
                flat[at - entry.data : upto - entry.data], non_blocking=True
            )
        return len(cuts)

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
            snapshot.finish_copies()


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


def _cuts(at: int, end: int) -> list[tuple[int, int]]:
    found = []
    while at < end:
        upto = min(end, (at // CHUNK + 1) * CHUNK)
        found.append((at, upto))
        at = upto
    return found
