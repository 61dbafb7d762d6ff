"""The job's output: from its processes into a spool on the machine's disk, from there to the store.

The job writes into the spool itself (a file that is open to append), so nothing it says is lost or
disordered by a supervisor that is slow, or dead. A `Shipper` sends what is there in pieces,
`places.log_piece` by the offset of their first byte, each created once. Pieces follow each other
without a gap, so whoever comes next, after a failure or in a new process, goes on where the last
one ends. Memory is one piece, however long the log or its lines, and so is about what the spool
takes of the disk: what was sent gives its room back, and there is room for some more, so that a
disk which others have filled does not end the job at its next word.

What the job measures goes the same way, through a spool and a shipper of its own.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tradewind.base import clock
from tradewind.base.errors import TooLarge, TradewindError
from tradewind.model import bounds, places
from tradewind.store.base import Store
from tradewind.supervisor import disk

PIECE = bounds.PIECE
WAIT_S = 3.0
"""What is less than a piece is sent after so long."""
_RETRY_S = 5.0
_TAIL_LINES = 40
_TAIL_BYTES = 4096
_KEPT = 1 << 20
"""Of what was sent: the tail, and what somebody may want to look at on the machine."""
_AHEAD = 1 << 20


class Spool:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @property
    def size(self) -> int:
        return os.fstat(self.handle).st_size

    def remark(self, words: str) -> None:
        """What we have to say where the user looks."""
        with suppress(OSError):  # a full disk is no reason to stop watching
            os.write(self.handle, f"tradewind: {words}\n".encode())

    def read(self, offset: int, most: int) -> bytes:
        return os.pread(self.handle, most, offset)

    def grow(self, size: int) -> None:
        """What is in the store of a spool that was lost is not written again."""
        if self.size < size:
            os.ftruncate(self.handle, size)

    def make_room(self, sent: int) -> None:
        """What is in the store up to `sent` is not needed here any more, and more will come."""
        disk.drop(self.handle, 0, sent - _KEPT)
        disk.reserve(self.handle, self.size, _AHEAD)

    def give_back(self) -> None:
        """The room that was kept for more, when no more will come."""
        disk.drop(self.handle, self.size, self.size + _AHEAD)

    def tail(self, since: int = 0) -> str:
        """The last lines, of those after offset `since`."""
        size = self.size
        start = max(since, size - _TAIL_BYTES)
        text = self.read(start, size - start).decode("utf-8", "replace")
        lines = text.splitlines()
        if start > since and len(lines) > 1:
            lines = lines[1:]  # which is cut
        return "\n".join(lines[-_TAIL_LINES:])

    def close(self) -> None:
        os.close(self.handle)


class Shipper:
    """Sends on a thread of its own: a store that hangs keeps nobody else waiting."""

    def __init__(
        self,
        spool: Spool,
        store: Store,
        run_id: str,
        leg: int,
        rank: int,
        *,
        wait_s: float = WAIT_S,
        stream: Callable[[str, int, int], str] = places.logs,
    ) -> None:
        self._spool, self._store = spool, store
        self._folder = stream(run_id, leg, rank)
        self._wait_s = wait_s
        self._retry_s = _RETRY_S * wait_s / WAIT_S
        self._sent: int | None = None
        self._wanted = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="logs", daemon=True)
        self._thread.start()

    def flush(self, timeout_s: float) -> bool:
        """Whether all that is in the spool now is in the store, after so long at most."""
        with self._changed:
            self._wanted = max(self._wanted, self._spool.size)
            self._changed.notify_all()
            wanted = self._wanted
            return self._changed.wait_for(
                lambda: self._sent is not None and self._sent >= wanted, timeout_s
            )

    def close(self) -> None:
        """What was not sent stays in the spool. A call that hangs is left to itself."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(1.0)
        self._spool.give_back()

    def _work(self) -> None:
        due = clock.stopwatch() + self._wait_s
        while not self._closed:
            pause = self._wait_s
            try:
                if self._sent is None:
                    sent = shipped(self._store, self._folder)
                    self._spool.grow(sent)
                    self._set(sent)
                assert self._sent is not None
                self._spool.make_room(self._sent)
                now = clock.stopwatch()
                full = self._send(pressing=now >= due)
                if now >= due:
                    due = now + self._wait_s
                pause = 0.0 if full else max(due - clock.stopwatch(), 0.0)
            except (TradewindError, OSError):
                pause = self._retry_s
            with self._changed:
                if pause and not self._closed:
                    behind = self._sent is None or self._wanted > self._sent
                    # Whoever waits for the last words wants every chance to be taken.
                    self._changed.wait(min(pause, 0.5) if behind else pause)

    def _send(self, *, pressing: bool) -> bool:
        """One piece; whether there may be more to send at once."""
        sent = self._sent
        assert sent is not None
        data = self._spool.read(sent, PIECE)
        pressing = pressing or self._wanted > sent
        if not data or (len(data) < PIECE and not pressing):
            return False
        key = places.piece(self._folder, sent)
        if not self._store.create(key, data):
            # Ours, from before an answer was lost or we were: as long as it was then.
            try:
                data = self._store.get(key, most=PIECE)
            except TooLarge:  # or somebody else's, who may write there too
                self._store.replace(key, data)
        self._set(sent + len(data))
        return len(data) == PIECE

    def _set(self, sent: int) -> None:
        with self._changed:
            self._sent = sent
            self._changed.notify_all()


