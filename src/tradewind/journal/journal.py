"""The numbered commits of a run, over a Store.

`runs/<run-id>/journal/<20 digits>.json`, from 1 on without gaps. One object is one commit, created
once and never changed: whoever creates number N has decided what came N-th, everybody else reads it
and decides again.

    {"format":1,"number":7,"writer":"ctl-0199…","at":"2026-11-15T12:00:00Z","events":[…]}

A writer's id is its own for as long as it lives: number, id and content together tell whether a
commit is ours even if nobody told us so. Nothing is ever skipped: what cannot be read is BadFile.

Every thousand commits are also bound into one object, `runs/<run-id>/volumes/<20 digits>.jsonl`,
named for the last of them, so that opening a long journal takes few requests. A volume is a copy
that anyone may make or delete; the commits stay.

`append` and `read` act at once; the `…_steps` are the same as generators of I/O steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache

from msgspec import ValidationError, json

from tradewind.base import steps
from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile, InvalidValue, NotFound
from tradewind.base.steps import Steps
from tradewind.base.units import format_bytes
from tradewind.model import bounds
from tradewind.model.event import FORMAT, Commit, Event
from tradewind.store.base import Store, check_key
from tradewind.store.steps import Create, Find, Get, GetMany, ListAfter, performer

__all__ = ["FORMAT", "Commit", "append", "bind", "one", "read"]

VOLUME = 1000
_ONE_BY_ONE = 4
_NAME = re.compile(r"(\d{20})\.jsonl?")
_LAST = 10**20 - 1


_encode = json.Encoder().encode
_decode = json.Decoder(Commit).decode


def append(
    store: Store, run_id: str, number: int, *, writer: str, at: datetime, events: Sequence[Event]
) -> bool:
    """Commits `events` as `number`, one more than the last that the caller has read.

    False: another writer has that number; read on, and decide again. True: it is ours, also where
    an earlier call with the same arguments did it and its answer was lost. After SourceFailed
    nobody knows; call again with the same arguments, or read."""
    commit = Commit(FORMAT, number, writer, at, tuple(events))
    return steps.run(append_steps(run_id, commit), performer(store))


def read(store: Store, run_id: str, after: int = 0) -> list[Commit]:
    """The commits after number `after`, in order; none where there is no such run."""
    return steps.run(read_steps(run_id, after), performer(store))


def one(store: Store, run_id: str, number: int) -> Commit | None:
    """The commit with this number; None where there is none yet."""
    key = _key(run_id, number)
    try:
        data = store.get(key, most=bounds.COMMIT)
    except NotFound:
        return None
    return _decoded(data, number, key)


def bind(store: Store, run_id: str, last: int) -> None:
    """Makes the volume that ends with commit number `last`, if it is due."""
    steps.run(bind_steps(run_id, last), performer(store))


def append_steps(run_id: str, commit: Commit) -> Steps[bool]:
    key = _key(run_id, commit.number)
    data = encoded(commit)
    if (yield Create(key, data)):
        return True
    found: bytes = yield Get(key, bounds.COMMIT)
    return found == data


def read_steps(run_id: str, after: int = 0) -> Steps[list[Commit]]:
    bound: list[Commit] = []
    if after:
        # Most often there is nothing new, and looking for the next one costs any store less than
        # a listing.
        for number in range(after + 1, after + 1 + _ONE_BY_ONE):
            key = _key(run_id, number)
            data: bytes | None = yield Find(key, bounds.COMMIT)
            if data is None:
                return bound
            bound.append(_decoded(data, number, key))
    else:
        bound = yield from _volumes(run_id)
    after += len(bound)
    folder = _folder(run_id)
    keys: list[str] = yield ListAfter(folder, _key(run_id, after) if after else "")
    if not keys:
        return bound
    numbers = [_number(key, folder) for key in keys]
    found: list[bytes] = yield GetMany(tuple(keys), bounds.COMMIT)
    commits = [
        _decoded(data, number, key) for number, key, data in zip(numbers, keys, found, strict=True)
    ]
    if numbers[-1] - after != len(numbers):
        commits = yield from _filled(run_id, after, commits)
    return bound + commits if bound else commits


def bind_steps(run_id: str, last: int) -> Steps[None]:
    if last % VOLUME or not last:
        return
    keys = tuple(_key(run_id, number) for number in range(last - VOLUME + 1, last + 1))
    found: list[bytes] = yield GetMany(keys, bounds.COMMIT)
    volume = b"\n".join(found)
    if len(volume) <= bounds.VOLUME:
        yield Create(_volume(run_id, last), volume)


def _volumes(run_id: str) -> Steps[list[Commit]]:
    """Those from the first on; behind a gap the commits themselves are read."""
    folder = check_key(f"runs/{run_id}/volumes") + "/"
    keys: list[str] = yield ListAfter(folder)
    if not keys:
        return []
    whole = [key for n, key in enumerate(keys, 1) if _number(key, folder) == n * VOLUME]
    found: list[bytes] = yield GetMany(tuple(whole), bounds.VOLUME)
    commits: list[Commit] = []
    for key, data in zip(whole, found, strict=True):
        lines = data.split(b"\n")
        if len(lines) != VOLUME:
            raise _bad(key, f"it has {len(lines)} commits and not {VOLUME}", "delete it")
        first = len(commits) + 1
        commits += [_decoded(line, first + n, key) for n, line in enumerate(lines)]
    return commits


def _filled(run_id: str, after: int, commits: list[Commit]) -> Steps[list[Commit]]:
    """With those that a listing missed: a folder that is listed while two commits come into it may
    show the second only."""
    by_number = {commit.number: commit for commit in commits}
    whole = []
    for number in range(after + 1, commits[-1].number + 1):
        commit = by_number.get(number)
        if commit is None:
            key = _key(run_id, number)
            data: bytes | None = yield Find(key, bounds.COMMIT)
            if data is None:
                raise BadFile(
                    f"{key} is missing in the store, though there are later commits",
                    hint="restore it from a backup or a version of the bucket; without it"
                    " the machines of the run are unknown",
                )
            commit = _decoded(data, number, key)
        whole.append(commit)
    return whole


@lru_cache(100_000)  # asked for at every step, and checking a key is most of it
def _folder(run_id: str) -> str:
    if "/" in run_id:
        raise InvalidValue(f"{run_id!r} cannot be a run's id: it holds a /")
    return check_key(f"runs/{run_id}/journal") + "/"


def _key(run_id: str, number: int) -> str:
    if not 1 <= number <= _LAST:
        raise InvalidValue(f"there is no commit number {number}; they start at 1")
    return f"{_folder(run_id)}{number:020d}.json"


def _volume(run_id: str, last: int) -> str:
    return f"runs/{run_id}/volumes/{last:020d}.jsonl"


def _number(key: str, folder: str) -> int:
    named = _NAME.fullmatch(key, len(folder))
    if not named:
        raise BadFile(
            f"{key} in the store is no commit, and nothing else belongs in a journal",
            hint="move it away",
        )
    return int(named[1])


def encoded(commit: Commit) -> bytes:
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


def _decoded(data: bytes, number: int, key: str) -> Commit:
    try:
        commit = _decode(data)
    except ValidationError as error:
        raise _explained(data, key, str(error)) from None
    except UNREADABLE as error:
        raise _bad(key, f"it is damaged ({error})", _cure(key)) from None
    if commit.format != FORMAT:
        raise _explained(data, key, f"its format is {commit.format}")
    if commit.number != number:
        raise _bad(key, f"it says that it is number {commit.number}")
    if commit.at.tzinfo is None or not commit.writer or not commit.events:
        raise _bad(key, "it is no commit")
    return commit


def _cure(key: str) -> str:
    if key.endswith(".jsonl"):
        return "delete it: it is a copy, and the commits themselves are there"
    return "restore it from a backup"


def _explained(data: bytes, key: str, why: str) -> BadFile:
    """What is wrong with a commit that is JSON but not one of ours."""
    upgrade = "a newer Tradewind has written it, or it is damaged: upgrade this one, or restore it"
    try:
        document = json.decode(data)
    except UNREADABLE as error:
        return _bad(key, f"it is damaged ({error})", _cure(key))
    found = document.get("format") if isinstance(document, dict) else None
    if type(found) is int and found > FORMAT:
        return _bad(key, f"it has format {found}, and this Tradewind knows up to {FORMAT}", upgrade)
    if found == FORMAT and "$.events[" in why:
        return _bad(key, f"this Tradewind does not know all of its events ({why})", upgrade)
    return _bad(key, f"it is no commit ({why})")


def moment(seconds: float) -> datetime:
    """A clock's seconds as commits write them."""
    return datetime.fromtimestamp(seconds, UTC)
