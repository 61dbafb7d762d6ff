"""Saves one after the other, each carried out by a thread of its own behind training's back."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any

from tradewind.base import clock
from tradewind.base.errors import InvalidValue, SourceFailed, TradewindError
from tradewind.torch.checkpoint import shelf, verify
from tradewind.torch.checkpoint.arena import Arena
from tradewind.torch.checkpoint.commit import Commit, Report
from tradewind.torch.checkpoint.group import Group
from tradewind.torch.checkpoint.job import Job, Saved
from tradewind.torch.checkpoint.layout import Layout, lay_out, signature
from tradewind.torch.checkpoint.manifest import of_rank
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.checkpoint.save import Image, Save
from tradewind.torch.checkpoint.stage import Stager
from tradewind.torch.messages import BadMessage

_WORD_S = 120.0  # for rank 0 to say something that takes it no time
SPARE_S = 30.0  # a verdict comes this much later than the last rank's time is over
# Until it was measured: a network disk, and a PCIe slot of the fourth generation.
_GUESSED_WRITE, _GUESSED_STAGE = 1e9, 20e9
_AGREE_S = 0.2
_STUCK_S = 2.0  # a thread that still writes so long after it was told to stop, hangs
_LAST_S = 10.0  # for the last words
_READ_S, _QUICK = 1.0, 1 << 30  # for reading back what is larger, where somebody waits
SKIPS = "skips it"

_LIFE = re.compile(r"[0-9a-f-]{1,64}")
"""Part of the names of files, so it must not lead elsewhere."""


class Saver:
    beside: Callable[[int], bytes] = staticmethod(lambda step: b"")
    """What goes with a checkpoint besides its state, asked of rank 0 before it comes to exist."""

    def __init__(
        self,
        place: Place,
        group: Group | None,
        *,
        rank: int,
        world: int,
        keep: int,
        device: Any,
        share: tuple[int, int],
        rate: float | None,
        warn: Callable[[str], object],
        bad: set[str],
    ) -> None:
        self._place, self._group, self._rank, self._world = place, group, rank, world
        self._keep, self._device, self._rate, self._warn = keep, device, rate, warn
        self._bad, self._share = bad, share
        self._stager: Stager | None = None
        self._arena: Arena | None = None
        self._layout: Layout | None = None
        self._known: Any = None
        self._count = self._skipped = 0
        self._stuck: list[Save] = []
        self._last: Commit | None = None
        self._thread: threading.Thread | None = None
        self._chore: threading.Thread | None = None
        self._stage_rate, self._write_rate = _GUESSED_STAGE, _GUESSED_WRITE
        self._warmed = False
        self._whole = ""
        """The key of the newest that was read in full."""
        self.job: Job | None = None
        self.durable: Saved | None = None
        self.life = clock.new_id("s").removeprefix("s-")
        if group is not None and rank == 0:
            group.leave("life", self.life)

    def settle(
        self, tensors: Mapping[str, Any], own: Mapping[str, Any]
    ) -> tuple[Layout, Arena, Stager]:
        """What is to be written, where, and the memory for it: as last time, or anew."""
        now = signature(tensors, own)
        if self._layout and self._arena and self._stager and now == self._known:
            return self._layout, self._arena, self._stager
        if self._stager is None:
            self._stager = Stager(self._device or _device_of([*tensors.values(), *own.values()]))
        layout = lay_out(tensors, own, *self._share)
        # Before the arena: while that is made and pinned, whoever asks for memory waits a second.
        self._stager.prepare(layout)
        if self._arena is None or self._arena.size < layout.bytes:
            if self._arena is not None:
                self._arena.close()
            self._arena = Arena(layout.bytes, self._stager.device if self._stager.cuda else None)
        self.warm()
        self._layout, self._known = layout, now
        return self._layout, self._arena, self._stager

    def warm(self) -> None:
        """What rank 0 will need to commit: the import takes a second or two, by a thread, while a
        checkpoint is read or the first steps are made."""
        if self._rank or self._warmed:
            return
        self._warmed = True

        def load() -> None:
            import torch.distributed.checkpoint.filesystem  # noqa: F401

        threading.Thread(target=load, name="tradewind-import", daemon=True).start()

    def ready(self) -> bool:
        return self._arena is not None and self._arena.ready.is_set()

    def begin(
        self,
        job: Job,
        tensors: Mapping[str, Any],
        own: Mapping[str, Any],
        loose: Mapping[str, bytes],
        early: Collection[str],
    ) -> bool:
        """False if it could not: training goes on, whatever it was."""
        last = self.job
        try:
            layout, arena, stager = self.settle(tensors, own)
            job.image = Image(layout, arena.memory, loose)
            job.snapshot = stager.start(layout, arena, tensors, own, early)
        except InvalidValue as error:
            self.skip(job, error.message)
            raise
        except Exception as error:  # such as too little memory on the device
            self.skip(job, str(error))
            if self._stager is not None:
                self._stager.abandon()
            return False
        self.job = job
        self._thread = threading.Thread(
            target=self._carry_out, args=(job, last), name="tradewind-save", daemon=True
        )
        self._thread.start()
        return True

    def next(self, step: int, limit_s: float, *, hurry: bool, waited: bool = False) -> Job:
        self._count += 1
        return Job(self._count, step, limit_s, hurry=hurry, waited=waited)

    def busy(self, patience_s: float) -> str:
        """Why another cannot begin; "" if it can."""
        last = self.job
        if last is not None and not last.free.wait(patience_s):
            return f"the save of step {last.step} is still under way"
        self._stuck = [save for save in self._stuck if save.stuck(0.0)]
        if self._stuck:
            return "an earlier save still hangs in the disk or the store"
        return ""

    def later(self, chore: Callable[[], object]) -> None:
        """Done by a thread, as nobody need wait for it. Removing what takes a minute to write takes
        seconds, and a training that has just been restored would have stood still for them."""

        def carry_out() -> None:
            with suppress(Exception):  # the next save tries again
                chore()

        self.rest(None)
        self._chore = threading.Thread(target=carry_out, name="tradewind-tidy", daemon=True)
        self._chore.start()

    def rest(self, timeout_s: float | None) -> None:
        """Waits until that is done."""
        if self._chore is not None:
            self._chore.join(timeout_s)

    def skip(self, job: Job, why: str) -> None:
        self._unsaved(job, why, skipped=True)
        if self._group is not None:
            words = Report(f"rank {self._rank} {SKIPS}: {why}")
            who = "verdict" if self._rank == 0 else self._rank
            with suppress(Exception):
                self._group.leave(f"save/{job.number}/{who}", words)

    def _unsaved(self, job: Job, why: str, *, skipped: bool) -> None:
        """Saves that are asked for too often are said twice, four times … as rarely."""
        if skipped:
            self._skipped += 1
            if self._skipped & (self._skipped - 1):
                return
            why += f" ({self._skipped} were skipped so far)" if self._skipped > 1 else ""
        self._warn(f"step {job.step} is not saved: {why}")

    def gate(self) -> None:
        job = self.job
        if job is not None and self._stager is not None:
            self._stager.gate(job.snapshot)

    def held(self) -> int:
        return self._stager.held if self._stager is not None else 0

    def look(self) -> None:
        if self._stager is not None and self._idle():
            self._stager.look()

    def give_back(self) -> int:
        return self._stager.give_back() if self._stager is not None and self._idle() else 0

    def _idle(self) -> bool:
        return self.job is None or self.job.free.is_set()

    def would_take_s(self) -> float:
        if self._layout is None:
            return 0.0
        size = self._layout.bytes
        once = size / self._stage_rate + size / self._write_rate + _AGREE_S
        job = self.job
        if job is None or job.free.is_set():
            return once
        return once + max(0.0, once - (clock.monotonic() - job.begun_s))

    def close(self) -> None:
        job = self.job
        if self._last is not None and job is not None and job.over.is_set():
            self._last.heard(_LAST_S)
            self.leave_unread(job, _READ_S, _LAST_S)
        self.rest(_LAST_S)
        if self._arena is not None and (job is None or job.over.is_set()) and not self._stuck:
            self._arena.close()
        self._arena = self._layout = self._known = None

    def leave_unread(self, job: Job, patience_s: float, timeout_s: float) -> None:
        """Waits until it is cleared; not until a large one is read back, nor until what it replaces
        is removed, which both take seconds."""
        if job.image.size < _QUICK:
            job.cleared.wait(timeout_s)
        elif not job.cleared.wait(patience_s):
            job.unread.set()
            job.cleared.wait(min(_READ_S, timeout_s))

    def let_go(self, timeout_s: float) -> None:
        if self._arena is not None:  # a thread in a driver when Python ends makes the process abort
            self._arena.stop(timeout_s)
        if self._group is not None:
            self._group.close()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _carry_out(self, job: Job, last: Job | None) -> None:
        after: Callable[[], None] | None = None
        try:
            if self._stager is not None:
                self._stager.enter()
            after = self._save(job, last)
        except Exception as error:
            self._warn(f"step {job.step} could not be saved: {_told(error)}")
        finally:
            job.free.set()
            job.over.set()
        with suppress(Exception):  # the next save tries again
            if after is not None:
                after()
        job.cleared.set()

    def _save(self, job: Job, last: Job | None) -> Callable[[], None]:
        """Returns what is left to do when everybody knows."""
        name = self._place.name(job.step, self._shared_life(), job.number)
        file = of_rank(self._rank)
        commit = Commit(self._place, self._group, job.number, job.step, name, self._world)
        save = Save(self._place, name, file, job.image, job.snapshot, commit.refused)
        trouble = ""
        if not job.hurry:  # or what has expired would heap up
            self.rest(job.left_s())
            if last is not None:
                if job.waited:  # the disk is for what is waited for
                    self.leave_unread(last, 0.0, job.left_s())
                else:
                    last.cleared.wait(job.left_s())
        try:
            if self._stager is not None and self._layout is not None and self._arena is not None:
                self._stager.frame(self._layout, self._arena)
            save.carry_out(job.left_s(), None if job.hurry else self._rate)
        except Exception as error:
            trouble = f"rank {self._rank}: {_told(error)}"
            job.snapshot.settle()
            if save.stuck(_STUCK_S):
                self._stuck.append(save)
            else:
                save.abandon()
        job.free.set()
        if self._arena is not None and self._arena.trouble:
            self._warn(f"saving is slow, as memory could not be pinned: {self._arena.trouble}")
        if save.local_trouble:
            self._warn(f"step {job.step} is in the store only: {save.local_trouble}")
        if last is not None:
            last.over.wait()  # its verdict comes before ours
        if self._rank == 0 and not trouble:
            with suppress(TradewindError):  # the state is what matters
                shelf.put_beside(self._place, name, self.beside(job.step))
        words = Report(
            trouble,
            file,
            job.image.size,
            list(save.sums),
            [entry.told() for entry in job.image.entries],
        )
        self._last = commit
        trouble = commit.agree(words, job.left_s(), job.left_s() + SPARE_S)
        if trouble:
            self._unsaved(job, trouble, skipped=SKIPS in trouble)
            return commit.undo
        self._note(job, save, name)
        return lambda: self._clear(job, name, file)

    def _note(self, job: Job, save: Save, name: str) -> None:
        size = max(1.0, job.image.size)
        copy_s = max(job.snapshot.copy_s(), 1e-6)
        self._stage_rate = size / copy_s
        self._write_rate = size / max(save.write_s, save.upload_s, 1e-6)
        self.durable = Saved(
            step=job.step,
            key=self._place.manifest(job.step),
            folder=self._place.folder(name),
            bytes=job.image.size,
            stage_s=copy_s,
            write_s=save.write_s,
            total_s=clock.monotonic() - job.begun_s,
        )

    def _clear(self, job: Job, name: str, file: str) -> None:
        """Removes what has expired, as soon as one of those that stay is known to be whole; and
        reads this one back, so that the next can rely on it."""
        place, group, key = self._place, self._group, self._place.manifest(job.step)
        if self._whole in shelf.staying(place, self._keep, self._bad, key):
            self.prune(key, name, whole=False)
        some = self._rank == 0 and shelf.full(place, self._keep, self._bad, key)
        if group is not None:
            some = bool(group.from_first(f"save/{job.number}/expired", some, bool, _WORD_S))
        if not some:
            return
        found = shelf.open_key(place, key)
        trouble = verify.read_back(place, found, file, job.unread, job.limit_s)
        trouble = verify.agreed(group, job.number, trouble, job.limit_s)
        if trouble == verify.STOPPED:
            return
        if trouble:
            if self._rank == 0:
                self._warn(f"step {job.step} was saved, and cannot be read: {trouble}")
            self._bad.add(found.key)
            return
        self.prune(key, name)

    def prune(self, key: str, name: str, *, whole: bool = True) -> None:
        """What this one replaces. `whole`: it was read in full."""
        if whole:
            self._whole = key
        if self._rank == 0:
            shelf.prune(self._place, self._keep, self._bad, key, name)
        elif self._place.remote:
            shelf.sweep_here(self._place, shelf.kept(self._place), name)

    def _shared_life(self) -> str:
        if self._group is None or self._rank == 0:
            return self.life
        life = self._group.wait("life", str, _WORD_S)
        if life is None:
            raise SourceFailed("rank 0 has not said how files are named")
        if not _LIFE.fullmatch(life):
            raise BadMessage(0, f"{life[:80]!r}, which cannot be part of the name of a file")
        self.life = life
        return self.life


def _device_of(tensors: list[Any]) -> Any:
    """The GPU that any of them is on; else the computer's memory."""
    return next((each.device for each in tensors if each.device.type == "cuda"), "cpu")


def _told(error: Exception) -> str:
    words = str(getattr(error, "message", None) or error)
    # Python starts no threads any more: the script has failed, and says so itself.
    return "the process ended before it was done" if "interpreter shutdown" in words else words
