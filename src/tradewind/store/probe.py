"""Does a store keep its promises? Asked before anything is entrusted to it.

A bucket behind a gateway may accept "create only if absent" and overwrite all the same; two
controllers would then both believe that they own a run. So it is tried, alone and at once.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tradewind.base.errors import NotFound
from tradewind.store.base import Store

_CREATORS = 8
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Check:
    promise: str
    kept: bool
    saw: str


def probe(store: Store, name: str) -> list[Check]:
    """Tries the store in a folder `probe/<name>/` of its own, and leaves nothing there."""
    folder = f"probe/{name}/"
    checks: list[Check] = []

    def check(promise: str, trial: Callable[[], tuple[bool, str]]) -> None:
        checks.append(Check(promise, *trial()))

    try:
        check("reads what it wrote", lambda: _reads(store, folder))
        check("creates only what is absent", lambda: _creates(store, folder))
        check("lets one of many create", lambda: _races(store, folder))
        check("replaces whole", lambda: _replaces(store, folder))
        check("lists in order", lambda: _lists(store, folder))
        check("deletes", lambda: _deletes(store, folder))
    finally:
        for key in store.list_after(folder):
            store.delete(key)
    return checks


def _reads(store: Store, folder: str) -> tuple[bool, str]:
    if not store.create(folder + "read", b"first"):
        return False, "the first create of a fresh key was told that it exists"
    got = store.get(folder + "read")
    return got == b"first", "as written" if got == b"first" else f"wrote b'first', read {got!r}"


def _creates(store: Store, folder: str) -> tuple[bool, str]:
    again = store.create(folder + "read", b"second")
    got = store.get(folder + "read")
    if got != b"first":
        told = "yes" if again else "no"
        return False, f"a second create was told {told}, and overwrote the first"
    if again:
        return False, "a second create was told yes, though the first stayed"
    return True, "a second create was told no, and the first stayed"


def _races(store: Store, folder: str) -> tuple[bool, str]:
    with ThreadPoolExecutor(_CREATORS) as pool:
        for turn in range(_ROUNDS):
            key = f"{folder}race-{turn}"
            told = list(pool.map(lambda n, k=key: store.create(k, b"%d" % n), range(_CREATORS)))
            winners = [n for n, won in enumerate(told) if won]
            if len(winners) != 1:
                return False, f"{len(winners)} of {_CREATORS} at once were told yes"
            got = store.get(key)
            if got != b"%d" % winners[0]:
                return False, f"number {winners[0]} was told yes, but {got!r} is there"
    return True, f"one of {_CREATORS} at once, {_ROUNDS} times"


def _replaces(store: Store, folder: str) -> tuple[bool, str]:
    store.replace(folder + "read", b"third, and longer")
    got = store.get(folder + "read")
    kept = got == b"third, and longer"
    return kept, "the new one is read" if kept else f"read {got!r} after replacing"


def _lists(store: Store, folder: str) -> tuple[bool, str]:
    wanted = [f"{folder}list/{n:020d}.json" for n in range(1, 6)]
    for key in reversed(wanted):
        store.create(key, b"{}")
    for after in ("", wanted[0], wanted[2], wanted[4]):
        expected = [key for key in wanted if key > after]
        got = store.list_after(folder + "list/", after)
        if got != expected:
            return False, f"{len(expected)} keys after {after or 'the start'!r}, listed {got}"
    return True, f"{len(wanted)} keys, and what comes after each"


def _deletes(store: Store, folder: str) -> tuple[bool, str]:
    for _ in range(2):
        store.delete(folder + "read")
    try:
        got = store.get(folder + "read")
    except NotFound:
        return True, "gone, and deleting again is no error"
    return False, f"read {got!r} after deleting"
