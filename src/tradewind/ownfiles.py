"""The folder of this user's own files, and how a file is replaced whole.

`$TRADEWIND_HOME`, by default `~/.tradewind`. Who writes what there says so in its own module.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tradewind.errors import NoAccess

_OLD_S = 600


def home(env: Mapping[str, str] | None = None) -> Path:
    """The folder of this user's own files; it need not exist."""
    chosen = (os.environ if env is None else env).get("TRADEWIND_HOME") or "~/.tradewind"
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise NoAccess(f"there is no folder {chosen}: {error}", hint="set TRADEWIND_HOME") from None


def replace(path: Path, data: bytes) -> None:
    """Atomically: a reader sees the old file or the new one, whole, also after a crash."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise NoAccess(
            f"{path} cannot be written: {error.strerror or error}",
            hint="the old file is untouched; check the permissions, the space, or $TRADEWIND_HOME",
        ) from None
    finally:
        with suppress(OSError):
            beside.unlink()
        with suppress(OSError):
            _sweep(path)


def _sweep(path: Path) -> None:
    """What writers of this file left that were killed while they wrote it."""
    for left in path.parent.glob(f".{path.name}.*.new"):
        pid = left.name.split(".")[-2]
        # The folder may be shared with other computers, whose processes cannot be looked up: what
        # is written takes moments, so an old file is a dead one's there, too.
        old = path.stat().st_mtime - left.stat().st_mtime > _OLD_S
        if pid.isdigit() and old and not Path(f"/proc/{pid}").exists():
            left.unlink(missing_ok=True)
