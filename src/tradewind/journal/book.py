"""A folder's numbered commits, whatever they are of: runs and services keep theirs alike.

`<root>/<name>/journal/<20 digits>.json`, from 1 on without gaps; what it promises is told in
journal.py, which is the journal of runs.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeVar

from msgspec import ValidationError, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.base.steps import Steps
from tradewind.base.units import format_bytes
from tradewind.model import bounds
from tradewind.store.base import check_key
from tradewind.store.steps import Create, Find, Get, GetMany, ListAfter

VOLUME = 1000
_ONE_BY_ONE = 4
_NAME = re.compile(r"(\d{20})\.jsonl?")
_LAST = 10**20 - 1


class AnyCommit(Protocol):
    @property
    def format(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def writer(self) -> str: ...
    @property
    def at(self) -> datetime: ...
    @property
    def events(self) -> tuple[Any, ...]: ...


C = TypeVar("C", bound=AnyCommit)

_encode = json.Encoder().encode


class Book(Generic[C]):
    """Of one kind of commit, below one root of the store."""

    def __init__(self, root: str, kind: type[C], newest: int) -> None:
        """`newest`: the newest format of commits that is known."""
        self._root, self._newest = root, newest
        self._decode = json.Decoder(kind).decode

    def append_steps(self, run_id: str, commit: C) -> Steps[bool]:
        key = self._key(run_id, commit.number)
        data = encoded(commit)
        if (yield Create(key, data)):
            return True
        found: bytes = yield Get(key, bounds.COMMIT)
        return found == data

    def read_steps(self, run_id: str, after: int = 0) -> Steps[list[C]]:
        bound: list[C] = []
        if after:
            # Most often there is nothing new, and looking for the next one costs any store less
            # than a listing.
            for number in range(after + 1, after + 1 + _ONE_BY_ONE):
                key = self._key(run_id, number)
                data: bytes | None = yield Find(key, bounds.COMMIT)
                if data is None:
                    return bound
                bound.append(self._decoded(data, number, key))
        else:
            bound = yield from self._volumes(run_id)
        after += len(bound)
        folder = _folder(self._root, run_id)
        keys: list[str] = yield ListAfter(folder, self._key(run_id, after) if after else "")
        if not keys:
            return bound
        numbers = [_number(key, folder) for key in keys]
        found: list[bytes] = yield GetMany(tuple(keys), bounds.COMMIT)
        commits = [
            self._decoded(data, number, key)
            for number, key, data in zip(numbers, keys, found, strict=True)
        ]
        if numbers[-1] - after != len(numbers):
            commits = yield from self._filled(run_id, after, commits)
        return bound + commits if bound else commits

    def one_steps(self, run_id: str, number: int) -> Steps[C | None]:
        """The commit with this number; None where there is none yet."""
        key = self._key(run_id, number)
        data: bytes | None = yield Find(key, bounds.COMMIT)
        return None if data is None else self._decoded(data, number, key)

    def bind_steps(self, run_id: str, last: int) -> Steps[None]:
        if last % VOLUME or not last:
            return
        keys = tuple(self._key(run_id, number) for number in range(last - VOLUME + 1, last + 1))
        found: list[bytes] = yield GetMany(keys, bounds.COMMIT)
        volume = b"\n".join(found)
        if len(volume) <= bounds.VOLUME:
            yield Create(self._volume(run_id, last), volume)

    def _volumes(self, run_id: str) -> Steps[list[C]]:
        """Those from the first on; behind a gap the commits themselves are read."""
        folder = check_key(f"{self._root}/{run_id}/volumes") + "/"
        keys: list[str] = yield ListAfter(folder)
        if not keys:
            return []
        # What else lies there is no volume, and what is in volumes is in commits too.
        named = [key for key in keys if _NAME.fullmatch(key, len(folder))]
        whole = [key for n, key in enumerate(named, 1) if _number(key, folder) == n * VOLUME]
        found: list[bytes] = yield GetMany(tuple(whole), bounds.VOLUME)
        commits: list[C] = []
        for key, data in zip(whole, found, strict=True):
            lines = data.split(b"\n")
            if len(lines) != VOLUME:
                raise _bad(key, f"it has {len(lines)} commits and not {VOLUME}", "delete it")
            first = len(commits) + 1
            commits += [self._decoded(line, first + n, key) for n, line in enumerate(lines)]
        return commits

    def _filled(self, run_id: str, after: int, commits: list[C]) -> Steps[list[C]]:
        """With those that a listing missed: a folder that is listed while two commits come into it
        may show the second only."""
        by_number = {commit.number: commit for commit in commits}
        whole = []
        for number in range(after + 1, commits[-1].number + 1):
            commit = by_number.get(number)
            if commit is None:
                key = self._key(run_id, number)
                data: bytes | None = yield Find(key, bounds.COMMIT)
                if data is None:
                    raise BadFile(
                        f"{key} is missing in the store, though there are later commits",
                        hint="restore it from a backup or a version of the bucket; without it"
                        " the machines of the run are unknown",
                    )
                commit = self._decoded(data, number, key)
            whole.append(commit)
        return whole

    def _key(self, run_id: str, number: int) -> str:
        if not 1 <= number <= _LAST:
            raise InvalidValue(f"there is no commit number {number}; they start at 1")
        return f"{_folder(self._root, run_id)}{number:020d}.json"

    def _volume(self, run_id: str, last: int) -> str:
        return f"{self._root}/{run_id}/volumes/{last:020d}.jsonl"

    def _decoded(self, data: bytes, number: int, key: str) -> C:
        try:
            commit = self._decode(data)
        except ValidationError as error:
            raise self._explained(data, key, str(error)) from None
        except UNREADABLE as error:
            raise _bad(key, f"it is damaged ({error})", _cure(key)) from None
        if not 1 <= commit.format <= self._newest:
            raise self._explained(data, key, f"its format is {commit.format}")
        if commit.number != number:
            raise _bad(key, f"it says that it is number {commit.number}")
        if commit.at.tzinfo is None or not commit.writer or not commit.events:
            raise _bad(key, "it is no commit")
        return commit

    def _explained(self, data: bytes, key: str, why: str) -> BadFile:
        """What is wrong with a commit that is JSON but not one of ours."""
        upgrade = (
            "a newer Tradewind has written it, or it is damaged: upgrade this one, or restore it"
        )
        try:
            document = json.decode(data)
        except UNREADABLE as error:
            return _bad(key, f"it is damaged ({error})", _cure(key))
        found = document.get("format") if isinstance(document, dict) else None
        if type(found) is int and found > self._newest:
            return _bad(
                key,
                f"it has format {found}, and this Tradewind knows up to {self._newest}",
                upgrade,
            )
        if type(found) is int and found > 0 and "$.events[" in why:
            return _bad(key, f"this Tradewind does not know all of its events ({why})", upgrade)
        return _bad(key, f"it is no commit ({why})")


@lru_cache(100_000)  # asked for at every step, and checking a key is most of it
def _folder(root: str, run_id: str) -> str:
    if "/" in run_id:
        raise InvalidValue(f"{run_id!r} cannot be a run's id: it holds a /")
    return check_key(f"{root}/{run_id}/journal") + "/"


def _number(key: str, folder: str) -> int:
    named = _NAME.fullmatch(key, len(folder))
    if not named:
        raise BadFile(
            f"{key} in the store is no commit, and nothing else belongs in a journal",
            hint="move it away",
        )
    return int(named[1])


def encoded(commit: AnyCommit) -> bytes:
    if not commit.writer:
        raise InvalidValue("a commit needs the id of its writer")
    if commit.at.tzinfo is None:
        raise InvalidValue(f"the time {commit.at} of a commit has no time zone")
    if not commit.events:
        raise InvalidValue("a commit needs at least one event")
    data = _encode(commit)
    if len(data) > bounds.COMMIT:
        raise InvalidValue(
            f"a commit would have {format_bytes(len(data), digits=3)}, and at most"
            f" {format_bytes(bounds.COMMIT, digits=3)} are ever read",
            hint="of a new run: a plan with fewer options, and a shorter command and environment",
        )
    return data


def _bad(key: str, why: str, hint: str | None = None) -> BadFile:
    return BadFile(f"{key} in the store cannot be read: {why}", hint=hint)


def _cure(key: str) -> str:
    if key.endswith(".jsonl"):
        return "delete it: it is a copy, and the commits themselves are there"
    return "restore it from a backup"
