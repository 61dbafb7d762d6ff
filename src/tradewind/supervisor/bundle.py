"""The user's working folder as one file, packed where the run is submitted.

Left out is what git ignores and what `.tradewindignore` says (ignores.py), and `.git`; `include`
has patterns (model/globs.py) of what is sent nevertheless. What is well known to hold secrets
(secretfiles.py) is refused, unless `.tradewindignore` names it: `!name`. The same content makes the
same bytes, whoever packs it when: names in order, no times, no owners. Links may lead to anywhere
within the folder. `unpack.py` is the other end.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tradewind.base.errors import InvalidValue, NoAccess, NotFound
from tradewind.base.units import format_bytes, format_names
from tradewind.model import globs
from tradewind.model.outputs import code_among
from tradewind.supervisor import ignores, leftout, secretfiles
from tradewind.supervisor.ignores import Ignores
from tradewind.supervisor.leftout import LeftOut

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


@dataclass(frozen=True, slots=True)
class _Walk:
    root: Path
    include: Sequence[str]
    left_out: list[LeftOut] = field(default_factory=list)
    """By git's ignore files."""


def pack(
    folder: Path,
    out: Path,
    *,
    include: Sequence[str] = (),
    outputs: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
) -> Bundle:
    """Writes the bundle to `out`, which lies outside the folder or is ignored there. `outputs`: the
    job's, which no code of its own may be among."""
    entries, _ = _entries(folder, include)
    code = code_among((entry.name for entry in entries), outputs)
    if code:
        raise InvalidValue(
            f"run.outputs names code of the job: {format_names(code, 5)}",
            hint="name only what the job writes, such as out or '*.csv', or move its code",
        )
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


def left_out(folder: Path, include: Sequence[str] = ()) -> list[LeftOut]:
    """What git's ignore files keep out of the bundle of a folder, though a job may need it."""
    return _entries(folder, include)[1]


def _entries(folder: Path, include: Sequence[str]) -> tuple[list[_Entry], list[LeftOut]]:
    if not folder.is_dir():
        raise InvalidValue(f"{folder} is no folder", hint="name the folder with what the job needs")
    walk = _Walk(folder.resolve(), include)
    found = _walk(walk, "", ignores.of(walk.root))
    entries = sorted(found, key=lambda entry: entry.name)
    for pattern in include:
        if not any(globs.fits(entry.name, [pattern]) for entry in entries):
            raise NotFound(
                f"run.include names {pattern}, and there is no such file in {folder}",
                hint="patterns begin at that folder: **/*.bin is in any folder of it",
            )
    return entries, walk.left_out


def _walk(
    walk: _Walk, below: str, rules: Ignores, *, ignored: bool = False, by_git: bool = False
) -> Iterator[_Entry]:
    """`below` is the folder's name in the bundle, "" or ending in /. `ignored`: it is, and only
    what `include` names of it is taken."""
    folder = walk.root / below
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise NoAccess(
            f"{folder} cannot be read: {error.strerror}", hint="or name it in .tradewindignore"
        ) from None
    for entry in entries:
        name = below + entry.name
        path = walk.root / name
        info = entry.stat(follow_symlinks=False)
        is_folder = stat.S_ISDIR(info.st_mode)
        if entry.name == _NEVER:
            continue
        own = entry.name + "/" if is_folder else entry.name
        is_ignored = ignored or rules.ignored(own)
        is_ignored = is_ignored and not globs.fits(name, walk.include)
        tells = by_git if ignored else rules.ignored_by_git(own)
        if is_ignored and not (is_folder and globs.may_hold(name, walk.include)):
            if tells:
                _leave_out(walk, name, path, info)
            continue
        if stat.S_ISLNK(info.st_mode):
            _check_link(walk.root, name)
        elif not is_folder and not stat.S_ISREG(info.st_mode):
            raise InvalidValue(
                f"{path} is a socket, a pipe or a device, which cannot be packed",
                hint="delete it, or name it in .tradewindignore",
            )
        secret = not is_folder and secretfiles.is_secret(name, path)
        if not is_folder:
            yield _Entry(name, path, info, secret and not rules.taken_in(entry.name))
            continue
        there = rules.inside(path, own)
        inner = list(_walk(walk, name + "/", there, ignored=is_ignored, by_git=tells))
        if inner or not is_ignored:
            yield _Entry(name, path, info, exposed=False)
        yield from inner


def _leave_out(walk: _Walk, name: str, path: Path, info: os.stat_result) -> None:
    if leftout.is_noise(path.name, path):
        return
    if stat.S_ISDIR(info.st_mode):
        folder = leftout.weighed(path, name + "/")
        if folder is not None:
            walk.left_out.append(folder)
    elif stat.S_ISREG(info.st_mode) and not secretfiles.is_secret(name, path):
        walk.left_out.append(LeftOut(name, info.st_size))


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
