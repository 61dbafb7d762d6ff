"""Tar files of samples, in the format of WebDataset: members that follow each other and have the
same name up to the first dot are one sample, and what comes after the dot says which field.

Only the heads are read, by memory map, so any sample can then be read by itself. What Python's own
tarfile takes 20 µs a member for takes 2 here.

Files may come from anywhere. Each head moves the reader on by at least its own block, and each
length is compared with what is there before it is used, so nothing in a file can make it read for
ever or reserve more memory than the file is long.
"""

from __future__ import annotations

import io
import mmap
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.torch.data import npyfiles

_BLOCK = 512
_LONGEST_HEAD = 1 << 20
"""Of a name or a pax head: what is longer is none."""

Span = tuple[int, int]
"""Where a field's bytes begin, and where they end."""
Fields = dict[str, Span]


class Tar:
    """One that is open: its samples by number."""

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as stream:
                size = stream.seek(0, io.SEEK_END)
                self._data: Any = (
                    mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
                )
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NoAccess(f"{path} cannot be read: {error.strerror or error}") from None
        self.samples: list[tuple[str, Fields]] = list(_samples(self._data, path))

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, number: int) -> dict[str, Any]:
        key, fields = self.samples[number]
        found: dict[str, Any] = {"__key__": key}
        for name, (start, stop) in fields.items():
            found[name] = self._data[start:stop]
        return found


def _samples(data: Any, path: Path) -> Iterator[tuple[str, Fields]]:
    current, fields = "", Fields()
    for name, start, stop in _members(data, path):
        folder, slash, last = name.rpartition("/")
        stem, dot, field = last.partition(".")
        if not dot or not stem:  # no sample: WebDataset passes over these too
            continue
        key = folder + slash + stem
        if key != current or field.lower() in fields:
            if fields:
                yield current, fields
            current, fields = key, {}
        fields[field.lower()] = (start, stop)
    if fields:
        yield current, fields


def _members(data: Any, path: Path) -> Iterator[tuple[str, int, int]]:
    """Files with their names, and where their bytes are."""
    at, size, long_name, said = 0, len(data), "", dict[str, str]()
    while at + _BLOCK <= size:
        head = data[at : at + _BLOCK]
        if not head[0]:  # two empty blocks end it
            return
        length = _size(said, head[124:136], path, at)
        start, stop = at + _BLOCK, at + _BLOCK + length
        if head[257:262] != b"ustar" or stop > size:
            raise _torn(path, at)
        at = start + -(-length // _BLOCK) * _BLOCK
        kind = head[156:157]
        if kind in (b"L", b"x"):
            if length > _LONGEST_HEAD:
                raise _torn(path, start)
            body = data[start:stop]
            if kind == b"L":
                long_name = _text(body)
            else:
                said = dict(_records(body, path, start))
            continue
        if kind in (b"0", b"\0"):
            yield said.get("path") or long_name or _name(head), start, stop
        if kind != b"g":
            long_name, said = "", {}
    raise _torn(path, size)  # without its end it may have been longer


def _name(head: bytes) -> str:
    prefix = _text(head[345:500]) if head[257:265] == b"ustar\x0000" else ""
    return f"{prefix}/{_text(head[:100])}" if prefix else _text(head[:100])


def _text(field: bytes) -> str:
    return bytes(field).partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _size(said: Mapping[str, str], field: bytes, path: Path, at: int) -> int:
    """As the pax head before says it, else as the file's own head does."""
    if digits := said.get("size", "").lstrip("0"):
        if not _is_number(digits.encode("utf-8", "surrogateescape"), b"0123456789"):
            raise _torn(path, at)
        return int(digits)
    if field[0] & 0x80:  # of large files: binary
        if field[0] != 0x80:  # a negative number
            raise _torn(path, at)
        return int.from_bytes(field[1:], "big")
    octal = field.strip(b"\0 ")
    if octal and not _is_number(octal, b"01234567"):
        raise _torn(path, at)
    return int(octal or b"0", 8)


def _is_number(text: bytes, digits: bytes) -> bool:
    """`int` takes more than digits: signs, blanks, underscores."""
    return 0 < len(text) < 20 and not text.strip(digits)


def _records(body: bytes, path: Path, start: int) -> Iterator[tuple[str, str]]:
    """Of a pax head: `30 path=…` lines, the number being the line's length."""
    at = 0
    while at < len(body):
        blank = body.find(b" ", at, at + 20)
        digits = body[at : max(at, blank)]
        stop = at + int(digits) if _is_number(digits, b"0123456789") else at
        if not max(at, blank) < stop <= len(body):
            raise _torn(path, start + at)
        key, _, value = body[blank + 1 : stop - 1].partition(b"=")
        yield key.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape")
        at = stop


def _torn(path: Path, at: int) -> BadFile:
    return BadFile(
        f"{path} is not a whole tar file: it is damaged at byte {at:,}",
        hint="copy or download it again",
    )


# -- writing ---------------------------------------------------------------------------------------


def write(path: Path, samples: Iterable[tuple[str, Mapping[str, bytes]]]) -> int:
    """A tar file of samples; how many. The same samples make the same bytes."""
    count = 0
    try:
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as tar:
            for key, fields in samples:
                count += 1
                for name, value in fields.items():
                    member = tarfile.TarInfo(f"{key}.{name}")
                    member.size, member.mode = len(value), 0o444
                    tar.addfile(member, io.BytesIO(value))
    except OSError as error:
        raise NoAccess(f"{path} cannot be written: {error.strerror or error}") from None
    return count


def encoded(field: str, value: Any) -> bytes:
    """As bytes, by what the field's name says, as WebDataset does."""
    import json

    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    last = field.rpartition(".")[2]
    if isinstance(value, str):
        return value.encode()
    if last in ("cls", "index", "id") and isinstance(value, int):
        return str(value).encode()
    if last == "json":
        return json.dumps(value).encode()
    out = io.BytesIO()
    if last == "npy":
        import numpy as np

        np.save(out, np.asarray(value), allow_pickle=False)
        return out.getvalue()
    if last in ("pt", "pth"):
        import torch

        torch.save(value, out)
        return out.getvalue()
    raise InvalidValue(
        f"a {type(value).__name__} cannot be written as .{field}",
        hint="give bytes, or name the field .npy, .pth, .json, .txt or .cls",
    )


def decoded(field: str, data: bytes) -> Any:
    """What can be read without guessing; images and sounds stay bytes, for the transform."""
    import json

    last = field.rpartition(".")[2]
    if last in ("txt", "text", "transcript"):
        return data.decode()
    if last in ("cls", "cls2", "class", "count", "index", "inx", "id"):
        return int(data)
    if last in ("json", "jsn"):
        return json.loads(data)
    if last == "npy":
        import torch

        return torch.from_numpy(npyfiles.array(data))
    if last in ("pt", "pth"):
        import torch

        return torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
    return data
