"""The user's working folder as one file, packed where the run is submitted.

Left out is what git ignores and what `.tradewindignore` says (ignores.py), and `.git`. What is well
known to hold secrets (secretfiles.py) is refused, unless `.tradewindignore` names it: `!name`. The
same content
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

from tradewind.errors import InvalidValue, NoAccess
from tradewind.supervisor import ignores, secretfiles
from tradewind.supervisor.ignores import Ignores
from tradewind.units import format_bytes, format_names

MOST_BYTES = 100_000_000
MOST_FILES = 100_000
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
    exposed: bool
    """It holds a secret, by its name, and nobody has asked for it."""


def pack(folder: Path, out: Path, *, most_bytes: int = MOST_BYTES) -> Bundle:
    """Writes the bundle to `out`, which lies outside the folder or is ignored there."""
    if not folder.is_dir():
        raise InvalidValue(f"{folder} is no folder", hint="name the folder with what the job needs")
    root = folder.resolve()
    entries = sorted(_walk(root, "", ignores.of(root)), key=lambda entry: entry.name)
    exposed = [entry.name for entry in entries if entry.exposed]
    if exposed:
        raise InvalidValue(
            f"{folder} has files that hold secrets, by their names, and all who may read the store"
            f" could read them: {format_names(exposed, 5)}",
            hint="name them in .tradewindignore, and what the job needs of them in run.secrets; if"
            f" it is to be sent nevertheless, write !{exposed[0].rpartition('/')[2]} there",
        )
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


def _walk(root: Path, below: str, rules: Ignores) -> Iterator[_Entry]:
    """`below` is the folder's name in the bundle, "" or ending in /."""
    folder = root / below
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise NoAccess(
            f"{folder} cannot be read: {error.strerror}", hint="or name it in .tradewindignore"
        ) from None
    for entry in entries:
        name = below + entry.name
        info = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(info.st_mode)
        if entry.name == _NEVER or rules.ignored(entry.name + "/" if is_folder else entry.name):
            continue
        if stat.S_ISLNK(info.st_mode):
            _check_link(root, name)
        elif not is_folder and not stat.S_ISREG(info.st_mode):
            raise InvalidValue(
                f"{root / name} is a socket, a pipe or a device, which cannot be packed",
                hint="delete it, or name it in .tradewindignore",
            )
        secret = not is_folder and secretfiles.is_secret(name, root / name)
        yield _Entry(name, root / name, info, secret and not rules.taken_in(entry.name))
        if is_folder:
            inner = rules.inside(root / name, entry.name + "/")
            yield from _walk(root, name + "/", inner)


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
