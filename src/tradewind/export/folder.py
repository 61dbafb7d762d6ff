"""An export in a folder of the user's: what differs, and what was edited by hand.

`.tradewind-export.json` holds the hash of each file as it was written, by kind. What is there with
that hash may be replaced. What has another, or was never ours, somebody has written: it is kept,
unless `overwrite`. A file that the kind no longer has is removed if nobody edited it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from tradewind.base import ownfiles
from tradewind.base.errors import BadFile, NoAccess
from tradewind.export.exported import Exported, File

RECORD = ".tradewind-export.json"
FORMAT = 1
NEW, SAME, CHANGED, EDITED, GONE = "new", "same", "changed", "edited", "gone"
_LARGEST = 10_000_000


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    what: str
    """`new`; `same` as it is there; `changed` since it was written; `edited` by hand since, and
    would be another; `gone`: the kind no longer has it."""
    old: str | None = None
    file: File | None = None
    """None: it is to be removed."""

    @property
    def diff(self) -> str:
        new = self.file.text if self.file is not None else ""
        lines = unified_diff(
            (self.old or "").splitlines(keepends=True),
            new.splitlines(keepends=True),
            self.path if self.old is not None else "/dev/null",
            self.path if self.file is not None else "/dev/null",
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def compared(folder: Path, kind: str, exported: Exported) -> list[Change]:
    """What writing it would do, by path."""
    record = _record(folder)
    mine = record.get(kind, {})
    found = []
    for path, file in exported.files.items():
        old = _read(folder, path)
        if old is None:
            found.append(Change(path, NEW, None, file))
        elif old == file.text and os.access(folder / path, os.X_OK) >= file.executable:
            found.append(Change(path, SAME, old, file))
        else:
            what = CHANGED if mine.get(path) == hash_of(old) else EDITED
            found.append(Change(path, what, old, file))
    others = {path for name, files in record.items() if name != kind for path in files}
    for path, digest in mine.items():
        if path not in exported.files and path not in others:
            old = _read(folder, path)
            if old is not None:
                found.append(Change(path, GONE if hash_of(old) == digest else EDITED, old, None))
    return sorted(found, key=lambda change: change.path)


def write(folder: Path, kind: str, changes: Sequence[Change], *, overwrite: bool) -> None:
    """Each file whole or not at all. What is `edited` is left, and its record with it, unless
    `overwrite`."""
    record = _record(folder)
    mine = dict(record.get(kind, {}))
    for change in changes:
        if change.what == EDITED and not overwrite:
            continue
        if change.file is None:
            _remove(folder, change.path)
            mine.pop(change.path, None)
            continue
        if change.what != SAME:
            _put(folder, change.path, change.file)
        mine[change.path] = hash_of(change.file.text)
    text = json.dumps(
        {"format": FORMAT, "kinds": {**record, kind: dict(sorted(mine.items()))}}, indent=2
    )
    _put(folder, RECORD, File(text + "\n"))


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _record(folder: Path) -> Mapping[str, Mapping[str, str]]:
    text = _read(folder, RECORD)
    if text is None:
        return {}
    wrong = BadFile(
        f"{folder / RECORD} is no record of exports",
        hint="remove it: then what is in the folder counts as edited by hand, and is kept",
    )
    try:
        found = json.loads(text)
        kinds = found["kinds"]
        right = found["format"] == FORMAT and all(
            isinstance(digest, str) and isinstance(path, str)
            for files in kinds.values()
            for path, digest in files.items()
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise wrong from None
    if not right:
        raise wrong
    checked: Mapping[str, Mapping[str, str]] = kinds
    for files in checked.values():
        for path in files:
            if Path(path).is_absolute() or ".." in Path(path).parts:
                raise wrong
    return checked


def _read(folder: Path, path: str) -> str | None:
    """None: there is none. A link that leads elsewhere is not followed: nothing outside is ours."""
    _within(folder, path)
    try:
        with (folder / path).open("rb") as stream:
            data = stream.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NoAccess(f"{folder / path} cannot be read: {error.strerror or error}") from None
    if len(data) > _LARGEST:
        raise NoAccess(f"{folder / path} is too large for a file of ours", hint="another --out")
    return data.decode("utf-8", "surrogateescape")


def _within(folder: Path, path: str) -> None:
    for each in _ways(folder, path):
        if each.is_symlink():
            raise NoAccess(
                f"{each} is a link, and exports follow none", hint="remove it, or another --out"
            )


def _ways(folder: Path, path: str) -> Iterator[Path]:
    here = folder
    for part in Path(path).parts:
        here = here / part
        yield here


def _put(folder: Path, path: str, file: File) -> None:
    """As other files of a repository: for all to read, as the umask allows."""
    _within(folder, path)
    ownfiles.replace(folder / path, file.text.encode("utf-8", "surrogateescape"), public=True)
    if file.executable:
        mode = (folder / path).stat().st_mode
        (folder / path).chmod(mode | (mode & 0o444) >> 2)


def _remove(folder: Path, path: str) -> None:
    try:
        (folder / path).unlink()
    except OSError as error:
        raise NoAccess(f"{folder / path} cannot be removed: {error.strerror or error}") from None
