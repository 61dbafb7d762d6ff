"""Counts what this process asks of a bucket, as S3 and Cloud Storage charge for it (docs/aws.md and
docs/gcp.md have the rules).

S3 charges for a request that was answered, whatever the answer, unless that is 5xx; Cloud Storage
for what was granted. So what obstore tries again by itself, after 5xx and after answers that never
came, is counted once.

Each process keeps its totals in a file of its own, written after each request, so that they outlive
it however it ends: in the folder that `$TRADEWIND_USAGE` names, as on a machine, else in that of
this user's own files. There a process goes on with the record of one that is gone, so that there
are only as many as were ever running at once. `total` adds up what all processes have asked of one
bucket. A file is one record of fixed size, which is written at one place: a reader sees the old or
the new one. A disk that cannot take it costs the count, and nothing else.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import NoAccess
from tradewind.base.ownfiles import home, make_folder
from tradewind.model.usage import Usage

VARIABLE = "TRADEWIND_USAGE"
FIELDS = ("writes", "reads", "bytes_in", "bytes_out", "gone", "byte_s")
_RECORD = struct.Struct("<5Q2Q")  # byte_s has two: bytes times seconds may come to more than 2⁶⁴
_LOW = (1 << 64) - 1
_SUFFIX = ".used"
_MOST = 20_000
"""Objects whose weight is remembered."""
_FIRST = "s3"
_REFUSALS = {_FIRST: True, "gs": False}
"""By scheme, whether 4xx are charged. Of other stores nothing is counted."""
_PAGE = 1000
"""Keys of a listing in one answer."""
_REFUSED = re.compile(r"\bstatus (?:code: )?4\d\d\b")
_FREE = re.compile(r"\b(NoSuchBucket|ExpiredToken)\b")
"""Of the 4xx that S3 does not charge for, those that can befall us."""


class Meter:
    """Of one process and one bucket. Safe from several threads, and in a fork begins anew."""

    def __init__(self, bucket: str, folder: Path | None = None, *, goes_on: bool = False) -> None:
        """`bucket`: as bucket_of names it. `goes_on`: with the record of a process that is gone, if
        there is one."""
        self.bucket, self._folder, self._goes_on = bucket, folder, goes_on
        self._refusals = _REFUSALS.get(bucket.rpartition(":")[0] or _FIRST, True)
        self._lock = threading.Lock()
        self._total = Usage()
        self._weights: dict[str, tuple[int, float]] = {}  # path → bytes, since when
        self._handle: int | None = None
        self._before = Usage()

    @property
    def total(self) -> Usage:
        return self._total

    def add(
        self,
        *,
        writes: int = 0,
        reads: int = 0,
        bytes_in: int = 0,
        bytes_out: int = 0,
        byte_s: int = 0,
        gone: int = 0,
    ) -> None:
        more = Usage(
            writes=writes, reads=reads, bytes_in=bytes_in, bytes_out=bytes_out, byte_s=byte_s,
            gone=gone,
        )  # fmt: skip
        with self._lock:
            self._total += more
            with suppress(OSError):
                self._keep()

    @contextmanager
    def refused(self, **counted: int) -> Iterator[None]:
        """Counts this if what is asked is refused, which is charged as well; what is granted, the
        caller counts."""
        try:
            yield
        except Exception as error:
            if self.is_charged(error):
                self.add(**counted)
            raise

    def is_charged(self, error: Exception) -> bool:
        """Whether a request that failed is paid for."""
        return self._refusals and was_answered(error)

    @contextmanager
    def writing(self, size: int, requests: int = 1) -> Iterator[None]:
        with self.refused(writes=1, bytes_in=size if requests == 1 else 0):
            yield
        self.add(writes=requests, bytes_in=size)

    def saw(self, page: Iterable[Mapping[str, Any]]) -> None:
        """Of a listing: should something of it be removed, it is known what that weighs."""
        with self._lock:
            for item in page:
                self._weights[item["path"]] = (item["size"], item["last_modified"].timestamp())
            self._forget()

    def replaced(self, path: str, size: int) -> None:
        """The one before it, if we know of one, stays for a while as an older version."""
        self.removed(path)
        with self._lock:
            self._weights[path] = (size, clock.epoch())
            self._forget()

    def removed(self, path: str) -> None:
        """What nobody here has written or seen listed is not known, and not counted."""
        with self._lock:
            size, since_s = self._weights.pop(path, (0, 0.0))
        if size:
            self.add(byte_s=int(size * max(clock.epoch() - since_s, 0.0)), gone=size)

    def _forget(self) -> None:
        while len(self._weights) > _MOST:
            del self._weights[next(iter(self._weights))]

    def listed(self, keys: int) -> None:
        self.add(writes=max(1, -(-keys // _PAGE)))

    def _keep(self) -> None:
        if self._folder is None:
            return
        if self._handle is None:
            make_folder(self._folder)
            self._handle = (self._goes_on and self._taken_over(self._folder)) or self._new(
                self._folder
            )
        os.pwrite(self._handle, packed(self._before + self._total), 0)

    def _new(self, folder: Path) -> int:
        name = f"{self.bucket}.{clock.new_id('p')}{_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        handle = os.open(folder / name, flags, 0o600)
        self._before = Usage()
        if self._goes_on and not _is_locked(handle):  # somebody was quicker, and has it now
            os.close(handle)
            return self._new(folder)
        return handle

    def _taken_over(self, folder: Path) -> int | None:
        """Who writes to one holds its lock, for as long as it lives."""
        for path in folder.glob(f"*{_SUFFIX}"):
            if path.name.rsplit(".", 2)[0] != self.bucket:
                continue
            handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            if _is_locked(handle):
                self._before = _unpacked(os.pread(handle, _RECORD.size, 0)) or Usage()
                return handle
            os.close(handle)
        return None

    def forked(self) -> None:
        """In the child: what was counted is its parent's, which goes on with it."""
        self._lock = threading.Lock()
        self._total = Usage()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


