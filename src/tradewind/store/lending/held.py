"""The pass that a machine holds: one file, which only its user can read, replaced whole.

Supervisor and job find it by `$TRADEWIND_PASS`, a path. Every request reads it again where it has
changed, so what was renewed is used at once, by processes too that were started before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec import json
from msgspec.structs import asdict

from tradewind.base import clock
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, NoAccess
from tradewind.base.ownfiles import replace
from tradewind.store.lending.base import Pass

VARIABLE = "TRADEWIND_PASS"
_SOON = timedelta(seconds=1)
"""Obstore keeps what it was given for as long as that lasts: it is to ask again each time."""


class Held(Pass, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lent_s: float
    """When it was lent at the earliest, by the machine's monotonic clock. providers/boot/first.py
    writes the same."""

    __repr__ = __str__ = Pass.__repr__


def keep(path: Path, lent: Pass, lent_s: float) -> None:
    replace(path, json.encode(Held(**asdict(lent), lent_s=lent_s)))


def read(path: Path) -> Held:
    try:
        return json.decode(path.read_bytes(), type=Held)
    except OSError as error:
        raise NoAccess(f"the pass to the store cannot be read: {path}: {error.strerror}") from None
    except UNREADABLE:
        raise BadFile(f"{path} is not a pass to the store") from None


def parts(scheme: str, bucket: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Where a pass to that bucket is several, each for what lies below a prefix (azure.py): the
    prefixes, the longest first. Empty: there is no pass, or it is one for all."""
    lent = _of(scheme, bucket, env)
    if lent is None or scheme != "az":
        return ()
    return tuple(sorted(lent.credentials, key=len, reverse=True))


def provider(
    scheme: str, bucket: str, env: Mapping[str, str], part: str = ""
) -> Callable[[], dict[str, Any]] | None:
    """What obstore asks for credentials; None where this process holds no pass to that bucket."""
    if _of(scheme, bucket, env) is None:
        return None
    path = Path(env[VARIABLE])
    lock = threading.Lock()
    known: list[Any] = [None, {}]

    def credentials() -> dict[str, Any]:
        with lock:
            try:
                found = path.stat()
                seen = (found.st_ino, found.st_mtime_ns)
            except OSError:
                seen = None
            if seen is None or seen != known[0]:
                given: dict[str, Any] = dict(read(path).credentials)
                known[:] = [seen, {"sas_token": given.get(part, "")} if scheme == "az" else given]
            return {**known[1], "expires_at": clock.now() + _SOON}

    return credentials


def _of(scheme: str, bucket: str, env: Mapping[str, str]) -> Held | None:
    if not env.get(VARIABLE):
        return None
    lent = read(Path(env[VARIABLE]))
    return lent if lent.store_url.split("/")[:3] == f"{scheme}://{bucket}".split("/") else None
