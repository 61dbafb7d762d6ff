"""A file that comes in parts, several at once, and goes on where it was cut off.

Beside the file `x.part` lies `x.part.json`: of which content it is, and which of its parts are
there. A part counts once all of its bytes were handed to the kernel, which keeps them when we are
killed. It does not when the computer goes down; then parts are only gone on with where a checksum
will tell.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import BadFile, NoAccess, SourceFailed
from tradewind.torch.data.sources import Changed, Facts, Source, shown
from tradewind.torch.data.words import sized

PART = 8 << 20
PATIENCE_S = 120.0
_MOST_PAUSE_S = 15.0
_QUIET_S = 10.0

Told = Callable[[int, int | None], None]
"""Bytes that are there, and all there will be."""


class TooLarge(BadFile):
    """There is more of it than may come."""


class Stopped(SourceFailed):
    """Another part has failed: this one's trouble is not the story."""


def fetch(
    source: Source,
    part: Path,
    *,
    checked: bool,
    at_once: int = 8,
    patience_s: float = PATIENCE_S,
    most_bytes: int | None = None,
    told: Told = lambda done, size: None,
    trouble: Callable[[str], None] = lambda words: None,
) -> bool:
    """Brings all of it into the file `part`; whether it went on with one that was there. `checked`:
    a checksum will be compared. `patience_s`: how long it may come without a single byte.
    `most_bytes`: what is larger is TooLarge, before more than that is written."""
    for last in (False, False, True):
        try:
            return _fetch(source, part, checked, at_once, patience_s, most_bytes, told, trouble)
        except TooLarge:
            forget(part)
            raise
        except Changed as error:
            forget(part)
            if last:
                raise
            trouble(f"{error.message}; begins again")
    raise AssertionError


def forget(part: Path) -> None:
    for path in (part, _notes(part)):
        with suppress(OSError):
            path.unlink()


def _fetch(
    source: Source,
    part: Path,
    checked: bool,
    at_once: int,
    patience_s: float,
    most_bytes: int | None,
    told: Told,
    trouble: Callable[[str], None],
) -> bool:
    facts = _patiently(source.look, patience_s, trouble, lambda: False)
    size = facts.size
    if size is not None and most_bytes is not None and size > most_bytes:
        raise TooLarge(
            f"{shown(source.url)} has {size:,} bytes, and at most {most_bytes:,} may come"
        )
    done = _done(part, facts, checked) if facts.ranges else set()
    if not done:  # its bytes will be written over; its place is kept
        _notes(part).unlink(missing_ok=True)
    _room(part, size)
    try:
        handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if size is None or not facts.ranges:
                most = _limit(part, size, most_bytes)
                _whole(source, handle, size, most, patience_s, told, trouble)
            else:
                os.ftruncate(handle, size)
                _pieces(source, part, handle, facts, done, at_once, patience_s, told, trouble)
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise NoAccess(
            f"{part} cannot be written: {error.strerror or error}",
            hint="make room, or choose another folder; what is there is gone on with",
        ) from None
    with suppress(OSError):
        _notes(part).unlink()
    return bool(done)


def _room(part: Path, size: int | None) -> None:
    """Better said before an hour of downloading than after it."""
    if size is None:
        return
    free = shutil.disk_usage(part.parent).free
    there = part.stat().st_blocks * 512 if part.exists() else 0  # written over, or gone on with
    if size - there > free:
        raise NoAccess(
            f"{part.parent} has {sized(free)} free, and {sized(size - there)} are needed",
            hint="make room, or choose another folder",
        )


def _limit(part: Path, size: int | None, most_bytes: int | None) -> int:
    """As many bytes as it says; of what does not say, half of what is free."""
    if size is not None:
        return size
    return shutil.disk_usage(part.parent).free // 2 if most_bytes is None else most_bytes


def _whole(
    source: Source,
    handle: int,
    size: int | None,
    most: int,
    patience_s: float,
    told: Told,
    trouble: Callable[[str], None],
) -> None:
    """In one go: each failure begins it again."""

    def once() -> None:
        at = 0
        os.ftruncate(handle, 0)
        for chunk in source.read(0, None, ""):
            if at + len(chunk) > most:
                raise TooLarge(
                    f"{shown(source.url)} sends more than {most:,} bytes, "
                    + ("which it said it has" if size is not None else "and not how many"),
                    hint=None if size is not None else "say how many may come: max_bytes='10GB'",
                )
            at += _written(handle, chunk, at)
            told(at, size)
        if size is not None and at != size:
            raise SourceFailed(f"{shown(source.url)} hung up after {at:,} of {size:,} bytes")

    _patiently(once, patience_s, trouble, lambda: False)


