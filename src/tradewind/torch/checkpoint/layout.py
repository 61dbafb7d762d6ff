"""What a rank writes, and where in its file. Every rank works it out alone, from the same names.

- A plain tensor is the same on all ranks: each writes its share of all of them, cut between rows.
- Of a DTensor each rank writes its own part; where several hold the same part, one of them does,
  another one for each tensor in turn.
- What is this rank's own it writes alone.
- One tensor under several names (tied weights) is written once, and found under each of them.

Small tensors come first, those in the computer's memory before those on the device, which are
gathered there and leave it in one copy (stage.py). Own ones follow: they may change soonest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tradewind.base.errors import InvalidValue
from tradewind.torch.checkpoint.frame import ALIGN, frame

SMALL = 256 << 10
_WHOLE = 1 << 20  # what is smaller is not cut


@dataclass(frozen=True, slots=True)
class Part:
    """A box of a tensor: what one rank holds, or is to write."""

    kind: str  # "tensor", or "own"
    name: str
    dtype: Any
    shape: tuple[int, ...]  # of the whole tensor
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    rows: tuple[int, int] | None  # of a plain tensor: which this is; None: all that is here
    device: str  # "cpu", "cuda"

    @property
    def small(self) -> bool:
        return self.bytes <= SMALL

    @property
    def bytes(self) -> int:
        return volume(self.sizes) * int(self.dtype.itemsize)


Sizes = tuple[int, ...]
Told = tuple[str, str, str, Sizes, Sizes, Sizes, int, int, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """A part in its place: its zip at `at`, `length` long, and the numbers in it at `data`."""

    part: Part
    at: int
    length: int
    data: int

    def told(self) -> Told:
        """For the other ranks, and for the index."""
        part = self.part
        words = (part.kind, part.name, dtype_name(part.dtype), part.shape, part.offsets, part.sizes)
        return *words, self.at, self.length, self.data


@dataclass(frozen=True, slots=True)
class Layout:
    entries: tuple[Entry, ...]
    frames: tuple[tuple[int, bytes], ...]  # where in the file, and what
    small_bytes: int  # where the small ones end, framing included; those on a device come last
    bytes: int
    again: tuple[Entry, ...] = ()  # of these bytes, under further names


def dtype_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def volume(sizes: tuple[int, ...]) -> int:
    many = 1
    for each in sizes:
        many *= each
    return many


def signature(tensors: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[Any, ...]:
    """Changes whenever the layout may."""

    def words(tensor: Any) -> tuple[Any, ...]:
        spread = getattr(tensor, "placements", None)
        return tensor.dtype, tuple(tensor.shape), tensor.device.type, spread

    return (
        tuple((name, *words(t)) for name, t in tensors.items()),
        tuple((name, *words(t)) for name, t in own.items()),
        tuple(tied(tensors).items()),
    )


def tied(tensors: Mapping[str, Any]) -> dict[str, str]:
    """Names of tensors that are the same memory as one before, and the name of that."""
    known: dict[int, tuple[str, Any]] = {}
    found: dict[str, str] = {}
    for name, tensor in tensors.items():
        here = getattr(tensor, "_local_tensor", tensor)
        first, other = known.setdefault(here.data_ptr(), (name, tensor))
        if first != name and here.numel() and _same(tensor, other):
            found[name] = first
    return found


def _same(one: Any, other: Any) -> bool:
    def words(tensor: Any) -> tuple[Any, ...]:
        here = getattr(tensor, "_local_tensor", tensor)
        spread = tensor.shape, getattr(tensor, "placements", None)
        numbers = here.device, here.dtype, here.shape, here.stride(), here.is_conj(), here.is_neg()
        return *spread, *numbers

    return words(one) == words(other)


def lay_out(
    tensors: Mapping[str, Any], own: Mapping[str, Any], rank: int = 0, world: int = 1
) -> Layout:
    same = tied(tensors)
    once = {name: tensor for name, tensor in tensors.items() if name not in same}
    parts = list(_written(once, rank, world))
    parts += [_all_of("own", name, tensor) for name, tensor in own.items()]
    parts.sort(key=_order)  # stable: every rank's own order otherwise
    entries: list[Entry] = []
    frames: list[tuple[int, bytes]] = []
    known: dict[Any, tuple[bytes, bytes]] = {}
    at = small = 0
    for part in parts:
        entry, framing = place(part, at, known)
        entries.append(entry)
        frames += framing
        at = _up(entry.at + entry.length)
        if part.small:
            small = at
    where = {entry.part.name: entry for entry in entries if entry.part.kind == "tensor"}
    again = tuple(
        replace(where[first], part=replace(where[first].part, name=name))
        for name, first in same.items()
        if first in where  # or it is in another rank's share
    )
    return Layout(tuple(entries), tuple(frames), small, at, again)


def _order(part: Part) -> int:
    if part.small:
        return 0 if part.device == "cpu" else 1
    return 2 if part.kind == "own" else 3


def place(
    part: Part, at: int, known: dict[Any, tuple[bytes, bytes]]
) -> tuple[Entry, list[tuple[int, bytes]]]:
    shape = part.dtype, part.sizes
    if shape not in known:
        known[shape] = frame(*shape)
    head, end = known[shape]
    data = at + len(head)
    after = data + part.bytes
    return Entry(part, at, after + len(end) - at, data), [(at, head), (after, end)]


def local(tensor: Any) -> Any:
    """What this rank holds of it."""
    import torch

    with torch.no_grad():
        held = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        return held.detach()


def source(part: Part, tensor: Any) -> Any:
    """The numbers of a part."""
    held = local(tensor)
    return held if part.rows is None else held[part.rows[0] : part.rows[1]]


def held(name: str, tensor: Any) -> Part | None:
    """What this rank holds of a tensor, as a box; None: nothing."""
    if not hasattr(tensor, "placements"):
        return _all_of("tensor", name, tensor)
    boxes = tensor.__create_chunk_list__()
    if len(boxes) > 1 or any(each.is_partial() for each in tensor.placements):
        raise InvalidValue(
            f"{name} cannot be saved as it is spread: {tensor.placements}",
            hint="redistribute it to Shard or Replicate first",
        )
    if not boxes or not local(tensor).numel():
        return None
    offsets, sizes = tuple(boxes[0].offsets), tuple(boxes[0].sizes)
    return Part(
        "tensor", name, tensor.dtype, tuple(tensor.shape), offsets, sizes, None, _device(tensor)
    )


def _device(tensor: Any) -> str:
    return str(tensor.device.type)


def _all_of(kind: str, name: str, tensor: Any) -> Part:
    shape = tuple(tensor.shape)
    return Part(kind, name, tensor.dtype, shape, (0,) * len(shape), shape, None, _device(tensor))


def _written(tensors: Mapping[str, Any], rank: int, world: int) -> Iterator[Part]:
    plain = [t for t in tensors.values() if not hasattr(t, "placements")]
    total = sum(t.numel() * t.dtype.itemsize for t in plain)
    done = 0
    for number, (name, tensor) in enumerate(tensors.items()):
        if hasattr(tensor, "placements"):
            if _chosen(tensor, number):
                part = held(name, tensor)
                if part is not None:
                    yield part
            continue
        size = tensor.numel() * tensor.dtype.itemsize
        part = _share(name, tensor, size, done, total, rank, world)
        done += size
        if part is not None:
            yield part


def _share(
    name: str, tensor: Any, size: int, done: int, total: int, rank: int, world: int
) -> Part | None:
    """The rows of a plain tensor that fall into this rank's share of all bytes."""
    whole = _all_of("tensor", name, tensor)
    if world == 1:
        return whole
    if size < _WHOLE or not whole.shape:
        return whole if rank == min(world - 1, done * world // max(total, 1)) else None
    rows = whole.shape[0]

    def row(number: int) -> int:
        return min(rows, max(0, round((total * number / world - done) / (size / rows))))

    first, last = row(rank), row(rank + 1)
    if first == last:
        return None
    offsets, sizes = (first, *whole.offsets[1:]), (last - first, *whole.shape[1:])
    return Part(
        "tensor", name, tensor.dtype, whole.shape, offsets, sizes, (first, last), whole.device
    )


def _chosen(tensor: Any, number: int) -> bool:
    """Of those who hold the same part of a DTensor, one is chosen to write it."""
    coordinate = tensor.device_mesh.get_coordinate()
    if coordinate is None:
        return False
    mine, many = 0, 1
    for placement, size, at in zip(
        tensor.placements, tensor.device_mesh.shape, coordinate, strict=True
    ):
        if placement.is_replicate():
            mine, many = mine * size + at, many * size
    return mine == number % many


def _up(at: int) -> int:
    return -(-at // ALIGN) * ALIGN
