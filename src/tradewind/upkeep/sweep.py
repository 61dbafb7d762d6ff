"""Ends what no run claims, and removes what need not be kept.

Nothing of a live run is touched, and nothing of one that is being submitted right now: what was
begun and not submitted is closed by taking its first commit, as a controller does. Whoever is late
with submitting is then told so; if they were first, it is a run, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct

from tradewind.api import follow, handed, owned, wishes
from tradewind.base import clock, steps
from tradewind.base.errors import BadFile, TradewindError
from tradewind.base.units import format_bytes
from tradewind.controller.controller import Controller
from tradewind.journal import journal, runs_store
from tradewind.journal.journal import Commit
from tradewind.lifecycle.states import NO_RETURN
from tradewind.model import places
from tradewind.model.event import Abandoned
from tradewind.providers.base import Leftover, Provider, Upkeep
from tradewind.store.base import Store
from tradewind.upkeep import unread
from tradewind.upkeep.survey import Stray, age_s, survey

AFTER_S = 3600
"""Submitting takes seconds to minutes: after an hour nobody is at it."""
RESUMABLE_S = 7 * 86400
"""A run that ended badly may be resumed, and finds its things here for so long."""
_PROBES = "probe/"


class Item(Struct, frozen=True):
    kind: str
    """machine, submission, trial, token, folder, process, wish, mark, secrets, log, unread"""
    name: str
    words: str
    act: Callable[[], bool]
    """False: it was needed after all, or is another's just now."""


class Found(Struct, frozen=True):
    items: list[Item]
    waiting: list[Stray]
    """Machines that no journal has asked for, and too young to be sure."""
    troubles: list[tuple[str, TradewindError]]


def find(
    store: Store,
    providers: Mapping[str, Provider],
    controller: Controller,
    perform: Callable[[object], object],
) -> Found:
    """What there is to do; each item does it."""
    sight = survey(store, providers)
    tick = _Once(lambda: _account(store, controller, perform))
    items = []
    for stray in sight.strays:
        if stray.due:
            words = f"is up, and {stray.why}"
            act = tick if stray.known else partial(_end, providers[stray.provider], stray)
            items.append(Item("machine", stray.machine.machine_id, words, act))
    for run_id in unsubmitted(store):
        words = "was begun and never submitted"
        items.append(Item("submission", run_id, words, partial(_abandon, store, run_id)))
    items += _trials(store)
    over = _Over(store)
    for provider in providers.values():
        if isinstance(provider, Upkeep):
            items += _of_provider(provider, over)
    items += _own_files(over)
    waiting = [stray for stray in sight.strays if not stray.due]
    return Found(items, waiting, sight.troubles)


class _Once:
    """One pass accounts for all machines of runs that are over."""

    def __init__(self, do: Callable[[], bool]) -> None:
        self._do, self._done = do, False

    def __call__(self) -> bool:
        if not self._done:
            self._do()
            self._done = True
        return True


def _account(store: Store, controller: Controller, perform: Callable[[object], object]) -> bool:
    """By the controller's own rules: what they find and end is recorded, and paid for. Runs that
    are marked have somebody who looks after them."""
    sight = steps.run(controller.look(), perform)
    for run_id in sight.runs:
        if run_id not in sight.marked:
            with suppress(Exception):  # said by `tick`; what else there is to end is ended
                steps.run(controller.tick(run_id, sight), perform)
    return True


def _end(provider: Provider, stray: Stray) -> bool:
    provider.terminate([stray.machine.machine_id])
    return True


def unsubmitted(store: Store, *, most: int | None = None) -> list[str]:
    """Runs without a first commit, begun so long ago that none will come; of the newest `most`."""
    ids = runs_store.run_ids(store)
    ids = ids if most is None else runs_store.by_age(ids)[-most:]
    live = set(runs_store.live_ids(store))
    ids = sorted(live.union(ids))
    old = [name for name in ids if (age_s(name) or 0.0) >= AFTER_S]

    def begun(run_id: str) -> bool:
        try:
            if journal.one(store, run_id, 1) is not None:
                return False
        except BadFile:
            return False  # there was a run, whatever became of it
        # Of a run that was emptied by hand only the folder is left: nothing to remove.
        return run_id in live or bool(store.list_after(places.run(run_id)))

    if not old:
        return []
    with ThreadPoolExecutor(min(runs_store.WORKERS, len(old))) as pool:
        return [name for name, is_begun in zip(old, pool.map(begun, old), strict=True) if is_begun]