_meters: dict[tuple[str, str], Meter] = {}
_lock = threading.Lock()


def of(bucket: str, env: Mapping[str, str]) -> Meter:
    """This process's."""
    named = env.get(VARIABLE, "")
    folder = Path(named) if named else own_folder(env)
    with _lock:
        if (bucket, str(folder)) not in _meters:
            _meters[bucket, str(folder)] = Meter(bucket, folder, goes_on=not named)
        return _meters[bucket, str(folder)]


def own_folder(env: Mapping[str, str] | None = None) -> Path | None:
    """Where this computer's user has the records; None: there is no such place."""
    try:
        return home(env) / "used"
    except NoAccess:
        return None


def _is_locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _forked() -> None:
    global _lock
    _lock = threading.Lock()
    for meter in _meters.values():
        meter.forked()


os.register_at_fork(after_in_child=_forked)


def was_answered(error: Exception) -> bool:
    """Whether a request that failed was refused, in a way that S3 charges for."""
    from obstore import exceptions

    told = (
        exceptions.AlreadyExistsError, exceptions.NotFoundError, exceptions.NotModifiedError,
        exceptions.PermissionDeniedError, exceptions.PreconditionError,
        exceptions.UnauthenticatedError, FileNotFoundError, PermissionError,
    )  # fmt: skip
    words = str(error)
    if _FREE.search(words):
        return False
    return isinstance(error, told) or bool(_REFUSED.search(words))


def packed(usage: Usage) -> bytes:
    return _RECORD.pack(
        *(getattr(usage, name) for name in FIELDS[:5]), usage.byte_s & _LOW, usage.byte_s >> 64
    )


def total(folder: Path, bucket: str) -> Usage | None:
    """Of all processes that have left a record there; None: none has."""
    found = None
    for path in folder.glob(f"*{_SUFFIX}"):
        if path.name.rsplit(".", 2)[0] != bucket:
            continue
        with suppress(OSError):
            one = _unpacked(path.read_bytes())
            if one is not None:
                found = one if found is None else found + one
    return found


def _unpacked(data: bytes) -> Usage | None:
    try:
        *usual, low, high = _RECORD.unpack(data)
    except struct.error:
        return None
    return Usage(**dict(zip(FIELDS, (*usual, low + (high << 64)), strict=True)))


def bucket_of(store_url: str) -> str:
    """As records are named by it: a bucket of S3 by its name, others with their scheme, since names
    are each cloud's own. "": nothing is counted of such a store."""
    scheme, _, rest = store_url.partition("://")
    bucket = rest.partition("/")[0]
    if scheme not in _REFUSALS:
        return ""
    return bucket if scheme == _FIRST else f"{scheme}:{bucket}"
