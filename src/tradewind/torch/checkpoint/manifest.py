"""What a checkpoint is made of, in three files.

The **manifest** is JSON: each file's size and the check sums of its pieces. It is created last and
in one go, so a checkpoint exists if and only if its manifest does. Its last field is the check sum
of all before it. The **index** is JSON too: of each tensor, which box of it lies where. `.metadata`
says the same to plain PyTorch (`torch.distributed.checkpoint`), which reads only that; we do not
read it, as reading a pickle runs whatever is in it.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, InvalidValue, TradewindError
from tradewind.model import bounds
from tradewind.torch.checkpoint.layout import Told
from tradewind.torch.checkpoint.pieces import PIECE, checksum

FORMAT = 1
METADATA, INDEX = ".metadata", "index.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    step: int
    leg: int
    world: int
    name: str
    """Of the folder with its files."""
    files: dict[str, tuple[int, tuple[int, ...]]] = field(default_factory=dict)
    """Bytes, and the check sum of each piece."""

    def encode(self) -> bytes:
        words = {
            "format": FORMAT,
            "step": self.step,
            "leg": self.leg,
            "world": self.world,
            "folder": self.name,
            "piece_bytes": PIECE,
            "files": {
                name: {"bytes": size, "crc32": list(sums)}
                for name, (size, sums) in sorted(self.files.items())
            },
        }
        body = json.dumps(words)
        return f'{body[:-1]}, "manifest_crc32": {checksum(body.encode())}}}'.encode()


def decode(data: bytes, key: str) -> Manifest:
    """Raises BadFile for what is no whole manifest, InvalidValue for one that is too new."""
    try:
        body, _, end = data.decode().rpartition(', "manifest_crc32": ')
        if int(end.rstrip("}")) != checksum(f"{body}}}".encode()):
            raise BadFile(f"{key} is damaged: its check sum does not fit")
        words = json.loads(f"{body}}}")
    except (*UNREADABLE, TypeError):
        raise BadFile(f"{key} is damaged: it is no manifest of a checkpoint") from None
    try:
        if words["format"] != FORMAT or words["piece_bytes"] != PIECE:
            raise InvalidValue(  # not BadFile: it may be whole, and must not be swept
                f"{key} is of format {words['format']}, and this Tradewind knows {FORMAT}",
                hint="use the version that wrote it, or a newer one",
            )
        files = {
            name: (int(each["bytes"]), tuple(map(int, each["crc32"])))
            for name, each in words["files"].items()
        }
        step, leg, world = (int(words[name]) for name in ("step", "leg", "world"))
        if not all(map(_is_below, (words["folder"], *files))):
            raise BadFile(f"{key} is damaged: it names files outside of its folder")
        if world < 1 or not all(map(_is_covered, files.values())) or not _all_there(files, world):
            raise BadFile(f"{key} is damaged: it does not name all of its files")
        if files[INDEX][0] > min(bounds.INDEX, bounds.INDEX_RANK * (world + 1)):
            raise BadFile(f"{key} is damaged: its index is larger than any can be")
        return Manifest(step, leg, world, words["folder"], files)
    except TradewindError:
        raise
    except (*UNREADABLE, KeyError, TypeError, AttributeError):
        raise BadFile(f"{key} is damaged: it is no manifest of a checkpoint") from None


def _is_below(name: str) -> bool:
    return bool(name) and not name.startswith("/") and ".." not in name.split("/")


def _is_covered(file: tuple[int, tuple[int, ...]]) -> bool:
    size, sums = file
    return size >= 0 and len(sums) == -(-size // PIECE)


def _all_there(files: Collection[str], world: int) -> bool:
    if len(files) != world + 2:  # asked first: `world` may be any number
        return False
    return {METADATA, INDEX, *map(of_rank, range(world))} == set(files)


def of_rank(rank: int) -> str:
    """The name of what a rank writes, as plain PyTorch would call it."""
    return f"__{rank}_0.distcp"


def sums(data: bytes | memoryview) -> tuple[int, ...]:
    view = memoryview(data)
    return tuple(checksum(view[at : at + PIECE]) for at in range(0, len(view), PIECE))


def index(told: Sequence[tuple[str, Sequence[Told]]]) -> bytes:
    """Of what each rank has told: its file's name and its entries (layout.Entry.told)."""
    return json.dumps({"files": [{"name": name, "entries": each} for name, each in told]}).encode()


def metadata(told: Sequence[tuple[str, Sequence[Told]]]) -> bytes:
    """As torch.distributed.checkpoint's own writer would have left it."""
    import torch
    from torch.distributed.checkpoint import metadata as dcp
    from torch.distributed.checkpoint.filesystem import _StorageInfo

    tensors: dict[str, Any] = {}
    places: dict[Any, Any] = {}
    for file, entries in told:
        for kind, name, dtype, shape, offsets, sizes, at, length, _ in entries:
            if kind != "tensor":
                continue
            if name not in tensors:
                found = getattr(torch, dtype, None)
                if not isinstance(found, torch.dtype):
                    raise BadFile(f"{name} in {file} is of type {dtype!r}, which PyTorch has not")
                properties = dcp.TensorProperties(dtype=found)
                tensors[name] = dcp.TensorStorageMetadata(properties, torch.Size(shape), [])
            box = dcp.ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes))
            tensors[name].chunks.append(box)
            places[dcp.MetadataIndex(name, offsets)] = _StorageInfo(file, at, length)
    whole = dcp.Metadata(tensors, {name: (name,) for name in tensors}, places, dcp.StorageMeta())
    if hasattr(whole, "version"):
        whole.version = "1.0.0"
    return pickle.dumps(whole)
