"""The heads of NumPy's `.npy` files, read without believing them: a file of a hundred bytes may say
that it holds a terabyte, and NumPy would reserve that before it reads."""

from __future__ import annotations

import io
from math import prod
from typing import Any


def head(stream: Any) -> tuple[tuple[int, ...], Any]:
    """Shape and type; the stream is then where the numbers begin. ValueError says what is wrong."""
    import numpy as np

    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    except Exception as error:  # NumPy has Python's parser read it, which fails in many ways
        raise ValueError(f"its head cannot be read: {error}") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"shape {shape}")
    return shape, dtype


def array(data: bytes) -> Any:
    """All of it; ValueError where it is not such a file, or of objects, which would be pickles."""
    import numpy as np

    stream = io.BytesIO(data)
    shape, dtype = head(stream)
    size = prod(shape) * dtype.itemsize
    if stream.tell() + size != len(data):
        raise ValueError(
            f"{size:,} bytes should follow its head, not {len(data) - stream.tell():,}"
        )
    stream.seek(0)
    return np.load(stream, allow_pickle=False)