def _pieces(
    source: Source,
    part: Path,
    handle: int,
    facts: Facts,
    done: set[int],
    at_once: int,
    patience_s: float,
    told: Told,
    trouble: Callable[[str], None],
) -> None:
    size = facts.size or 0
    todo = [number for number in range(-(-size // PART)) if number not in done]
    got = sum(min(PART, size - number * PART) for number in done)
    lock, over = threading.Lock(), threading.Event()
    told(got, size)

    def one(number: int) -> None:
        nonlocal got
        start, stop = number * PART, min(size, (number + 1) * PART)
        at = start

        def rest() -> None:
            nonlocal at, got
            for chunk in source.read(at, stop - at, facts.tag):
                if over.is_set():
                    raise Stopped("stopped")
                at += _written(handle, chunk, at)
                with lock:
                    got += len(chunk)
                told(got, size)

        _patiently(rest, patience_s, trouble, over.is_set, lambda: at)
        with lock:
            done.add(number)
            _noted(part, facts, done)

    if not todo:
        return
    with ThreadPoolExecutor(min(at_once, len(todo)), thread_name_prefix="download") as pool:
        running: list[Future[None]] = [pool.submit(one, number) for number in todo]
        try:
            _watched(running, lambda: got, trouble)
        finally:
            over.set()  # at Ctrl-C too
            pool.shutdown(wait=True, cancel_futures=True)
    for each in running:
        if not each.cancelled() and (error := each.exception()) and not isinstance(error, Stopped):
            raise error


def _watched(
    running: list[Future[None]], got: Callable[[], int], trouble: Callable[[str], None]
) -> None:
    """Until all are done or one has failed. A source that answers nothing is said to: libraries
    try again by themselves for minutes before they tell."""
    since, before = clock.monotonic(), got()
    while True:
        _, left = wait(running, timeout=_QUIET_S, return_when=FIRST_EXCEPTION)
        failed = any(each.done() and each.exception() for each in running)
        if not left or failed:
            return
        if got() != before:
            since, before = clock.monotonic(), got()
        else:
            trouble(f"nothing has come for {clock.monotonic() - since:.0f} s; waits on")


def _written(handle: int, chunk: bytes | memoryview, at: int) -> int:
    left = memoryview(chunk).cast("B")
    size = len(left)
    while left:
        count = os.pwrite(handle, left, at)
        left, at = left[count:], at + count
    return size


def _patiently(
    act: Callable[[], Any],
    patience_s: float,
    trouble: Callable[[str], None],
    over: Callable[[], bool],
    progress: Callable[[], int] = lambda: 0,
) -> Any:
    """Again and again, ever more slowly, until it has come no further for that long."""
    since, pause_s, before = clock.monotonic(), 0.25, progress()
    while True:
        try:
            return act()
        except (Changed, Stopped):
            raise
        except SourceFailed as error:
            now_s = clock.monotonic()
            if progress() != before:
                since, pause_s, before = now_s, 0.25, progress()
            if now_s - since + pause_s > patience_s:
                raise SourceFailed(
                    f"{error.message}; nothing came for {patience_s:.0f} s",
                    hint=error.hint or "try again later: it continues where it was",
                    status=error.status,
                ) from None
            trouble(f"{error.message}; tries again in {pause_s:.2g} s")
            until = now_s + pause_s
            while (left_s := until - clock.monotonic()) > 0:
                if over():
                    raise Stopped("stopped") from None
                clock.sleep(min(left_s, 0.2))
            pause_s = min(2 * pause_s, _MOST_PAUSE_S)


def patiently(act: Callable[[], Any], trouble: Callable[[str], None]) -> Any:
    """For small things: until it is done, or nothing came for too long."""
    return _patiently(act, PATIENCE_S, trouble, lambda: False)


# -- what is there already -------------------------------------------------------------------------


def _notes(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _noted(part: Path, facts: Facts, done: set[int]) -> None:
    said = {"size": facts.size, "tag": facts.tag, "boot": _boot(), "done": sorted(done)}
    beside = part.with_name(part.name + ".json.new")
    beside.write_text(json.dumps(said))
    beside.replace(_notes(part))


def _done(part: Path, facts: Facts, checked: bool) -> set[int]:
    """The parts that may be gone on with."""
    try:
        said = json.loads(_notes(part).read_bytes())
        same = part.stat().st_size == said["size"] == facts.size and said["tag"] == facts.tag
        sure = checked or (bool(facts.tag) and said["boot"] == _boot())
        return {int(number) for number in said["done"]} if same and sure else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _boot() -> str:
    """Changes when the computer is started again: what was not synced may be gone then."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
