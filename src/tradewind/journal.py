"""The numbered commits of a run, over a Store.

`runs/<run-id>/journal/<20 digits>.json`, from 1 on without gaps. One object is one commit, created
once and never changed: whoever creates number N has decided what came N-th, everybody else reads it
and decides again. Events are plain values here, dictionaries with a `type`; what they mean is for
their reader.

    {"format": 1, "number": 7, "writer": "ctl-0199…", "at": "2026-11-15T12:00:00Z", "events": …}

A writer's id is its own for as long as it lives: number, id and content together tell whether a
commit is ours even if nobody told us so. Nothing is ever skipped: what cannot be read is BadFile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tradewind.errors import BadFile, InvalidValue, NotFound
from tradewind.store.base import Store, check_key

FORMAT = 1
Event = Mapping[str, Any]
_NAME = re.compile(r"(\d{20})\.json")
_LAST = 10**20 - 1


@dataclass(frozen=True, slots=True)
class Commit:
    number: int
    writer: str
    at: datetime
    events: tuple[dict[str, Any], ...]


def append(
    store: Store,
    run_id: str,
    number: int,
    *,
    writer: str,
    at: datetime,
    events: Sequence[Event],
) -> bool:
    """Commits `events` as `number`, one more than the last that the caller has read.

    False: another writer has that number; read on, and decide again. True: it is ours, also where
    an earlier call with the same arguments did it and its answer was lost. After SourceFailed
    nobody knows; call again with the same arguments."""
    key = _key(run_id, number)
    data = encoded(number, writer, at, events)
    return store.create(key, data) or store.get(key) == data


def read(store: Store, run_id: str, after: int = 0) -> list[Commit]:
    """The commits after number `after`, in order; none where there is no such run."""
    folder = _folder(run_id)
    keys = store.list_after(folder, _key(run_id, after) if after else "")
    numbers = []
    for key in keys:
        named = _NAME.fullmatch(key.removeprefix(folder))
        if not named:
            raise BadFile(
                f"{key} in {store.url} is no commit, and nothing else belongs in a journal",
                hint="move it away",
            )
        numbers.append(int(named[1]))
    commits = [
        _decoded(data, number, key, store.url)
        for number, key, data in zip(numbers, keys, store.get_many(keys), strict=True)
    ]
    if numbers and numbers[-1] - after != len(numbers):
        return _filled(store, run_id, after, commits)
    return commits


def _filled(store: Store, run_id: str, after: int, commits: list[Commit]) -> list[Commit]:
    """With those that a listing missed: a folder that is listed while two commits come into it may
    show the second only."""
    by_number = {commit.number: commit for commit in commits}
    whole = []
    for number in range(after + 1, commits[-1].number + 1):
        commit = by_number.get(number)
        if commit is None:
            key = _key(run_id, number)
            try:
                commit = _decoded(store.get(key), number, key, store.url)
            except NotFound:
                raise BadFile(
                    f"{key} is missing in {store.url}, though there are later commits",
                    hint="restore it from a backup or a version of the bucket; without it nobody"
                    " knows what the run has rented",
                ) from None
        whole.append(commit)
    return whole


def _folder(run_id: str) -> str:
    if "/" in run_id:
        raise InvalidValue(f"{run_id!r} cannot be a run's id: it holds a /")
    return check_key(f"runs/{run_id}/journal") + "/"


def _key(run_id: str, number: int) -> str:
    if not 1 <= number <= _LAST:
        raise InvalidValue(f"there is no commit number {number}; they start at 1")
    return f"{_folder(run_id)}{number:020d}.json"


def encoded(number: int, writer: str, at: datetime, events: Sequence[Event]) -> bytes:
    if not writer:
        raise InvalidValue("a commit needs the id of its writer")
    if at.tzinfo is None:
        raise InvalidValue(f"the time {at} of a commit has no time zone")
    if not events:
        raise InvalidValue("a commit needs at least one event")
    plain = [dict(event) for event in events]
    wrong = _wrong_event(plain)
    if wrong:
        raise InvalidValue(f"a commit cannot hold {wrong}")
    document = {
        "format": FORMAT,
        "number": number,
        "writer": writer,
        "at": at.isoformat(),
        "events": plain,
    }
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidValue(f"an event is not plain JSON: {error}") from None
    # A tuple or a number as a key would come back as something else.
    if json.loads(text)["events"] != plain:
        raise InvalidValue("an event would not come back as it is: use lists, and texts as keys")
    return text.encode()


def _decoded(data: bytes, number: int, key: str, url: str) -> Commit:
    def bad(why: str, hint: str | None = None) -> BadFile:
        return BadFile(f"{key} in {url} cannot be read: {why}", hint=hint)

    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise bad(f"it is damaged ({error})", "restore it from a backup") from None
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise bad("it is no commit")
    if document["format"] > FORMAT:
        raise bad(
            f"it has format {document['format']}, and this Tradewind knows up to {FORMAT}",
            "a newer Tradewind has written it: upgrade this one",
        )
    try:
        writer, at, events = document["writer"], document["at"], document["events"]
        found = Commit(document["number"], writer, datetime.fromisoformat(at), tuple(events))
    except (KeyError, TypeError, ValueError) as error:
        raise bad(f"it is no commit ({type(error).__name__}: {error})") from None
    if found.number != number:
        raise bad(f"it says that it is number {found.number}")
    if document["format"] != FORMAT or not isinstance(writer, str) or found.at.tzinfo is None:
        raise bad("it is no commit")
    wrong = _wrong_event(events)
    if wrong:
        raise bad(f"it holds {wrong}")
    return found


def _wrong_event(events: Sequence[Any]) -> str:
    for event in events:
        if type(event) is not dict or not isinstance(event.get("type"), str) or not event["type"]:
            return f"an event without a type: {str(event)[:80]}"
    return ""
