"""Checkpoints of one job: see the package's docstring for the promises."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tradewind import clock
from tradewind.errors import BadFile, InvalidValue, TradewindError
from tradewind.torch.checkpoint import files, shelf
from tradewind.torch.checkpoint.arena import Arena
from tradewind.torch.checkpoint.commit import Commit
from tradewind.torch.checkpoint.group import Group, group_of
from tradewind.torch.checkpoint.layout import Layout, lay_out, signature
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.read import Reader
from tradewind.torch.checkpoint.save import Image, Save
from tradewind.torch.checkpoint.shelf import Found
from tradewind.torch.checkpoint.stage import Snapshot, Stager

_WORD_S = 120.0  # for the other ranks to say something that takes them no time
_SPARE_S = 30.0  # a verdict comes this much later than the last rank's time is over
# Until it was measured: a network disk, and a PCIe slot of the fourth generation.
_GUESSED_WRITE, _GUESSED_STAGE = 1e9, 20e9


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint of ours that is durable."""

    step: int
    key: str
    folder: Path | None
    bytes: int
    """Of this rank."""
    stage_s: float
    write_s: float
    total_s: float
    """From `save` until all ranks had agreed that it exists."""


class _Three(NamedTuple):
    shared: bytes
    mine: bytes | None
    own: dict[str, Any]


class Restored(_Three):
    """`shared, mine, own`; and `found`, the checkpoint that they are of."""

    found: Found


class _Job:
    """A save under way."""

    def __init__(self, number: int, step: int, limit_s: float) -> None:
        self.number, self.step, self.limit_s = number, step, limit_s
        self.begun_s = clock.monotonic()
        self.snapshot: Snapshot
        self.image: Image
        self.free = threading.Event()
        """The arena may be used for another."""
        self.over = threading.Event()


