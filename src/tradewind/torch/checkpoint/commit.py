"""The moment in which a checkpoint comes to exist: for all ranks, or for none.

Each rank says that its file is durable, or what went wrong. Rank 0 waits for all of them, checks
that the files are there in full size, and creates the manifest. Then it says so. A rank that does
not hear it takes the checkpoint for not saved; what exists is asked of the manifests alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from tradewind.base import clock
from tradewind.base.errors import BadFile, TradewindError
from tradewind.torch.checkpoint import files, manifest, shelf
from tradewind.torch.checkpoint.group import Group
from tradewind.torch.checkpoint.layout import Told
from tradewind.torch.checkpoint.place import Place
from tradewind.torch.messages import BadMessage


@dataclass(frozen=True)
class Report:
    """What a rank says of its file; rank 0's verdict on all of them has the first field only."""

    trouble: str = ""
    file: str = ""
    bytes: int = 0
    sums: list[int] = field(default_factory=list)
    entries: list[Told] = field(default_factory=list)


class Commit:
    def __init__(
        self, place: Place, group: Group | None, number: int, step: int, name: str, world: int
    ) -> None:
        self._place, self._group = place, group
        self._number, self._step, self._name, self._world = number, step, name, world

    def agree(self, words: Report, wait_s: float, verdict_s: float) -> str:
        """What went wrong, "" for nothing."""
        group = self._group
        if group is None:
            return self._create([words])
        key = f"save/{self._number}"
        group.leave(f"{key}/{group.rank}", words)
        if group.rank == 0:
            told = self._collect(group, key, wait_s)
            trouble = self._create(told)
            group.leave(f"{key}/verdict", Report(trouble))
            if len(told) == self._world and all(words.file for words in told):
                self._forget(group)
            return trouble
        try:
            verdict = group.wait(f"{key}/verdict", Report, verdict_s)
            group.leave(f"{key}/{group.rank}/heard", True)
        except Exception:  # of torch's store: rank 0, or what it met at, is gone
            verdict = None
        if verdict is not None:
            return verdict.trouble
        return "" if self._exists() else "rank 0 did not say whether all ranks have saved it"

    def refused(self) -> str:
        """What makes it pointless to go on: another rank cannot, or rank 0 has said no. Otherwise
        who is busy with a save that fails would have to skip the next, and so on in turns."""
        group = self._group
        if group is None:
            return ""
        key = f"save/{self._number}"
        ranks = range(1, self._world) if group.rank == 0 else ()
        try:
            for place in (f"{key}/verdict", *(f"{key}/{rank}" for rank in ranks)):
                words = group.look(place, Report)
                if words is not None and words.trouble:
                    return words.trouble
        except Exception:  # of torch's store; what comes of it is seen in the end
            return ""
        return ""

    def heard(self, timeout_s: float) -> None:
        """Waits until the others have heard the verdict: they could not from one who is gone."""
        group = self._group
        if group is None or group.rank != 0:
            return
        until = clock.monotonic() + timeout_s
        with suppress(Exception):
            for rank in range(1, self._world):
                left_s = max(0.0, until - clock.monotonic())
                group.wait(f"save/{self._number}/{rank}/heard", bool, left_s)

    def _exists(self) -> bool:
        """Whether there is a manifest, and of this very save."""
        try:
            return shelf.open_key(self._place, self._place.manifest(self._step)).name == self._name
        except TradewindError:
            return False

    def undo(self) -> None:
        """Removes the files of what does not exist. If rank 0 was not heard, it may exist."""
        if self._group is None or self._group.rank == 0:
            files.remove(self._place, self._name)
        elif self._place.remote:
            files.remove_here(self._place, self._name)

    def _collect(self, group: Group, key: str, wait_s: float) -> list[Report]:
        """What the ranks say, until one has failed or the time is over."""
        until = clock.monotonic() + wait_s
        told: list[Report] = []
        for rank in range(self._world):
            try:
                words = group.wait(f"{key}/{rank}", Report, max(1.0, until - clock.monotonic()))
            except BadMessage as error:
                words = Report(f"rank {rank}: {error.message}")
            told.append(words or Report(f"rank {rank} did not say that it has saved its part"))
            if told[-1].trouble:
                break
        return told

    def _create(self, told: list[Report]) -> str:
        trouble = told[-1].trouble
        if not trouble:
            try:
                self._write(told)
                return ""
            except TradewindError as error:
                trouble = error.message
        return trouble

    def _write(self, told: list[Report]) -> None:
        place = self._place
        for rank, words in enumerate(told):
            if words.file != manifest.of_rank(rank):
                raise BadMessage(rank, f"a file's name that is not its own: {words.file!r}")
        listed = [(words.file, words.entries) for words in told]
        known = {words.file: (words.bytes, tuple(words.sums)) for words in told}
        for file, data in (
            (manifest.METADATA, manifest.metadata(listed)),
            (manifest.INDEX, manifest.index(listed)),
        ):
            place.store.replace(f"{place.shards}{self._name}/{file}", data)
            known[file] = (len(data), manifest.sums(data))
        whole = manifest.Manifest(self._step, place.leg, self._world, self._name, known)
        wrong = files.Files(place, whole).wrong_size()
        if wrong:
            raise BadFile(f"{wrong}: do all ranks write to the same folder?")
        key, data = place.manifest(self._step), whole.encode()
        if not place.store.create(key, data):
            # Of the same step, from before we had to start again from an earlier one. In one go:
            # at no time there is neither.
            place.store.replace(key, data)

    def _forget(self, group: Group) -> None:
        """All ranks have read the verdicts on all saves before, as they have sent us their words on
        this one after that. Who skips it has not: it may still wait for one of them."""
        with suppress(Exception):
            while group.forgotten < self._number - 2:
                number = group.forgotten + 1
                for rank in range(self._world):
                    group.forget(f"save/{number}/{rank}")
                    group.forget(f"save/{number}/{rank}/heard")
                    group.forget(f"save/{number}/whole/{rank}")
                for word in ("verdict", "expired", "whole/all"):
                    group.forget(f"save/{number}/{word}")
                group.forgotten = number
