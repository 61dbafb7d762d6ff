"""Checkpoints of one job: see the package's docstring for the promises."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from tradewind.base import clock
from tradewind.base.errors import BadFile, InvalidValue, SourceFailed, TradewindError
from tradewind.torch.checkpoint import files, shelf
from tradewind.torch.checkpoint.group import Group, group_of
from tradewind.torch.checkpoint.job import Saved
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.read import Reader
from tradewind.torch.checkpoint.saver import SPARE_S, Saver
from tradewind.torch.checkpoint.shelf import Found


class _Three(NamedTuple):
    shared: bytes
    mine: bytes | None
    own: dict[str, Any]


class Restored(_Three):
    """`shared, mine, own`; and `found`, the checkpoint that they are of."""

    found: Found
    all_of_it = False
    """Whether every tensor was read, and so is known to be whole."""


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
        share: tuple[int, int] | None = None,
        upload_rate: float | None = None,
        warn: Callable[[str], object] | None = None,
        limit_s: float = 1800.0,
    ) -> None:
        if world > 1 and group is None:
            raise InvalidValue(
                "several ranks need a group to agree over", hint="pass group=own_group()"
            )
        # `share`: which of how many ranks with the same plain tensors, who share the writing of
        # them: all, or of a pipeline those of one stage.
        if keep < 1:
            raise InvalidValue(f"keep is {keep}, and one checkpoint at least must stay")
        self.place, self.rank, self.world = place, rank, world
        self._limit_s = limit_s
        self._warn = warn or logging.getLogger("tradewind").warning
        self._group: Group | None = group_of(group) if world > 1 else None
        self._reads, self._tidy = 0, True
        self._bad: set[str] = set()
        self._saver = Saver(
            place,
            self._group,
            rank=rank,
            world=world,
            keep=keep,
            device=device,
            share=share or (rank, world),
            rate=upload_rate,
            warn=self._warn,
            bad=self._bad,
        )

    def with_each(self, beside: Callable[[int], bytes]) -> None:
        """What goes with a checkpoint of a step besides its state, as durable as that. Asked of
        rank 0, by the thread that saves, before the checkpoint comes to exist."""
        self._saver.beside = beside

    def beside(self, name: str) -> bytes:
        """That of a checkpoint, by the name of its folder; b"" where there is none."""
        return shelf.beside(self.place, name)

    # Saving

    def prepare(self, tensors: Mapping[str, Any], own: Mapping[str, Any] | None = None) -> None:
        """Makes ready the memory for what will be saved, by a thread: then the first save costs
        no more than the others. May be called as soon as the tensors exist; while a save is under
        way it does nothing, as that one needs the memory."""
        if not self._saver.busy(0.0):
            self._saver.settle(tensors, own or {})

    def ready(self) -> bool:
        """Whether that is done."""
        return self._saver.ready()

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
        limit_s = self._limit_s if deadline_s is None else deadline_s
        job = self._saver.next(step, limit_s, hurry=deadline_s is not None, waited=wait)
        why = self._saver.busy(limit_s if wait or deadline_s is not None else 0.0)
        if why:
            self._saver.skip(job, why)
            return False
        loose = {"shared": shared, "mine": mine} if self.rank == 0 else {"mine": mine}
        if not self._saver.begin(job, tensors, own or {}, loose, early):
            return False
        if not wait:
            return True
        done = self.finish(job.left_s() + SPARE_S)
        return done is not None and done.step == step

    def gate(self) -> None:
        """Before anything changes the tensors in place: what is being saved is copied first. On a
        GPU the stream waits, and not Python."""
        self._saver.gate()

    def poll(self) -> Saved | None:
        """The newest that this object saved and that is durable. Never waits."""
        return self._saver.durable

    def saving(self) -> bool:
        """Whether a save is under way."""
        return self._saver.job is not None and not self._saver.job.over.is_set()

    def finish(self, timeout_s: float) -> Saved | None:
        """Waits until what is under way is durable, or has failed, or the time is over."""
        if self._saver.job is not None:
            self._saver.job.over.wait(timeout_s)
        return self._saver.durable

    def tidy(self, timeout_s: float) -> None:
        """Waits until what the last one replaces is removed, and it was read back."""
        until = clock.monotonic() + timeout_s
        self._saver.rest(timeout_s)
        if self._saver.job is not None:
            self._saver.job.cleared.wait(max(0.0, until - clock.monotonic()))

    def leave(self, timeout_s: float) -> None:
        """As `tidy`, at the end of a process: not until a large one is read back."""
        if self._saver.job is not None:
            self._saver.leave_unread(self._saver.job, 1.0, timeout_s)

    def let_go(self, timeout_s: float) -> None:
        """Waits for nobody any more, before the process ends. What is under way and needs other
        ranks is not saved then."""
        self._saver.let_go(timeout_s)

    def held(self) -> int:
        """Bytes of the GPU that are kept for clones of the state, between saves. Training gets them
        before it would run out of memory."""
        return self._saver.held()

    def look(self) -> None:
        """To be called now and then, by any thread: whether training had to take some of them."""
        self._saver.look()

    def give_back(self) -> int:
        """To be called between two steps, by the thread that trains: if it had to, all are given
        back for good. How many that were."""
        return self._saver.give_back()

    def would_take_s(self) -> float:
        """How long a save that began now would take until it is durable, by what the last one
        took; what is under way included."""
        return self._saver.would_take_s()

    def close(self, timeout_s: float | None = None) -> None:
        """Lets what is under way finish, and frees the memory."""
        self.finish(self._limit_s + SPARE_S if timeout_s is None else timeout_s)
        self._saver.close()

    # Restoring

    def newest(self, *, tidy: bool = True) -> Found | None:
        """The newest complete checkpoint: its files are there in full size; `read` checks every
        byte. All ranks must ask, and are given the same. What unfinished saves have left is
        cleared away when it was read, or at once if there is none; so ask before saving. Who only
        reads what another is saving says `tidy=False`, and then nothing is removed."""

        def look() -> str:
            found = next(shelf.sound(self.place, None, self._bad, self._warn), None)
            if tidy and found is None:
                self._saver.later(lambda: shelf.clear(self.place, self._saver.life))
            return found.key if found else ""

        self._saver.rest(None)
        self._reads += 1
        self._tidy = tidy
        key = self._from_first(f"newest/{self._reads}", look)
        return shelf.open_key(self.place, key) if key else None

    def read(
        self, found: Found, tensors: Mapping[str, Any], own: Mapping[str, Any] | None = None
    ) -> Restored:
        """Fills the tensors in place, from however many ranks wrote them. If something is damaged
        for any rank, all take the checkpoint before. `own` and `mine` are of the rank with this
        number, if there were as many ranks; else {} and None."""
        while True:
            self._reads += 1
            failure: TradewindError | None = None
            restored: Restored | None = None
            try:
                restored = self._read(found, tensors, own)
            except TradewindError as error:
                failure = error
            damaged = isinstance(failure, BadFile)
            told = self._gather((failure.message if failure else "", damaged))
            if restored is not None and not any(words[0] for words in told):
                if self._tidy:
                    # A damaged one stays until another was saved; and what was not read may be
                    # damaged.
                    whole = found if restored.all_of_it and not self._bad else None
                    self._saver.later(partial(self._tidy_up, whole))
                return restored
            if failure is not None and not damaged:
                raise failure
            what = next(words[0] for words in told if words[0])
            if not any(words[1] for words in told):
                raise SourceFailed(f"another rank could not read {found.key}: {what}")
            found = self._before(found, what)

    def _tidy_up(self, whole: Found | None) -> None:
        if self.rank == 0:
            shelf.clear(self.place, self._saver.life)
        if whole is not None:
            self._saver.prune(whole.key, whole.name)

    def _before(self, found: Found, what: str) -> Found:
        """All ranks are given the same, as they were told the same."""

        def look() -> str:
            self._warn(f"the checkpoint {found.key} is not used: {what}")
            older = next(shelf.sound(self.place, found.key, self._bad, self._warn), None)
            return older.key if older else ""

        self._bad.add(found.key)
        key = self._from_first(f"before/{self._reads}", look)
        if not key:
            raise BadFile(
                f"no checkpoint is whole; the newest, {found.key}: {what}",
                hint="begin at the beginning, in another folder, or bring back the files; more:"
                " tradewind explain checkpoints",
            )
        return shelf.open_key(self.place, key)

    def _read(
        self, found: Found, tensors: Mapping[str, Any], own: Mapping[str, Any] | None
    ) -> Restored:
        alone = self.world == 1 or all(hasattr(t, "placements") for t in tensors.values())
        if self._tidy:  # it will save, too
            self._saver.warm()
        with files.Files(self.place, found.manifest, direct=alone) as open_files:
            reader = Reader(open_files)
            for name, tensor in tensors.items():
                reader.want(name, tensor)
            same = found.world == self.world
            owned = reader.own(self.rank, own) if same else {}
            shared = reader.bytes("shared", 0)
            mine = reader.bytes("mine", self.rank) if same else None
            reader.read(self._limit_s, begin=self.rank / self.world)
        restored = Restored(
            shared.numpy().tobytes() if shared is not None else b"",
            mine.numpy().tobytes() if mine is not None else None,
            owned,
        )
        restored.found, restored.all_of_it = found, reader.all_of_it()
        return restored

    def _from_first(self, key: str, look: Callable[[], str]) -> str:
        """What rank 0 finds out; what it fails with, the others are told."""
        if self._group is None:
            return look()
        found = ("", "")
        if self.rank == 0:
            try:
                found = (look(), "")
            except TradewindError as error:
                self._group.leave(key, ("", error.message))
                raise
        told = self._group.from_first(key, found, tuple[str, str], self._limit_s)
        if told is None:
            raise SourceFailed("rank 0 did not say which checkpoint to read")
        if told[1]:
            raise SourceFailed(f"rank 0 could not look for checkpoints: {told[1]}")
        return told[0]

    def _gather(self, words: tuple[str, bool]) -> list[tuple[str, bool]]:
        if self._group is None:
            return [words]
        told = self._group.gather(f"read/{self._reads}", words, tuple[str, bool], self._limit_s)
        return [each or ("a rank did not say how its reading went", False) for each in told]