class Shippers:
    """All that a machine sends, as one."""

    def __init__(self, *shippers: Shipper) -> None:
        self._shippers = shippers

    def flush(self, timeout_s: float) -> bool:
        """As that of each, in so long together."""
        until = clock.stopwatch() + timeout_s
        left = [each.flush(max(until - clock.stopwatch(), 0.0)) for each in self._shippers]
        return all(left)

    def close(self) -> None:
        for each in self._shippers:
            each.close()


def shipped(store: Store, folder: str) -> int:
    """How many bytes of a machine's output are in the store. Pieces come one after the other: what
    lies behind a gap that none of ours could leave is somebody else's."""
    last = ""
    for key in _pieces(store, folder):
        if _offset(key) > (_offset(last) + PIECE if last else 0):
            break
        last = key
    if not last:
        return 0
    try:
        return _offset(last) + len(store.get(last, most=PIECE))
    except TooLarge:
        return _offset(last)  # which will be sent again


def read_logs(
    store: Store, run_id: str, leg: int, rank: int, after: int = 0, *, most: int = 16 * PIECE
) -> bytes:
    """The output from byte `after` on, as far as it is in the store, and up to about `most` bytes;
    empty where there is no more yet. Ask again from where it ends."""
    return read_pieces(store, places.logs(run_id, leg, rank), after, most=most)


def read_pieces(store: Store, folder: str, after: int = 0, *, most: int = 16 * PIECE) -> bytes:
    """The same of any such folder."""
    before = after - PIECE  # no piece is longer, so none that begins there holds the byte
    start = places.piece(folder, before) if before >= 0 else ""
    held: list[bytes] = []
    at = after
    for key in _pieces(store, folder, start):
        offset = _offset(key)
        if offset > at or at - after >= most:
            break  # a gap: an earlier piece is still to be seen
        try:
            data = store.get(key, most=PIECE)
        except TooLarge:
            break  # somebody else's: what comes before it is shown
        held.append(data[at - offset :])
        at = max(at, offset + len(data))
    return b"".join(held)


def _pieces(store: Store, folder: str, after: str = "") -> list[str]:
    """Only those: a job knows the store, and may have put something of its own beside them."""
    names = re.compile(re.escape(folder) + r"\d{20}\.log")
    return [key for key in store.list_after(folder, after) if names.fullmatch(key)]


def _offset(key: str) -> int:
    return int(key.rsplit("/", 1)[1].removesuffix(".log"))
