"""What is left when all runs are over and should not be.

Processes of the home; machines that are listed as running; marks of runs in `live/`; and files.
Files may stay where they are documented to: the runs' own folders in the store and its seed, a
controller's memory and its sign, the tokens of purchases, records of use, the logs of watchers, and
that a run was submitted here, which a run needs to be resumed. Purchases and
machines' folders are kept for an hour (LISTED_S), so it is looked what is left when that hour has
passed.
"""

from __future__ import annotations

from pathlib import Path

from tradewind.base import clock
from tradewind.base.signing import SEED
from tradewind.bench.chaos import ours
from tradewind.model import places
from tradewind.providers.local.provider import LISTED_S, LocalProvider
from tradewind.store.base import RESERVED, Store

_WAIT_S = 30.0
_STAYS = ("controllers", "used", "watch")


def processes(home: Path, within_s: float = _WAIT_S) -> list[str]:
    """Whoever still runs after so long: a host tells the end before it leaves."""
    until = clock.stopwatch() + within_s
    while True:
        found = ours.all_of(home)
        if not found or clock.stopwatch() > until:
            return [f"process {each.pid} ({each.kind} {each.machine})" for each in found]
        clock.sleep(0.1)


def machines(home: Path, store: Store) -> list[str]:
    listing = LocalProvider(home, store.url).list_machines()
    return [f"machine {each.machine_id}" for each in listing.machines if each.ended_s is None]


def keys(store: Store) -> list[str]:
    return [
        f"key {key}"
        for key in store.list_after("")
        if not key.startswith((places.RUNS, "controllers/")) and key != SEED
    ]


def files(home: Path, store: Store) -> list[str]:
    later = LocalProvider(home, store.url, clock=lambda: clock.now().timestamp() + LISTED_S + 60)
    later.list_machines()
    return [f"file {path.relative_to(home)}" for path in _files(home) if not _may_stay(home, path)]


def _files(home: Path) -> list[Path]:
    kept = home / "store"
    return sorted(
        path
        for path in home.rglob("*")
        if path.is_file() and (RESERVED in path.parts or not path.is_relative_to(kept))
    )


def _may_stay(home: Path, path: Path) -> bool:
    where = path.relative_to(home)
    if where.name.startswith(".") or where.name.endswith(".new"):
        return False
    return where.parts[0] in _STAYS or where.parts[:2] in (("local", "tokens"), ("local", "runs"))
