"""A digest of what data consists of, to know it again: some of its values, in their order.

Of a dataset only what it holds is looked at: lists, arrays, tensors, and the indices of a Subset.
No sample is made: that may take long, draw random numbers or open files that workers must open.
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any

FACT = "the samples, or their order (is a split or a shuffle not seeded?)"
_DEPTH = 5
_SOME = 64
_MOST = 4096


def digest(data: Any) -> str:
    found = hashlib.sha256()
    _add(found, data, _DEPTH, set(), [0])
    return found.hexdigest()[:16]


def _add(found: Any, data: Any, depth: int, seen: set[int], count: list[int]) -> None:
    count[0] += 1
    if depth < 0 or count[0] > _MOST:
        return
    if data is None or isinstance(data, (str, bytes, int, float, complex)):
        found.update(f"{data!r:.200}".encode())
    elif hasattr(data, "detach") and hasattr(data, "numel"):
        _add_tensor(found, data)
    elif id(data) not in seen:
        seen.add(id(data))
        _add_inside(found, data, depth, seen, count)


def _add_inside(found: Any, data: Any, depth: int, seen: set[int], count: list[int]) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(data, numpy.ndarray) and data.dtype != object:
        some = data.reshape(-1)[:: max(1, data.size // _SOME)]
        found.update(
            f"{data.shape} {data.dtype}".encode() + numpy.ascontiguousarray(some).tobytes()
        )
    elif isinstance(data, (list, tuple, range)):
        found.update(b"%d" % len(data))
        for each in (*data[:: max(1, len(data) // _SOME)], *data[-1:]):
            _add(found, each, depth - 1, seen, count)
    elif isinstance(data, dict):
        found.update(b"%d" % len(data))
        for key in list(data)[:_SOME]:
            found.update(f"{key!r:.200}".encode())
            _add(found, data[key], depth - 1, seen, count)
    elif (indices := _indices(data)) is not None:
        found.update(repr(indices).encode())
    elif _holds(data):
        for name in sorted(vars(data)):
            value = vars(data)[name]
            if _holds(value) or isinstance(value, (list, tuple, range)) or hasattr(value, "shape"):
                found.update(name.encode())
                _add(found, value, depth - 1, seen, count)


def _holds(data: Any) -> bool:
    """Whether it is a dataset, which may hold others. Other objects (caches, files, generators,
    transforms) change without the data being another."""
    from torch.utils.data import Dataset

    if isinstance(data, Dataset):
        return True
    kind = type(data)
    return hasattr(data, "__dict__") and hasattr(kind, "__getitem__") and hasattr(kind, "__len__")


def _indices(data: Any) -> list[int] | None:
    """Of Hugging Face's datasets: which rows, in which order, after a shuffle or a split."""
    table = getattr(data, "_indices", None)
    if table is None or not hasattr(data, "_fingerprint") or not hasattr(table, "column"):
        return None
    column = table.column(0)
    size = len(column)
    return [size, *(column[at].as_py() for at in range(0, size, max(1, size // _SOME)))]


def _add_tensor(found: Any, tensor: Any) -> None:
    flat = tensor.detach().reshape(-1)
    some = flat[:: max(1, flat.numel() // _SOME)].cpu()
    found.update(f"{tuple(tensor.shape)} {tensor.dtype} {some.tolist()}".encode())
