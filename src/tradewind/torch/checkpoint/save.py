"""One save of one rank, from the snapshot to its file: on this machine, in the store, or both.

Pieces are written and sent as soon as they are in the arena. What the two have in common is only
the arena: nothing is copied in between.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

from tradewind.base import clock
from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.torch.checkpoint.layout import Entry, Layout, Part, place
from tradewind.torch.checkpoint.pieces import PIECE, PieceFile, Team, checksum, threads
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.snapshot import Snapshot

_WRITERS = 16  # more than keep a disk busy: each also checks what it writes


class Image:
    """The bytes of a rank's file: the arena, and after it what differs in size each time."""

    def __init__(self, layout: Layout, memory: memoryview, loose: Mapping[str, bytes]) -> None:
        import torch

        end, known = bytearray(), {}  # type: ignore[var-annotated]
        self.entries: list[Entry] = [*layout.entries, *layout.again]
        for kind, data in loose.items():
            size = (len(data),)
            part = Part(kind, "", torch.uint8, size, (0,), size, None, "cpu")
            entry, framing = place(part, layout.bytes + len(end), known)
            end += framing[0][1] + data + framing[1][1]
            end += bytes(-len(end) % 64)
            self.entries.append(entry)
        self.size = layout.bytes + len(end)
        # The last piece of the arena and what follows are one buffer, filled when that is there.
        self._cut = layout.bytes // PIECE * PIECE
        self._memory, self._layout, self._end = memory, layout, bytes(end)
        self._last = memoryview(b"")

    def pieces(self, snapshot: Snapshot) -> Iterator[tuple[int, memoryview]]:
        """Each as soon as it is there: where it begins, and its bytes."""
        at = 0
        for upto in snapshot.progress():
            while at + PIECE <= min(upto, self._cut):
                yield at, self._memory[at : at + PIECE]
                at += PIECE
        last = memoryview(bytes(self._memory[self._cut : self._layout.bytes]) + self._end)
        for begin in range(0, len(last), PIECE):
            yield self._cut + begin, last[begin : begin + PIECE]


class Save:
    """`refused` says why it need not go on, because another rank has failed; "" while it must."""

    def __init__(
        self,
        where: Place,
        name: str,
        file: str,
        image: Image,
        snapshot: Snapshot,
        refused: Callable[[], str],
    ) -> None:
        self._place, self._name, self._file = where, name, file
        self._image, self._snapshot, self._refused = image, snapshot, refused
        self._rate: float | None = None
        self._into: PieceFile | None = None
        self._threads: list[threading.Thread] = []
        self._stopped: BaseException | None = None
        self._feed: list[tuple[int, memoryview] | None] = []
        self._fed = threading.Condition()
        self.sums: list[int] = [0] * (-(-image.size // PIECE))
        self.local_trouble = ""
        self.write_s = self.upload_s = 0.0

    def carry_out(self, limit_s: float, rate: float | None) -> None:
        """Until it is durable, `limit_s` at most; raises what prevented it. The store is sent no
        more than `rate` bytes a second."""
        began, remote = clock.monotonic(), self._place.remote
        self._rate = rate

        def left_s() -> float:
            return max(0.0, began + limit_s - clock.monotonic())

        self._await(self._start(self._open), left_s(), str(self._place.files))
        sender = self._start(self._upload) if remote else None
        team = Team(lambda task: self._piece(*task), min(_WRITERS, threads()))
        for piece in self._image.pieces(self._snapshot):
            team.put(piece)
            self._offer(piece)
        self._offer(None)
        self._threads += team.threads
        try:
            team.wait(left_s(), f"writing to {self._place.files}", self._look)
        except BaseException as error:
            self._stop(error)
            raise
        self._await(self._start(self._finish), left_s(), str(self._place.files))
        self.write_s = clock.monotonic() - began
        if sender is not None:
            self._await(sender, left_s(), self._place.store.url)

    def stuck(self, patience_s: float) -> bool:
        """Whether a thread of it hangs in a system call, though it was given up."""
        until = clock.monotonic() + patience_s
        for thread in self._threads:
            thread.join(max(0.0, until - clock.monotonic()))
        return any(thread.is_alive() for thread in self._threads)

    def abandon(self) -> None:
        """After it has failed, and when nothing of it is left that writes."""
        if self._into is not None:
            self._into.close()

    def _start(self, work: Callable[[], None]) -> threading.Thread:
        """In a thread: none of these calls can be told how long to wait."""

        def careful() -> None:
            try:
                work()
            except BaseException as error:
                self._stop(error)

        thread = threading.Thread(target=careful, name="tradewind-save", daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _look(self) -> None:
        why = self._refused()
        if why:
            raise SourceFailed(why)

    def _await(self, thread: threading.Thread, left_s: float, what: str) -> None:
        until = clock.monotonic() + left_s
        while thread.is_alive() and self._stopped is None:
            thread.join(0.2)
            try:
                self._look()
            except SourceFailed as error:
                self._stop(error)
            if clock.monotonic() > until and thread.is_alive():
                self._stop(SourceFailed(f"{what} did not answer in time"))
        if self._stopped is not None:
            raise self._stopped

    def _stop(self, error: BaseException) -> None:
        with self._fed:
            self._stopped = self._stopped or error
            self._fed.notify_all()

    def _open(self) -> None:
        if self._place.files is not None:
            try:
                path = self._place.files / self._name / self._file
                self._into = PieceFile(path, self._image.size)
            except TradewindError as error:
                self._local(error)

    def _local(self, error: TradewindError) -> None:
        """Where a store has it too, this machine's copy is a convenience."""
        if not self._place.remote:
            raise error
        self.local_trouble = self.local_trouble or error.message

    def _piece(self, at: int, data: memoryview) -> None:
        if self._stopped is not None:
            raise self._stopped
        self.sums[at // PIECE] = checksum(data)
        if self._into is not None and not self.local_trouble:
            try:
                self._into.write(at, data)
            except TradewindError as error:
                self._local(error)

    def _finish(self) -> None:
        if self._into is None:
            return
        try:
            if not self.local_trouble:
                self._into.finish(self._image.size)
        except TradewindError as error:
            self._local(error)
        finally:
            self._into.close()
        if self.local_trouble:
            with suppress(OSError):
                self._into.path.unlink()

    def _offer(self, piece: tuple[int, memoryview] | None) -> None:
        with self._fed:
            self._feed.append(piece)
            self._fed.notify_all()

    def _upload(self) -> None:
        began = clock.monotonic()
        key = f"{self._place.shards}{self._name}/{self._file}"
        self._place.store.upload_parts(key, self._parts(), self._image.size)
        self.upload_s = clock.monotonic() - began

    def _parts(self) -> Iterator[memoryview]:
        """In order, no faster than the rate."""
        began, sent, number = clock.monotonic(), 0, 0
        while True:
            with self._fed:
                while len(self._feed) <= number and self._stopped is None:
                    self._fed.wait(1.0)
                if self._stopped is not None:
                    raise self._stopped
                piece = self._feed[number]
            if piece is None:
                return
            number += 1
            while self._rate and self._stopped is None:
                ahead_s = sent / self._rate - (clock.monotonic() - began)
                if ahead_s <= 0:
                    break
                clock.sleep(min(0.2, ahead_s))
            sent += len(piece[1])
            yield piece[1]
