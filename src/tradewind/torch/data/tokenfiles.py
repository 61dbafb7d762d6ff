"""Files of token numbers: what is in them, and how they are written.

`.npy` says its own type. `.bin` is bare numbers, little-endian, 16 bits unless said otherwise, or
has the head of 1,024 bytes that llm.c's tools write (magic number, version, how many tokens).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.store.local import written_whole
from tradewind.torch.data import npyfiles

KINDS = {"uint16": 2, "uint32": 4}
_LLM_C = {20240520: "uint16", 20240801: "uint32"}
_LLM_C_HEAD = 1024
_NPY_HEAD = 128


class TokenFile(Struct, frozen=True):
    path: str
    kind: str
    begin: int
    """Where the first token is, in bytes."""
    tokens: int


def opened(path: Path, kind: str | None) -> TokenFile:
    """Looks at its head and its size. `kind`: of bare numbers, None for the usual."""
    try:
        size = path.stat().st_size
        with path.open("rb") as stream:
            head = stream.read(16)
            npy = _npy(stream, path, size) if head[:6] == b"\x93NUMPY" else None
            if npy is not None:
                return npy
    except OSError as error:
        raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
    if path.suffix == ".npy":
        raise BadFile(f"{path} is not a NumPy file", hint="tw.write_tokens writes them")
    magic, _, count = (int.from_bytes(head[at : at + 4], "little") for at in (0, 4, 8))
    if magic in _LLM_C and size == _LLM_C_HEAD + count * KINDS[_LLM_C[magic]]:
        return TokenFile(str(path), _LLM_C[magic], _LLM_C_HEAD, count)
    kind = kind or "uint16"
    if size % KINDS[kind]:
        raise BadFile(
            f"{path} has {size:,} bytes, which is no whole number of {kind}",
            hint="is it cut off, or of another type? say dtype='uint32', or copy it again",
        )
    return TokenFile(str(path), kind, 0, size // KINDS[kind])


def _npy(stream: Any, path: Path, size: int) -> TokenFile:
    stream.seek(0)
    try:
        shape, dtype = npyfiles.head(stream)
    except ValueError as error:
        raise BadFile(f"{path} is a damaged NumPy file: {error}") from None
    if dtype.str not in ("<u2", "<u4") or len(shape) != 1:
        raise BadFile(
            f"{path} holds {dtype} of shape {shape}, and token files hold one row of uint16 or"
            " uint32",
            hint="tw.write_tokens writes them",
        )
    begin, kind = stream.tell(), dtype.name
    if begin + shape[0] * KINDS[kind] != size:
        raise BadFile(
            f"{path} should have {begin + shape[0] * KINDS[kind]:,} bytes and has {size:,}",
            hint="it was cut off while it was copied: copy it again",
        )
    return TokenFile(str(path), kind, begin, shape[0])


def write_tokens(
    path: str | Path, documents: Iterable[Any], *, vocab: int, end: int | None = None
) -> int:
    """Writes a file of tokens, `.npy` or bare `.bin`; how many there are. `documents` are arrays or
    lists of numbers below `vocab`; after each comes `end`, if there is one. Whole or not at all,
    and never whole in memory."""
    import numpy as np

    target = Path(path)
    if target.suffix not in (".npy", ".bin"):
        raise InvalidValue(f"{target} ends in neither .npy nor .bin", hint="train.npy")
    if not 1 <= vocab <= 1 << 32:
        raise InvalidValue(f"a vocabulary of {vocab} does not go into 32 bits")
    kind = "uint16" if vocab <= 1 << 16 else "uint32"
    head, count = _NPY_HEAD if target.suffix == ".npy" else 0, 0
    with written_whole(target) as stream:
        stream.write(b"\0" * head)
        for number, document in enumerate(documents):
            tokens = np.asarray(document)
            if not tokens.size:
                continue
            _check(tokens, vocab, number)
            if end is not None:
                tokens = np.append(tokens, end)
                _check(tokens[-1:], vocab, number)
            stream.write(tokens.astype(f"<{kind[0]}{KINDS[kind]}").tobytes())
            count += tokens.size
        if head:
            stream.seek(0)
            stream.write(_head(kind, count))
            stream.seek(0, os.SEEK_END)
    return count


def _check(tokens: Any, vocab: int, number: int) -> None:
    if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
        raise InvalidValue(
            f"document {number} is {tokens.dtype} of shape {tokens.shape}, and not a row of tokens",
            hint="give lists or arrays of whole numbers, one for each document",
        )
    low, high = int(tokens.min()), int(tokens.max())
    if low < 0 or high >= vocab:
        raise InvalidValue(
            f"document {number} has the token {low if low < 0 else high}, and vocab is {vocab}",
            hint="vocab is the number of different tokens, the special ones too",
        )


def _head(kind: str, count: int) -> bytes:
    """Of a `.npy` file, always as long, so that it can be written when the number is known."""
    said = f"{{'descr': '<u{KINDS[kind]}', 'fortran_order': False, 'shape': ({count},), }}"
    room = _NPY_HEAD - 10
    return b"\x93NUMPY\x01\x00" + room.to_bytes(2, "little") + said.ljust(room - 1).encode() + b"\n"
