"""A tensor as `torch.save` would write it, without its content: what comes before and after it.

PyTorch reads each piece of a distributed checkpoint by `torch.load`, so each is a zip file of its
own. Its framing depends only on the type and the shape: it is made once, and each save puts only
the numbers in between. The zip's check sum of them is left 0: PyTorch is built not to look at it,
and could not be given it before the last byte is known. Ours are in the manifest.
"""

from __future__ import annotations

import io
import pickle
import struct
from collections import OrderedDict
from typing import Any

ALIGN = 64  # as torch.save does: where numbers begin, counted from the zip's first byte
_BIG = 0xFFFFFFFF
_FOLDER = "archive/"


def frame(dtype: Any, shape: tuple[int, ...]) -> tuple[bytes, bytes]:
    """What comes before the numbers and after them; the first is a multiple of ALIGN long."""
    many = 1
    for each in shape:
        many *= each
    size = many * dtype.itemsize
    head, listed = bytearray(), bytearray()
    records = 0
    for name, data in (
        ("data.pkl", _pickled(dtype, shape, many, size)),
        ("byteorder", b"little"),
        ("version", b"3\n"),
    ):
        _add(head, listed, name, len(data), _crc(data))
        head += data
        records += 1
    _add(head, listed, "data/0", size, 0)
    return bytes(head), _end(bytes(listed), records + 1, len(head) + size)


def _crc(data: bytes) -> int:
    import zlib

    return zlib.crc32(data)


class _Numbers:
    """Stands for the storage, which pickling names only."""


class _Tensor:
    def __init__(self, how: Any) -> None:
        self._how = how

    def __reduce__(self) -> Any:
        return self._how


def _pickled(dtype: Any, shape: tuple[int, ...], many: int, size: int) -> bytes:
    """By what PyTorch itself says of an empty tensor of the type, with another shape."""
    import torch

    rebuild, like = torch.empty(0, dtype=dtype).__reduce_ex__(2)
    storage = like[0]
    if isinstance(storage, torch.UntypedStorage):  # younger types have no storage of their own
        named = ("storage", torch.UntypedStorage, "0", "cpu", size)
    else:
        named = ("storage", getattr(torch, storage._pickle_storage_type()), "0", "cpu", many)
    stride, step = [], 1
    for each in reversed(shape):
        stride.append(step)
        step *= max(each, 1)
    how = [_Numbers(), 0, shape, tuple(reversed(stride)), False, OrderedDict(), *like[6:]]

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing: Any) -> Any:
            return named if isinstance(thing, _Numbers) else None

    out = io.BytesIO()
    Pickler(out, protocol=2).dump(_Tensor((rebuild, tuple(how))))
    return out.getvalue()


def _add(head: bytearray, listed: bytearray, name: str, size: int, crc: int) -> None:
    """A local header at the end of `head`, padded so that the content is aligned, and its line in
    the table of contents."""
    at, path = len(head), (_FOLDER + name).encode()
    big = size >= _BIG
    sizes = struct.pack("<HHQQ", 1, 16, size, size) if big else b""
    short = _BIG if big else size
    start = at + 30 + len(path) + len(sizes) + 4
    pad = -start % ALIGN
    extra = sizes + struct.pack("<2sH", b"FB", pad) + b"Z" * pad
    common = struct.pack("<HHHHHIII", 45 if big else 20, 0x800, 0, 0, 0x21, crc, short, short)
    head += b"PK\3\4" + common + struct.pack("<HH", len(path), len(extra)) + path + extra
    listed += b"PK\1\2" + struct.pack("<H", 45 if big else 20) + common
    # No header begins beyond 4 GiB: the numbers come last.
    listed += struct.pack("<HHHHHII", len(path), len(sizes), 0, 0, 0, 0, at) + path + sizes


def _end(listed: bytes, records: int, at: int) -> bytes:
    end = b""
    if at >= _BIG:
        counts = struct.pack("<QQQQ", records, records, len(listed), at)
        end += b"PK\6\6" + struct.pack("<QHHII", 44, 45, 45, 0, 0) + counts
        end += b"PK\6\7" + struct.pack("<IQI", 0, at + len(listed), 1)
    short = struct.pack("<HHIIH", records, records, len(listed), min(at, _BIG), 0)
    return listed + end + b"PK\5\6" + struct.pack("<HH", 0, 0) + short
