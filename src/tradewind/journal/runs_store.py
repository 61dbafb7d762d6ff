"""The runs of a store, read: which there are, which one a user means, and their journals.

Nothing is written. Listing asks for the names of runs only, whatever lies below them; journals are
read many at once, because reading one is mostly waiting for the store. What is wrong with one run
is told beside the others, which are read nevertheless.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from msgspec import Struct

from tradewind.base.errors import NotFound, TradewindError, bug
from tradewind.base.units import format_names
from tradewind.journal import journal
from tradewind.journal.journal import Commit
from tradewind.lifecycle import RunState, fold
from tradewind.model import places
from tradewind.model.event import Event
from tradewind.store.base import Store

WORKERS = 32
"""Journals at once; each may itself fetch several commits at once."""
_SHOWN = 5


class Loaded(Struct, frozen=True):
    run_id: str
    commits: list[Commit]
    state: RunState

    @property
    def events(self) -> Iterable[Event]:
        return (event for commit in self.commits for event in commit.events)


def run_ids(store: Store) -> list[str]:
    """Of every run that ever was, live and closed, by their names and then by when they were
    submitted. One that is being submitted, or whose folder was emptied, may have no commits."""
    return [name for name in store.folders(places.RUNS) if places.is_run_id(name)]


def other_folders(store: Store) -> list[str]:
    """Those that lie among the runs and cannot be any."""
    every = store.folders(places.RUNS)
    return [each for each in every if not places.is_run_id(each) and not places.is_of_service(each)]


def live_ids(store: Store) -> list[str]:
    names = (places.marked(key)[0] for key in store.list_after(places.LIVE))
    # A resumed run may have two marks.
    return [name for name in dict.fromkeys(names) if places.is_run_id(name)]


class Meant(Struct, frozen=True):
    """A run that was called by its name, and how many have that name."""

    run_id: str
    of: int = 1
    live: bool = False
    """It was preferred to newer ones because it goes on."""


def name_of(run_id: str) -> str:
    return run_id.rsplit("-", 2)[0]


def of_name(ids: Sequence[str], name: str) -> list[str]:
    """All runs of that name, the oldest first."""
    return by_age(run_id for run_id in ids if name_of(run_id) == name)


def all_of(ids: Sequence[str], name: str) -> list[str]:
    """All runs of that name; else the one that is meant."""
    return (of_name(ids, name) if name not in ids else []) or [find(ids, name)]


def find(ids: Sequence[str], name: str) -> str:
    """The run that is meant: its id, the newest of its name, or the beginning of an id that no
    other has. `ids` are all."""
    if name in ids:
        return name
    if same := of_name(ids, name):
        return same[-1]
    meant = [run_id for run_id in ids if name and run_id.startswith(name)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise NotFound(
            f"{name!r} may be any of {len(meant)} runs: {format_names(meant, _SHOWN)}",
            hint="write more of the id",
            choices=meant,
        )
    close = difflib.get_close_matches(name, ids, n=3, cutoff=0.6)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    else:
        hint = f"the newest is {by_age(ids)[-1]}" if ids else "there are no runs in this store"
    raise NotFound(f"there is no run {name!r}", hint=hint, choices=close)


def by_age(ids: Iterable[str]) -> list[str]:
    """The oldest first, whatever their names: `<name>-<time>-<chance>`."""
    return sorted(ids, key=lambda run_id: run_id.rsplit("-", 2)[-2:])


def named(store: Store, name: str) -> str:
    """The same among all runs of a store; of several with a name the newest that goes on."""
    return meant(store, name).run_id


def meant(store: Store, name: str) -> Meant:
    ids = run_ids(store)
    if not ids:
        raise NotFound(
            f"there is no run {name!r}",
            hint=f"there are no runs in {store.url}; --store names another store",
        )
    same = of_name(ids, name) if name not in ids else []
    if len(same) < 2:
        return Meant(find(ids, name))
    going = set(live_ids(store))
    live = [run_id for run_id in same if run_id in going]
    chosen = (live or same)[-1]
    return Meant(chosen, len(same), live=chosen != same[-1])


def load(store: Store, run_id: str) -> Loaded:
    """BadFile where its journal is damaged. One that has not begun yet has no commits."""
    commits = journal.read(store, run_id)
    return Loaded(run_id, commits, fold(commits))


def load_all(
    store: Store,
    ids: Sequence[str],
    *,
    workers: int = WORKERS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Loaded], list[tuple[str, TradewindError]]]:
    """Those that could be read, and what is wrong with which others; both in the order of `ids`."""

    def one(run_id: str) -> Loaded | TradewindError:
        try:
            return load(store, run_id)
        except TradewindError as error:
            return error
        except Exception as error:
            return bug(run_id, error)

    loaded: list[Loaded] = []
    troubles: list[tuple[str, TradewindError]] = []
    if not ids:
        return loaded, troubles
    with ThreadPoolExecutor(min(workers, len(ids)), thread_name_prefix="load") as pool:
        for done, (run_id, found) in enumerate(zip(ids, pool.map(one, ids), strict=True), 1):
            if isinstance(found, Loaded):
                loaded.append(found)
            else:
                troubles.append((run_id, found))
            progress(done, len(ids))
    return loaded, troubles