class Checkpoints:
    def __init__(
        self,
        place: Place,
        *,
        rank: int = 0,
        world: int = 1,
        group: Any = None,
        keep: int = 2,
        device: Any = None,
        upload_rate: float | None = None,
        warn: Callable[[str], object] | None = None,
        limit_s: float = 1800.0,
    ) -> None:
        if world > 1 and group is None:
            raise InvalidValue(
                "several ranks need a group to agree over", hint="pass group=own_group()"
            )
        if keep < 1:
            raise InvalidValue(f"keep is {keep}, and one checkpoint at least must stay")
        self.place, self.rank, self.world = place, rank, world
        self._group: Group | None = group_of(group) if world > 1 else None
        self._keep, self._rate, self._limit_s = keep, upload_rate, limit_s
        self._warn = warn or logging.getLogger("tradewind").warning
        self._stager = Stager(device or "cpu")
        self._cuda = str(device or "cpu").startswith("cuda")
        self._arena: Arena | None = None
        self._layout: Layout | None = None
        self._known: Any = None
        self._job: _Job | None = None
        self._durable: Saved | None = None
        self._count = 0
        self._reads = 0
        self._bad: set[str] = set()
        self._stage_rate, self._write_rate = _GUESSED_STAGE, _GUESSED_WRITE
        self._life = clock.new_id("s").removeprefix("s-")
        if self._group is not None and rank == 0:
            self._group.leave("life", self._life)

    # Saving

    def prepare(self, tensors: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> None:
        """Makes ready the memory for what will be saved, by a thread: then the first save costs
        no more than the others. May be called as soon as the tensors exist."""
        self._settle(tensors, own or {})

    def save(
        self,
        step: int,
        tensors: Mapping[str, Any],
        own: Mapping[str, Any] | None = None,
        shared: bytes = b"",
        mine: bytes = b"",
        *,
        wait: bool = False,
        deadline_s: float | None = None,
        early: Collection[str] = (),
    ) -> bool:
        """Begins to save; False if it was skipped, because the last one is still under way.

        `early` names those of `tensors` that something other than `optimizer.step` changes. With
        `deadline_s` it has so long, and the network to itself; it first lets the last one
        finish, within that time. `wait` waits until it is durable; False then says it is not."""
        own = own or {}
        self._count += 1
        limit_s = self._limit_s if deadline_s is None else deadline_s
        job = _Job(self._count, step, limit_s)
        last = self._job
        if last is not None and not last.free.is_set():
            patience_s = limit_s if wait or deadline_s is not None else 0.0
            if not last.free.wait(patience_s):
                self._skip(job, f"the save of step {last.step} is still under way")
                return False
        try:
            layout, arena = self._settle(tensors, own)
            job.image = Image(layout, arena.memory, self._loose(shared, mine))
            job.snapshot = self._stager.start(layout, arena, tensors, own, early)
        except TradewindError as error:
            self._skip(job, error.message)
            raise
        self._job = job
        threading.Thread(
            target=self._carry_out,
            args=(job, last, deadline_s is not None),
            name="tradewind-save",
            daemon=True,
        ).start()
        if not wait:
            return True
        done = self.finish(limit_s + _SPARE_S)
        return done is not None and done.step == step

    def gate(self) -> None:
        """Before anything changes the tensors in place: what is being saved is copied first. On a
        GPU the stream waits, and not Python."""
        job = self._job
        if job is not None and not job.free.is_set():
            self._stager.gate(job.snapshot)

    def poll(self) -> Saved | None:
        """The newest that this object saved and that is durable. Never waits."""
        return self._durable

    def finish(self, timeout_s: float) -> Saved | None:
        """Waits until what is under way is durable, or has failed, or the time is over."""
        if self._job is not None:
            self._job.over.wait(timeout_s)
        return self._durable

    def would_take_s(self) -> float:
        """How long a save that began now would take until it is durable, by what the last ones
        took; what is under way included."""
        if self._layout is None:
            return 0.0
        size = self._layout.bytes
        once = size / self._stage_rate + size / self._write_rate + 0.2
        job = self._job
        if job is None or job.free.is_set():
            return once
        return once + max(0.0, once - (clock.monotonic() - job.begun_s))

    def close(self) -> None:
        """Lets what is under way finish, and frees the memory."""
        job = self._job
        if job is not None:
            job.over.wait(job.limit_s + _SPARE_S)
        if self._arena is not None and (job is None or job.free.is_set()):
            self._arena.close()
            self._arena = self._layout = self._known = None

    # Restoring

    def newest(self) -> Found | None:
        """The newest complete checkpoint: its files are there in full size, which `read` checks
        byte by byte. All ranks must ask, and are given the same. Clears away what unfinished
        saves have left."""
        self._reads += 1
        key = None
        if self.rank == 0:
            found = next(shelf.sound(self.place, None, self._bad, self._warn), None)
            shelf.sweep(self.place, shelf.kept(self.place))
            key = found.key if found else ""
        key = self._from_first(f"newest/{self._reads}", key)
        return shelf.open_key(self.place, key) if key else None

    def read(
        self, found: Found, tensors: Mapping[str, Any], own: Mapping[str, Any] | None = None
    ) -> Restored:
        """Fills the tensors in place, from however many ranks wrote them. If something is damaged
        on any rank, all take the checkpoint before. `own` and `mine` are of the rank with this
        number, if there were as many ranks; else {} and None."""
        while True:
            self._reads += 1
            trouble, damaged, restored = "", False, None
            try:
                restored = self._read(found, tensors, own)
            except BadFile as error:
                trouble, damaged = error.message, True
            except TradewindError as error:
                trouble, failure = error.message, error
            told = self._gather(f"read/{self._reads}", [trouble, damaged])
            if all(word is not None and not word[0] for word in told):
                assert restored is not None
                return restored
            if trouble and not damaged:
                raise failure
            others = [word[0] if word else "a rank said nothing" for word in told]
            what = next(word for word in [trouble, *others] if word)
            if not any(word and word[1] for word in told):
                raise InvalidValue(f"another rank could not read {found.key}: {what}")
            found = self._before(found, what)

    def _before(self, found: Found, what: str) -> Found:
        self._bad.add(found.key)
        key = None
        if self.rank == 0:
            self._warn(f"the checkpoint {found.key} is not used: {what}")
            older = next(shelf.sound(self.place, found.key, self._bad, self._warn), None)
            key = older.key if older else ""
        key = self._from_first(f"before/{self._reads}", key)
        if not key:
            raise BadFile(
                f"no checkpoint is whole; the newest, {found.key}: {what}",
                hint="begin at the beginning, in another folder, or bring back the files",
            )
        return shelf.open_key(self.place, key)

    def _read(
        self, found: Found, tensors: Mapping[str, Any], own: Mapping[str, Any] | None
    ) -> Restored:
        with files.Files(self.place, found.manifest) as open_files:
            reader = Reader(open_files)
            for name, tensor in tensors.items():
                reader.want(name, tensor)
            same = found.world == self.world
            owned = reader.own(self.rank, own) if same else {}
            shared = reader.bytes("shared", 0)
            mine = reader.bytes("mine", self.rank) if same else None
            reader.read(self._limit_s)
        restored = Restored(
            shared.numpy().tobytes() if shared is not None else b"",
            mine.numpy().tobytes() if mine is not None else None,
            owned,
        )
        restored.found = found
        return restored

    # Inside

    def _settle(self, tensors: Mapping[str, Any], own: Mapping[str, Any]) -> tuple[Layout, Arena]:
        now = signature(tensors, own)
        if self._layout is None or self._arena is None or now != self._known:
            layout = lay_out(tensors, own, self.rank, self.world)
            if self._arena is None or self._arena.size < layout.bytes:
                if self._arena is not None:
                    self._arena.close()
                self._arena = Arena(layout.bytes, pin=self._cuda)
            self._stager.prepare(layout, self._arena)
            self._layout, self._known = layout, now
        return self._layout, self._arena

    def _loose(self, shared: bytes, mine: bytes) -> dict[str, bytes]:
        return {"shared": shared, "mine": mine} if self.rank == 0 else {"mine": mine}

    def _skip(self, job: _Job, why: str) -> None:
        self._warn(f"step {job.step} is not saved: {why}")
        if self._group is not None:
            words = {"trouble": f"rank {self.rank} skips it: {why}"}
            with suppress(Exception):
                self._group.leave(f"save/{job.number}/{self.rank}", words)

    def _carry_out(self, job: _Job, last: _Job | None, hurry: bool) -> None:
        try:
            self._write(job, last, hurry)
        except Exception as error:
            self._warn(f"step {job.step} could not be saved: {error}")
        finally:
            job.free.set()
            job.over.set()

    def _write(self, job: _Job, last: _Job | None, hurry: bool) -> None:
        if last is not None:
            last.over.wait()  # its verdict comes before ours
        name = self.place.name(job.step, self._shared_life())
        file = f"__{self.rank}_0.distcp"
        save = Save(
            self.place,
            name,
            file,
            job.image,
            job.snapshot,
            limit_s=job.limit_s,
            rate=None if hurry else self._rate,
        )
        trouble = ""
        try:
            save.carry_out()
        except Exception as error:
            trouble = f"rank {self.rank}: {error}"
        job.free.set()
        if save.local_trouble:
            self._warn(f"step {job.step} is in the store only: {save.local_trouble}")
        words = {
            "trouble": trouble,
            "file": file,
            "bytes": job.image.size,
            "sums": save.sums,
            "entries": [entry.told() for entry in job.image.entries],
        }
        commit = Commit(self.place, self._group, job.number, job.step, name, self.world)
        trouble, kept = commit.agree(words, job.limit_s, job.limit_s + _SPARE_S)
        if trouble:
            self._warn(f"step {job.step} is not saved: {trouble}")
            return
        copy_s = max(job.snapshot.copy_s(), 1e-6)
        self._stage_rate = max(1.0, job.image.size) / copy_s
        self._write_rate = max(1.0, job.image.size) / max(save.write_s, save.upload_s, 1e-6)
        self._durable = Saved(
            step=job.step,
            key=self.place.manifest(job.step),
            folder=self.place.files / name if self.place.files else None,
            bytes=job.image.size,
            stage_s=copy_s,
            write_s=save.write_s,
            total_s=clock.monotonic() - job.begun_s,
        )
        if kept is None:
            commit.prune(self._keep, self._bad)

    def _shared_life(self) -> str:
        if self._group is None or self.rank == 0:
            return self._life
        life = self._group.wait("life", _WORD_S)
        if life is None:
            raise InvalidValue("rank 0 has not said how files are named")
        return str(life)

    def _from_first(self, key: str, words: Any) -> Any:
        if self._group is None:
            return words
        found = self._group.from_first(key, words, self._limit_s)
        if found is None:
            raise InvalidValue("rank 0 did not say which checkpoint to read")
        return found

    def _gather(self, key: str, words: Any) -> list[Any]:
        if self._group is None:
            return [words]
        return self._group.gather(key, words, self._limit_s)
