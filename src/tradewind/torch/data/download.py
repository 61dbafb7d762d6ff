"""`tw.download`: a file from the web or a store, whole or not at all.

On a host one process downloads while the others wait. It comes in parts, several at once, goes on
where it was cut off, is compared with its checksum, and only then gets its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path

from tradewind.base.errors import BadFile, InvalidValue, NoAccess
from tradewind.base.units import parse_bytes
from tradewind.torch.data import locks, parts, words
from tradewind.torch.data.progress import Progress
from tradewind.torch.data.sources import Source, name_of, shown, source


def download(
    url: str | Path,
    to: str | Path | None = None,
    *,
    sha256: str | None = None,
    max_bytes: str | int | None = None,
    quiet: bool = False,
    patience_s: float = parts.PATIENCE_S,
) -> Path:
    """Downloads `url` (`https://…`, or an object of a store: `s3://bucket/key`, `gs://…`, `az://…`,
    `file://…`) to the file `to`, or into the folder `to`; where it is there already, nothing is
    asked for. Returns the file.

    With `sha256` the content is compared, also that of a file which is there; plain `http://` needs
    it. What is larger than `max_bytes` (`"10GB"`) is refused before it is on the disk; what does
    not say how large it is may take half of what is free there. `patience_s`: how long it may
    stand still before it is given up."""
    wanted, most = _checked(sha256), _most(max_bytes)
    if not isinstance(url, str | Path):
        raise InvalidValue(f"{url!r} is not an address", hint="https://… or s3://bucket/key")
    source_ = source(str(url), checked=bool(wanted))
    target = _target(str(url), to)
    say = words.say if not quiet and words.first() else lambda _: None
    if _is_there(target, wanted):
        return target
    lock = target.with_name(f".{target.name}.lock")
    with locks.held(lock, str(target), words.say):
        if _is_there(target, wanted):
            return target
        if target.exists():
            say(f"{target} has another checksum than {wanted}: it is downloaded again")
        fetched(source_, target, wanted, say=say, patience_s=patience_s, most_bytes=most)
        if wanted:
            _remember(target, wanted)
    return target


def fetched(
    source_: Source,
    target: Path,
    sha256: str,
    *,
    say: words.Say,
    patience_s: float = parts.PATIENCE_S,
    at_once: int = 8,
    most_bytes: int | None = None,
) -> None:
    """Brings it there; the caller holds a lock."""
    part = target.with_name(f".{target.name}.part")
    progress = Progress(target.name, say)
    trouble = words.Seldom(words.say)
    for last in (False, True):
        went_on = parts.fetch(
            source_,
            part,
            checked=bool(sha256),
            at_once=at_once,
            patience_s=patience_s,
            most_bytes=most_bytes,
            told=progress,
            trouble=lambda text: trouble(f"{target.name}: {text}"),
        )
        got = sha256_of(part) if sha256 else ""
        if got == sha256:
            break
        size = part.stat().st_size
        parts.forget(part)
        if last or not went_on:
            raise BadFile(
                f"{shown(source_.url)} has another checksum: its {size:,} bytes are sha256 {got},"
                f" and {sha256} was asked for",
                hint="is it another version? nothing was kept of it",
            )
        say(f"{target.name}: what was there of it is damaged; begins again")
    try:
        part.replace(target)
        _synced(target.parent)
    except OSError as error:
        raise NoAccess(f"{target} cannot be written: {error.strerror or error}") from None
    progress.done(", checksum right" if sha256 else "")


def sha256_of(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _checked(sha256: str | None) -> str:
    if sha256 is None:
        return ""
    text = sha256.strip().lower().removeprefix("sha256:")
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise InvalidValue(
            f"{sha256!r} is no SHA-256 checksum", hint="64 digits from 0 to f, as sha256sum prints"
        )
    return text


def _most(given: str | int | None) -> int | None:
    if given is None:
        return None
    most = parse_bytes(given) if isinstance(given, str) else int(given)
    if most < 0:
        raise InvalidValue(f"a file cannot have {given!r} bytes", hint="max_bytes='10GB'")
    return most


def _target(url: str, to: str | Path | None) -> Path:
    given = str(to) if to is not None else ""
    folder = to is None or given.endswith("/") or Path(given).is_dir()
    path = Path(given).expanduser()
    if not folder:
        return path.absolute()
    name = name_of(url)
    if not name or name in (".", ".."):
        raise InvalidValue(f"{url!r} names no file", hint="say the file's name in `to`")
    return (path / name).absolute()


def _is_there(target: Path, sha256: str) -> bool:
    if target.is_dir():
        raise InvalidValue(f"{target} is a folder", hint="name a file, or end it in /")
    if not target.exists():
        return False
    if not sha256 or _remembered(target) == sha256:
        return True
    if sha256_of(target) != sha256:
        return False
    _remember(target, sha256)
    return True


# -- checksums that were compared already: hashing 100 GB anew at each start takes minutes ---------


def _sums(target: Path) -> Path:
    return target.with_name(f".{target.name}.sum")


def _remember(target: Path, sha256: str) -> None:
    with suppress(OSError):
        about = target.stat()
        said = {"sha256": sha256, "size": about.st_size, "written": about.st_mtime_ns}
        beside = target.with_name(f".{target.name}.sum.{os.getpid()}")
        beside.write_text(json.dumps(said))
        beside.replace(_sums(target))


def _remembered(target: Path) -> str:
    try:
        said, about = json.loads(_sums(target).read_bytes()), target.stat()
        same = (about.st_size, about.st_mtime_ns) == (said["size"], said["written"])
        return str(said["sha256"]) if same else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _synced(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
