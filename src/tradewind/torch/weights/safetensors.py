"""A file in the format `safetensors`: a length, a header in JSON, and the numbers of all tensors.

Written by hand and not by the library of that name, for two reasons: a checkpoint is copied into it
piece by piece, so that a model which does not fit into memory can be exported, and on a computer
that has neither PyTorch nor numpy. The library takes tensors of theirs, whole.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

from tradewind.base.errors import InvalidValue, NoAccess

DTYPES = {
    "float64": ("F64", 8), "float32": ("F32", 4), "float16": ("F16", 2), "bfloat16": ("BF16", 2),
    "float8_e4m3fn": ("F8_E4M3", 1), "float8_e5m2": ("F8_E5M2", 1), "int64": ("I64", 8),
    "int32": ("I32", 4), "int16": ("I16", 2), "int8": ("I8", 1), "uint64": ("U64", 8),
    "uint32": ("U32", 4), "uint16": ("U16", 2), "uint8": ("U8", 1), "bool": ("BOOL", 1),
}  # fmt: skip
"""By PyTorch's name: the format's, and bytes of a number."""
_ALIGN = 8


class Writer:
    """`tensors`: of each name PyTorch's type and the shape. `put` may be called in any order."""

    def __init__(self, path: Path, tensors: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        self._at: dict[str, int] = {}
        at = 0
        for name, (dtype, shape) in sorted(tensors.items()):
            if dtype not in DTYPES:
                raise InvalidValue(
                    f"{name} is of type {dtype}, which safetensors does not have",
                    hint="write a .pt file instead",
                )
            kind, each = DTYPES[dtype]
            size = prod(shape) * each
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + size]}
            self._at[name] = at
            at += size
        words = json.dumps(header, separators=(",", ":")).encode()
        words += b" " * (-len(words) % _ALIGN)
        head = len(words).to_bytes(8, "little") + words
        self._begin = len(head)
        self.size = len(head) + at
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            if hasattr(os, "posix_fallocate"):  # a full disk is told now, and not by a signal
                os.posix_fallocate(self._handle, 0, self.size)
            else:
                os.ftruncate(self._handle, self.size)
            self._map = mmap.mmap(self._handle, self.size)
        except OSError as error:
            raise NoAccess(f"{path} cannot be written: {error.strerror or error}") from None
        self._map[: len(head)] = head

    def put(self, name: str, offset: int, data: memoryview) -> None:
        """Bytes of a tensor, from so many of its own on."""
        at = self._begin + self._at[name] + offset
        self._map[at : at + len(data)] = data

    def close(self) -> None:
        self._map.flush()
        self._map.close()
        os.fsync(self._handle)
        os.close(self._handle)


def tensors(path: Path) -> dict[str, Any]:
    """A file of ours, as PyTorch's tensors."""
    import torch

    data = bytearray(path.read_bytes())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    names = {kind: getattr(torch, name) for name, (kind, _) in DTYPES.items()}
    found = {}
    for name, each in header.items():
        if name == "__metadata__":
            continue
        begin, end = each["data_offsets"]
        if begin == end:
            found[name] = torch.empty(each["shape"], dtype=names[each["dtype"]])
            continue
        part = torch.frombuffer(
            data, dtype=torch.uint8, offset=8 + length + begin, count=end - begin
        )
        # Copied, because a tensor of eight bytes must begin at a multiple of eight.
        found[name] = part.clone().view(names[each["dtype"]]).reshape(each["shape"])
    return found