def _abandon(store: Store, run_id: str) -> bool:
    """The commit first: from then on nobody can submit it."""
    event = Abandoned(run_id=run_id, reason="it was begun and never submitted; swept")
    at = journal.moment(clock.now().timestamp())
    if not journal.append(store, run_id, 1, writer=clock.new_id("sweep"), at=at, events=[event]):
        return False
    store.delete(places.bundle(run_id))
    for key in store.list_after(places.LIVE):
        if places.marked(key)[0] == run_id:
            store.delete(key)
    return True


def _trials(store: Store) -> Iterator[Item]:
    """What `init` and `doctor` try a store with, where they were cut off."""
    trials: dict[str, list[str]] = {}
    for key in store.list_after(_PROBES):
        trials.setdefault(key.removeprefix(_PROBES).partition("/")[0], []).append(key)
    for name, keys in trials.items():
        if (age_s(name) or 0.0) >= AFTER_S:
            words = "is left of a trial of the store"
            yield Item("trial", name, words, partial(_delete, store, keys))


def unread_data(
    store: Store, after_s: float
) -> tuple[list[Item], list[tuple[str, TradewindError]]]:
    """What runs that are over have left, and nobody has fetched for so long."""
    now_s = clock.now().timestamp()
    loaded, troubles = runs_store.load_all(store, runs_store.run_ids(store))
    items = []
    for one in unread.find(store, loaded, now_s, after_s):
        days = int((now_s - one.since_s) // 86_400)
        words = f"{format_bytes(one.bytes, digits=3)} of a run that is over, unread for {days} days"
        if one.resumable:
            words += f"; it ended as {one.outcome} and could not be resumed any more"
        act = partial(unread.remove, store, one.run_id, now_s - after_s)
        items.append(Item("unread", one.run_id, words, act))
    return items, troubles


def _delete(store: Store, keys: list[str]) -> bool:
    for key in keys:
        store.delete(key)
    return True


class _Over:
    """Whether a run of this store is over. What is not in it may be another store's: then no."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ids = set(runs_store.run_ids(store))
        self._last: dict[str, Commit | None] = {}
        self._outcome: dict[str, str] = {}

    def closed(self, run_id: str) -> bool:
        return self._look(run_id) is not None

    def for_good(self, run_id: str) -> bool:
        """It will not be resumed, or nobody has for long."""
        last = self._look(run_id)
        if last is None:
            return False
        ago = clock.epoch() - last.at.timestamp()
        return self._outcome[run_id] in NO_RETURN or ago >= RESUMABLE_S

    def _look(self, run_id: str) -> Commit | None:
        """The last commit of one that is closed."""
        if run_id not in self._ids:
            return None
        if run_id not in self._last:
            self._last[run_id] = None
            with suppress(TradewindError):  # of what cannot be read nothing is removed
                loaded = runs_store.load(self._store, run_id)
                if loaded.state.phase == "closed":
                    self._last[run_id] = loaded.commits[-1]
                    self._outcome[run_id] = loaded.state.outcome
        return self._last[run_id]


def _of_provider(provider: Upkeep, over: _Over) -> Iterator[Item]:
    def remove(left: Leftover) -> bool:
        return provider.remove(left)

    for left in provider.leftovers():
        if not left.run_id or over.closed(left.run_id):
            yield Item(left.kind, left.name, left.words, partial(remove, left))


def _own_files(over: _Over) -> Iterator[Item]:
    """What this computer has written down of runs: how their machines were to be interrupted, the
    secrets that they were handed, that they were submitted here, and what their watchers in the
    background said."""
    for path in sorted(wishes.folder().glob("*.json")):
        if over.for_good(path.stem):
            yield Item(
                "wish", path.stem, "how its machines were interrupted", partial(_unlink, path)
            )
    for path in sorted(handed.folder().glob("*.json")):
        if over.for_good(path.stem):
            yield Item("secrets", path.stem, "what its job was handed", partial(_unlink, path))
    for path in sorted(owned.folder().glob("*.json")):
        if over.for_good(path.stem):
            yield Item("mark", path.stem, "that it was submitted here", partial(_unlink, path))
    for path in sorted(follow.log_of("x").parent.glob("*.log")):
        if over.for_good(path.stem):
            yield Item("log", path.stem, "what its watcher said", partial(_unlink, path))


def _unlink(path: Path) -> bool:
    path.unlink(missing_ok=True)
    return True
