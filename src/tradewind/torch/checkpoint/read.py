"""Tensors out of a checkpoint's files, whatever the number of ranks that wrote them.

Of each tensor a rank wants the box that it holds; the index says which boxes were written, and the
two are laid over each other. Whole pieces are read, since only whole ones can be checked, by many
threads into memory of their own, and what is wanted of them goes on to the device while the next
ones are read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.checkpoint.arena import PRIVATE
from tradewind.torch.checkpoint.files import Files
from tradewind.torch.checkpoint.layout import Part, held, local, volume
from tradewind.torch.checkpoint.pieces import PIECE, Team, threads


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes of a file that lie together, and where they go: bytes of a tensor."""

    file: str
    at: int
    to: Any


class Reader:
    """What is asked for first, and then read at once."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._boxes: dict[tuple[str, str], list[tuple[str, list[Any]]]] = defaultdict(list)
        self._of_rank: dict[tuple[str, int, str], tuple[str, list[Any]]] = {}
        for rank, file in enumerate(files.index()["files"]):
            for entry in file["entries"]:
                if entry[0] == "tensor":
                    self._boxes[entry[0], entry[1]].append((file["name"], entry))
                else:
                    self._of_rank[entry[0], rank, entry[1]] = (file["name"], entry)
        self._runs: list[Run] = []
        self._after: list[tuple[Any, Any]] = []
        self._wanted: set[str] = set()

    def want(self, name: str, tensor: Any) -> None:
        """Fills what this rank holds of it."""
        self._wanted.add(name)
        if not tensor.numel():
            return
        boxes = self._boxes.get(("tensor", name))
        if boxes is None:
            raise InvalidValue(
                f"step {self._files.manifest.step} has no tensor {name!r}",
                hint="the model or the optimizer is not the one that was saved",
            )
        shape = tuple(boxes[0][1][3])
        if shape != tuple(tensor.shape):
            raise InvalidValue(
                f"{name} was saved with the shape {shape}, and now has {tuple(tensor.shape)}",
                hint="the model is not the one that was saved",
            )
        part = held(name, tensor)
        if part is None or not part.bytes:
            return
        target = local(tensor)
        # Where a tensor is in shards on some ranks and again on others (fully_shard beside tensor
        # parallelism), each of them has written: the same box is read once.
        once = {(tuple(entry[4]), tuple(entry[5])): (file, entry) for file, entry in boxes}
        covered = sum(self._overlap(part, target, *each) for each in once.values())
        if covered != volume(part.sizes):
            raise InvalidValue(f"step {self._files.manifest.step} has only a part of {name!r}")

    def all_of_it(self) -> bool:
        """Whether every tensor is asked for, so that damage anywhere would be found."""
        return {name for _, name in self._boxes} <= self._wanted

    def own(self, rank: int, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """This rank's own tensors; those that are not given are new ones in memory."""
        import torch

        found = {}
        for (kind, of, name), (file, entry) in self._of_rank.items():
            if kind != "own" or of != rank:
                continue
            dtype, shape = getattr(torch, entry[2]), tuple(entry[3])
            tensor = given.get(name) if given else None
            if tensor is None or tuple(tensor.shape) != shape:
                tensor = torch.empty(shape, dtype=dtype)
            found[name] = tensor
            self._all(file, entry, local(tensor))
        return found

    def bytes(self, kind: str, rank: int) -> Any:
        """A tensor of bytes; None: there are none."""
        import torch

        if (kind, rank, "") not in self._of_rank:
            return None
        file, entry = self._of_rank[kind, rank, ""]
        tensor = torch.empty(tuple(entry[3]), dtype=torch.uint8)
        self._all(file, entry, tensor)
        return tensor

    def _all(self, file: str, entry: list[Any], target: Any) -> None:
        if target.numel():
            shape, offsets, sizes = (tuple(each) for each in entry[3:6])
            whole = Part(entry[0], entry[1], target.dtype, shape, offsets, sizes, None, "")
            self._overlap(whole, target, file, entry)

    def _overlap(self, part: Part, target: Any, file: str, entry: list[Any]) -> int:
        """Plans the reading of what two boxes have in common; returns how many numbers that is."""
        import torch

        dtype, offsets, sizes, data = entry[2], entry[4], entry[5], entry[8]
        low = [max(a, b) for a, b in zip(part.offsets, offsets, strict=True)]
        ends = zip(part.offsets, part.sizes, offsets, sizes, strict=True)
        lengths = [min(a + n, b + m) - at for (a, n, b, m), at in zip(ends, low, strict=True)]
        if any(length <= 0 for length in lengths):
            return 0
        saved = getattr(torch, dtype)
        here = target[
            tuple(
                slice(at - begin, at - begin + length)
                for at, begin, length in zip(low, part.offsets, lengths, strict=True)
            )
        ]
        row = volume(tuple(sizes[1:])) * saved.itemsize
        first = (low[0] - offsets[0]) if sizes else 0
        rows = lengths[0] if sizes else 1
        straight = here.is_contiguous() and not here.is_conj() and not here.is_neg()
        if lengths[1:] == list(sizes[1:]) and straight and target.dtype == saved:
            to = here
        else:  # whole rows of it, of which a part is taken when they are there
            to = torch.empty((rows, *sizes[1:]), dtype=saved, device=target.device)
            columns = tuple(
                slice(at - begin, at - begin + length)
                for at, begin, length in zip(low[1:], offsets[1:], lengths[1:], strict=True)
            )
            taken = to[(slice(None), *columns)]
            self._after.append((here, taken if sizes else taken.view(())))
        flat = to.reshape(-1).view(torch.uint8)
        self._runs.append(Run(file, data + first * row, flat))
        return volume(tuple(lengths))

    def read(self, timeout_s: float, begin: float = 0.0) -> None:
        """Reads all that was asked for; raises BadFile for what is damaged. `begin` says where, as
        a share of all: ranks that read the same begin each elsewhere, and find in memory what
        another has read."""
        import torch

        tasks: dict[tuple[str, int], list[tuple[int, Any]]] = defaultdict(list)
        for run in self._runs:
            at, end = run.at, run.at + run.to.numel()
            while at < end:
                piece = at // PIECE
                upto = min(end, (piece + 1) * PIECE)
                to = run.to[at - run.at : upto - run.at]
                tasks[run.file, piece].append((at - piece * PIECE, to))
                at = upto
        devices = {run.to.device for run in self._runs if run.to.device.type == "cuda"}
        for device in devices:  # whatever still writes there does so first
            torch.cuda.synchronize(device)
        with _Lanes(devices) as lanes, torch.no_grad():
            # More than keep a disk busy: each also checks what it has read.
            team = Team(lambda task: lanes.carry(self._files, *task), threads() * 3 // 2)
            ordered = sorted(tasks.items(), key=lambda item: item[0])
            cut = int(begin * len(ordered))
            for task in ordered[cut:] + ordered[:cut]:
                team.put(task)
            team.wait(timeout_s, "reading a checkpoint")
            lanes.wait()
            for here, there in self._after:
                here.copy_(there)


class _Lanes:
    """What each thread reads into: for a GPU, memory that it copies from by itself, two pieces in
    turn, so that one is filled while the other leaves."""

    def __init__(self, devices: set[Any]) -> None:
        import threading

        self._devices = devices
        self._mine = threading.local()
        self._streams: list[Any] = []

    def __enter__(self) -> _Lanes:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def carry(self, files: Files, where: tuple[str, int], wanted: list[tuple[int, Any]]) -> None:
        import torch

        mine = self._mine
        if not hasattr(mine, "turn"):
            pin = bool(self._devices)
            for device in self._devices:
                torch.cuda.set_device(device)  # not the first one, which may be another rank's
            mine.rooms = [_room(pin) for _ in "ab"]
            mine.views = [memoryview(room.numpy()) for room in mine.rooms]
            mine.events = [[], []]
            mine.turn = 0
            mine.streams = {device: torch.cuda.Stream(device) for device in self._devices}
            self._streams += mine.streams.values()
        mine.turn = 1 - mine.turn
        room, events = mine.rooms[mine.turn], mine.events[mine.turn]
        for event in events:
            event.synchronize()
        events.clear()
        files.read(*where, mine.views[mine.turn])
        with torch.no_grad():
            for at, to in wanted:
                source = room[at : at + to.numel()]
                if to.device.type != "cuda":
                    to.copy_(source)
                    continue
                with torch.cuda.stream(mine.streams[to.device]):
                    to.copy_(source, non_blocking=True)
            for stream in mine.streams.values():
                event = torch.cuda.Event(blocking=True)
                event.record(stream)
                events.append(event)

    def wait(self) -> None:
        for stream in self._streams:
            stream.synchronize()


def _room(pin: bool) -> Any:
    """For one piece, beginning on a page."""
    import mmap

    import torch

    if pin:
        return torch.empty(PIECE, dtype=torch.uint8, pin_memory=True)
    return torch.frombuffer(mmap.mmap(-1, PIECE, flags=PRIVATE), dtype=torch.uint8)
