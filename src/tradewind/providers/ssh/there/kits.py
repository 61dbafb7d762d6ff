"""Kits of wheels that machines begin with, where the store that has them is not to be seen from
here: <owner>/kits/<sha256>.tar, sent once."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from tradewind.providers.ssh.there import folder as folders

_KEPT = 3
"""A machine that is just coming up may want the one before."""


def there(owned: Path, sha256: str) -> str:
    """Its path; "": it must be sent."""
    path = owned / "kits" / f"{folders.check(sha256)}.tar"
    with contextlib.suppress(OSError):
        os.utime(path)
        return str(path)
    return ""


def take(owned: Path, sha256: str, data: bytes) -> str:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError("the kit was changed on its way")
    place = owned / "kits"
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = place / f"{folders.check(sha256)}.tar"
    folders.write_bytes(path, data)
    others = sorted(place.glob("*.tar"), key=lambda each: each.stat().st_mtime, reverse=True)
    for each in others[_KEPT:]:
        with contextlib.suppress(OSError):
            each.unlink()
    return str(path)
