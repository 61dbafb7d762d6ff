"""The loop of a batch: items without an output, and what is kept of their outputs."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tradewind import store as stores
from tradewind.base import clock
from tradewind.base.errors import InvalidValue
from tradewind.batch.items import Item, Items
from tradewind.batch.lanes import PART_BYTES, Lanes, begun
from tradewind.model import places

EVERY_S = 10.0  # how much work a kill without notice can undo
_LARGE = PART_BYTES // 8
ALONE = "outputs"  # folder, where there is no run


def open(path: str | Path, *, env: Mapping[str, str] | None = None) -> Work:  # noqa: A001
    """The items of a file, in the run of this process; without one, in the folder `outputs`."""
    given = os.environ if env is None else env
    items = Items(Path(path))
    run = given.get("TRADEWIND_RUN")
    store = stores.open(given["TRADEWIND_STORE"] if run else Path(ALONE))
    folder = places.batch(run) if run else "batch/"
    rank, nodes = int(given.get("TRADEWIND_RANK", 0)), int(given.get("TRADEWIND_NODES", 1))
    lanes = begun(store, folder, len(items), items.sha256)
    return Work(items, lanes, given, rank=rank, nodes=nodes)


class Work:
    """`put` takes outputs in any order. Several machines share the lanes among them."""

    def __init__(
        self, items: Items, lanes: Lanes, env: Mapping[str, str], *, rank: int, nodes: int
    ) -> None:
        self.items, self._lanes = items, lanes
        self._mine = list(range(rank, lanes.spec.lanes, nodes))
        self._heads = {lane: lanes.head(lane) for lane in range(lanes.spec.lanes)}
        self._waiting: dict[int, dict[int, bytes]] = {lane: {} for lane in self._mine}
        self._bytes, self._last_s = 0, clock.stopwatch()
        self._started_s, self._fresh = self._last_s, 0
        self.stopped = False  # asked to save and to stop before all was done
        self._save = env.get("TRADEWIND_SAVE")
        self._progress = env.get("TRADEWIND_PROGRESS")
        self._tell()

    def __len__(self) -> int:
        return len(self.items)

    @property
    def done(self) -> int:
        """Items whose outputs are kept, as far as this machine knows of the others."""
        return sum(head - self._lanes.spec.range(lane)[0] for lane, head in self._heads.items())

    def batches(self, size: int) -> Iterator[list[Item]]:
        """Items of this machine that have no output, so many at once, until all have one or the
        job is asked to stop."""
        if size < 1:
            raise InvalidValue(f"batches of {size} items", hint="one or more")
        with self._heard():
            for lane in self._mine:
                end = self._lanes.spec.range(lane)[1]
                place = self._heads[lane]
                while place < end:
                    if self.stopped or (self._save and Path(self._save).exists()):
                        self.stopped = True
                        self.commit()
                        return
                    # Somebody else may have been here: an old machine that was believed lost.
                    place = max(place, self._heads[lane])
                    found = self.items.read(place, min(place + size, end))
                    if found:
                        yield found
                    place += len(found)
            self.commit()  # before SIGTERM ends us again

    def put(self, items: Sequence[Item], outputs: Iterable[Any]) -> None:
        """The output of each item, as JSON can write it."""
        made = list(outputs)
        if len(made) != len(items):
            raise InvalidValue(f"{len(items)} items, and {len(made)} outputs")
        for item, output in zip(items, made, strict=True):
            try:
                line = json.dumps({"index": item.index, "output": output}).encode()
            except (TypeError, ValueError) as error:
                raise InvalidValue(
                    f"the output of item {item.index} cannot be kept: {error}",
                    hint="texts, numbers, lists and dictionaries of them",
                ) from None
            self._waiting[self._lane(item.index)][item.index] = line
            self._bytes += len(line)
        if self._bytes > _LARGE or clock.stopwatch() - self._last_s >= EVERY_S:
            self.commit()

    def commit(self) -> None:
        """Keeps what is there of each lane without a gap."""
        for lane in self._mine:
            self._extend(lane)
        self._bytes = sum(len(each) for lane in self._waiting.values() for each in lane.values())
        self._last_s = clock.stopwatch()
        self._tell()

    def _extend(self, lane: int) -> None:
        """Until nothing is left to add: where another machine was first its outputs count, and
        ours go on behind them."""
        waiting = self._waiting[lane]
        while True:
            head = end = self._heads[lane]
            while end in waiting:
                end += 1
            if end == head:
                break
            if self._lanes.extend(lane, head, [waiting[index] for index in range(head, end)]):
                self._fresh += end - head
                self._heads[lane] = end
            else:
                self._heads[lane] = self._lanes.head(lane)
        self._waiting[lane] = {
            index: line for index, line in waiting.items() if index >= self._heads[lane]
        }

    def finish(self) -> None:
        """Keeps the last outputs. Lacking ones are an error, unless the job was asked to stop."""
        self.commit()
        lacking = sum(self._lanes.spec.range(lane)[1] - self._heads[lane] for lane in self._mine)
        if lacking and not self.stopped:
            raise InvalidValue(
                f"{lacking:,} items of this machine have no output",
                hint="put() one for each item that batches() has given",
            )

    def _lane(self, index: int) -> int:
        spec = self._lanes.spec
        lane = index * spec.lanes // spec.items
        while index >= spec.range(lane)[1]:  # rounding
            lane += 1
        return lane

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """SIGTERM stops the loop, rather than the process, while there is a loop. A process that
        was forked meanwhile is ended by it, as it would have been."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        us, before = os.getpid(), signal.getsignal(signal.SIGTERM)

        def asked(number: int, frame: FrameType | None) -> None:
            if os.getpid() != us:
                signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
                os.kill(os.getpid(), signal.SIGTERM)
            self.stopped = True

        signal.signal(signal.SIGTERM, asked)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGTERM) is asked:
                signal.signal(signal.SIGTERM, before or signal.SIG_DFL)

    def _tell(self) -> None:
        """How far it is, for the supervisor (docs/jobs.md)."""
        if not self._progress:
            return
        spent = clock.stopwatch() - self._started_s
        rate = self._fresh / spent if self._fresh and spent > 0 else None
        path = Path(self._progress)
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(json.dumps({"step": self.done, "saved": self.done, "rate": rate}))
        fresh.replace(path)
