"""The numbered commits of a run, over a Store.

`runs/<run-id>/journal/<20 digits>.json`, from 1 on without gaps. One object is one commit, created
once and never changed: whoever creates number N has decided what came N-th, everybody else reads it
and decides again.

    {"format":2,"number":7,"writer":"ctl-0199…","at":"2026-11-15T12:00:00Z","events":[…]}

A writer's id is its own for as long as it lives: number, id and content together tell whether a
commit is ours even if nobody told us so. Nothing is ever skipped: what cannot be read is BadFile.

Every thousand commits are also bound into one object, `runs/<run-id>/volumes/<20 digits>.jsonl`,
named for the last of them, so that opening a long journal takes few requests. A volume is a copy
that anyone may make or delete; the commits stay.

`append` and `read` act at once; the `…_steps` are the same as generators of I/O steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from tradewind.base import steps
from tradewind.journal.book import VOLUME, Book, encoded
from tradewind.model.event import FORMAT, Commit, Event
from tradewind.store.base import Store
from tradewind.store.steps import performer

__all__ = ["FORMAT", "VOLUME", "Commit", "append", "bind", "encoded", "one", "read"]

BOOK = Book("runs", Commit, FORMAT)
append_steps, read_steps, bind_steps = BOOK.append_steps, BOOK.read_steps, BOOK.bind_steps


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
    return steps.run(BOOK.one_steps(run_id, number), performer(store))


def bind(store: Store, run_id: str, last: int) -> None:
    """Makes the volume that ends with commit number `last`, if it is due."""
    steps.run(bind_steps(run_id, last), performer(store))


def moment(seconds: float) -> datetime:
    """A clock's seconds as commits write them."""
    return datetime.fromtimestamp(seconds, UTC)
