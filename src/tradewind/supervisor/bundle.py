"""The user's working folder as one file, packed where the run is submitted.

Left out is what `.gitignore` and `.tradewindignore` say (git's rules, in every folder; the second
file has the last word, and `!name` there takes something in again), and `.git`. The same content
makes the same bytes, whoever packs it when: names in order, no times, no owners. Links may lead to
anywhere within the folder. `unpack.py` is the other end.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.errors import InvalidValue, NoAccess
from tradewind.units import format_bytes

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MOST_BYTES = 100_000_000
MOST_FILES = 100_000
_IGNORE = (".gitignore", ".tradewindignore")
_NEVER = ".git"
_LARGEST = 5


@dataclass(frozen=True, slots=True)
class Bundle:
    path: Path
    files: int
    content_bytes: int
    """Of the files, before they are compressed."""
    sha256: str


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    path: Path
    info: os.stat_result


def pack(folder: Path, out: Path, *, most_bytes: int = MOST_BYTES) -> Bundle:
    """Writes the bundle to `out`, which lies outside the folder or is ignored there."""
    if not folder.is_dir():
        raise InvalidValue(f"{folder} is no folder", hint="name the folder with what the job needs")
    entries = sorted(_walk(folder.resolve(), "", []), key=lambda entry: entry.name)
    files = [entry for entry in entries if stat.S_ISREG(entry.info.st_mode)]
    total = sum(entry.info.st_size for entry in files)
    if total > most_bytes or len(entries) > MOST_FILES:
        raise _too_large(folder, files, total, most_bytes)
    try:
        with (
            out.open("wb") as raw,
            # Without a name and a time in its head, or no two were alike.
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0, compresslevel=6) as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for entry in entries:
                _add(tar, entry)
        with out.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise NoAccess(f"{folder} cannot be packed: {error}") from None
    return Bundle(out, len(files), total, digest)


def _walk(root: Path, below: str, rules: list[tuple[str, GitIgnoreSpec]]) -> Iterator[_Entry]:
    """`below` is the folder's name in the bundle, "" or ending in /."""
    folder = root / below
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        own = _rules(folder)
    except OSError as error:
        raise NoAccess(
            f"{folder} cannot be read: {error.strerror}", hint="or name it in .tradewindignore"
        ) from None
    rules = [(below, own), *rules] if own else rules
    for entry in entries:
        name = below + entry.name
        info = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(info.st_mode)
        if entry.name == _NEVER or _ignored(name + "/" if is_folder else name, rules):
            continue
        if stat.S_ISLNK(info.st_mode):
            _check_link(root, name)
        elif not is_folder and not stat.S_ISREG(info.st_mode):
            raise InvalidValue(
                f"{root / name} is a socket, a pipe or a device, which cannot be packed",
                hint="delete it, or name it in .tradewindignore",
            )
        yield _Entry(name, root / name, info)
        if is_folder:
            yield from _walk(root, name + "/", rules)


def _rules(folder: Path) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    lines: list[str] = []
    for name in _IGNORE:
        path = folder / name
        if path.is_file():
            lines += path.read_text("utf-8", "surrogateescape").splitlines()
    return GitIgnoreSpec.from_lines(lines) if lines else None


def _ignored(name: str, rules: list[tuple[str, GitIgnoreSpec]]) -> bool:
    """The nearest folder that has a rule for it decides."""
    for below, spec in rules:
        verdict = spec.check_file(name[len(below) :]).include
        if verdict is not None:
            return verdict
    return False


def _check_link(root: Path, name: str) -> None:
    link = root / name
    target = link.readlink()
    if target.is_absolute() or not link.resolve().is_relative_to(root):
        raise InvalidValue(
            f"{link} is a link to {target}, outside of what is packed",
            hint="put what it leads to into the folder, or name the link in .tradewindignore",
        )


def _add(tar: tarfile.TarFile, entry: _Entry) -> None:
    info = tarfile.TarInfo(entry.name)
    mode = entry.info.st_mode
    if stat.S_ISLNK(mode):
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, str(entry.path.readlink()), 0o777
        tar.addfile(info)
    elif stat.S_ISDIR(mode):
        info.type, info.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(info)
    else:
        info.size = entry.info.st_size
        info.mode = 0o755 if mode & stat.S_IXUSR else 0o644
        with entry.path.open("rb") as stream:
            tar.addfile(info, stream)


def _too_large(folder: Path, files: list[_Entry], total: int, most: int) -> InvalidValue:
    largest = sorted(files, key=lambda entry: -entry.info.st_size)[:_LARGEST]
    named = ", ".join(f"{each.name} ({format_bytes(each.info.st_size)})" for each in largest)
    return InvalidValue(
        f"{folder} is too large to be sent with a job: {len(files):,} files,"
        f" {format_bytes(total)} of at most {format_bytes(most)}. The largest are {named}",
        hint="name data, checkpoints and environments in .tradewindignore; let the job fetch what"
        " it reads, or install it in `setup`",
    )
