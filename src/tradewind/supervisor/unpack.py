"""A bundle into a folder, trusting nothing in it.

Whoever can write into the store can write a bundle. It may fill the folder with files, folders and
links that stay within it, and nothing else: no absolute names, no `..`, no link that leads outside,
no hard links, devices or pipes, no bits that change who runs a file, no more bytes than allowed,
also of those that headers and padding take. Links are made after everything else, so no file is
ever written through one. A bundle that breaks a rule is refused whole, as InvalidValue, and BadFile
is one that cannot be read.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Protocol

from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.base.units import format_bytes

MOST_BYTES = 1 << 30
MOST_MEMBERS = 200_000


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


class _Limited:
    """A stream that ends in an error before it has given more than `most` bytes."""

    def __init__(self, stream: _Readable, most: int) -> None:
        self._stream, self._left, self._most = stream, most, most

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self._left:
            size = self._left + 1  # a header may ask for more than there is
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _refused(f"it is larger than {format_bytes(self._most)} when unpacked")
        return data


def unpack(bundle: Path, folder: Path, *, most_bytes: int = MOST_BYTES) -> None:
    """Fills `folder`, which is made anew; after an error there is none."""
    beside = folder.with_name(f".{folder.name}.new")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        with gzip.open(bundle, "rb") as stream:
            limited = _Limited(stream, most_bytes)
            with tarfile.open(fileobj=limited, mode="r|") as tar:  # type: ignore[call-overload]
                _fill(tar, beside)
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, UnicodeError) as error:
        raise BadFile(f"the bundle {bundle} cannot be read: {error}") from None
    except OSError as error:
        raise NoAccess(f"the bundle {bundle} cannot be unpacked: {error}") from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _fill(tar: tarfile.TarFile, folder: Path) -> None:
    links: list[tuple[PurePosixPath, str]] = []
    for count, member in enumerate(tar, 1):
        if count > MOST_MEMBERS:
            raise _refused(f"it has more than {MOST_MEMBERS:,} members")
        name = _checked(member.name)
        target = folder / name
        if member.isdir():
            target.mkdir(parents=True, exist_ok=True)
        elif member.issym():
            links.append((name, member.linkname))
        elif member.isreg() and not member.issparse():
            target.parent.mkdir(parents=True, exist_ok=True)
            source = tar.extractfile(member)
            assert source is not None
            mode = 0o755 if member.mode & 0o100 else 0o644
            try:
                handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
            except FileExistsError:
                raise _refused(f"{name} is in it twice") from None
            with os.fdopen(handle, "wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
        else:
            raise _refused(f"{member.name} is neither a file nor a folder nor a link")
    _link(folder, links)


def _link(folder: Path, links: list[tuple[PurePosixPath, str]]) -> None:
    for name, target in links:
        place = PurePosixPath(target)
        if place.is_absolute() or not target or "\0" in target:
            raise _refused(f"the link {name} leads to {target!r}")
    for name, target in links:
        path = folder / name
        if any((folder / above).is_symlink() for above in name.parents):
            raise _refused(f"{name} lies behind a link")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.symlink_to(target)
        except FileExistsError:
            raise _refused(f"{name} is in it twice") from None
    # Only now: two links that each stay inside can lead outside together.
    root = folder.resolve()
    for name, target in links:
        try:
            leads = (folder / name).resolve()
        except (RuntimeError, OSError):
            raise _refused(f"the link {name} leads in a circle") from None
        if not leads.is_relative_to(root):
            raise _refused(f"the link {name} leads to {target!r}, outside of the folder")


def _checked(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name:
        raise _refused(f"{name!r} would be written outside of the folder")
    return path


def _refused(why: str) -> InvalidValue:
    return InvalidValue(f"the bundle is refused: {why}", hint="submit the job again")
