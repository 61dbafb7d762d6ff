"""How long it takes to open a long journal from a local folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from msgspec.structs import replace

from tradewind.base import clock
from tradewind.journal import journal
from tradewind.lifecycle import fold
from tradewind.model.event import (
    FORMAT,
    Commit,
    Event,
    LegOver,
    LegRequested,
    LegUp,
    MachineEnded,
    MachinesFound,
    Progress,
    Submitted,
)
from tradewind.model.run import Machine, Request, Spec, Way
from tradewind.store.local import LocalStore

EVENTS = 100_000
_A_LEG = 10
LIMIT_S = 1.0
_AT = datetime(2026, 11, 15, tzinfo=UTC)


def measure(repeats: int) -> dict[str, Any]:
    """For several sizes of commit, as controllers leave them; and one without its volumes."""
    found: dict[str, Any] = {"events": EVENTS}
    for each in (100, 10):
        with tempfile.TemporaryDirectory() as folder:
            store = LocalStore(Path(folder))
            _fill(Path(folder), store, _steady(each))
            found[f"open_s_{each}_a_commit"] = _median(repeats, partial(_read, store))
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(Path(folder))
        _fill(Path(folder), store, ((event,) for event in _lived()))
        found["open_s_1_a_commit"] = _median(repeats, lambda: _read(store))
        found["open_and_fold_s"] = _median(repeats, lambda: fold(_read(store)))
        last = len(_read(store)) - 1
        newest = _median(repeats, lambda: journal.read(store, "bench", last))
        found["newest_ms"] = round(1e3 * newest, 2)
        for key in store.list_after("runs/bench/volumes/"):
            store.delete(key)
        found["open_s_1_a_commit_unbound"] = _median(repeats, lambda: _read(store))
    with tempfile.TemporaryDirectory() as folder:
        store, taken = LocalStore(Path(folder)), []
        for number in range(1, 51):
            start = clock.stopwatch()
            journal.append(store, "bench", number, writer="w", at=_AT, events=[_event(number)])
            taken.append(clock.stopwatch() - start)
        found["append_ms_median"] = round(1e3 * median(taken), 2)
    return found | {"limit_s": LIMIT_S, "repeats": repeats}


def _read(store: LocalStore) -> list[Commit]:
    commits = journal.read(store, "bench")
    assert sum(len(commit.events) for commit in commits) >= EVENTS
    return commits


def _median(repeats: int, work: Callable[[], object]) -> float:
    taken = []
    for _ in range(repeats):
        start = clock.stopwatch()
        work()
        taken.append(clock.stopwatch() - start)
    return round(median(taken), 6)


def _event(number: int) -> Progress:
    return Progress(leg=number % 64 + 1, step=float(number), saved=number - 0.5, rate=0.5)


def _steady(each: int) -> Iterator[tuple[Event, ...]]:
    for first in range(0, EVENTS, each):
        yield tuple(_event(first + n) for n in range(each))


def _lived() -> Iterator[Event]:
    """A run that was interrupted ten thousand times."""
    way = Way(
        provider="cloud", region="r", zone="r-a", instance_type="t", market="spot", nodes=1,
        price=1_000_000, rate=1.0, start_s=100.0,
    )  # fmt: skip
    yield Submitted(run_id="bench", spec=Spec(name="bench", work=1e9, ways=(way,)))
    for leg in range(1, EVENTS // _A_LEG + 1):
        request = Request(
            launch_id=f"bench-{leg}", run_id="bench", leg=leg, way=way, hard_stop_s=10_000
        )
        machine = Machine(
            machine_id=f"cloud-{leg}", launch_id=f"bench-{leg}", run_id="bench", leg=leg, rank=0,
            launched_s=1000 * leg,
        )  # fmt: skip
        yield LegRequested(request=request, reason="the cheapest that will do")
        yield MachinesFound(machines=(machine,), reason="the provider launched them")
        yield LegUp(leg=leg, reason="every supervisor has reported")
        for n in range(5):
            yield Progress(leg=leg, step=10.0 * leg + n, saved=10.0 * leg + n, rate=0.5)
        ended = replace(machine, ended_s=1000 * leg + 900)
        yield MachineEnded(machine=ended, reason="its provider says so")
        yield LegOver(
            leg=leg, cause="interrupted", reason="machine was reclaimed", saved=10.0 * leg
        )


def _fill(folder: Path, store: LocalStore, commits: Iterable[tuple[Event, ...]]) -> None:
    """With volumes, as controllers leave it; without syncing, which is not what is measured."""
    place = folder / "runs" / "bench" / "journal"
    place.mkdir(parents=True)
    for number, events in enumerate(commits, 1):
        data = journal.encoded(Commit(FORMAT, number, "ctl-bench", _AT, events))
        (place / f"{number:020d}.json").write_bytes(data)
        journal.bind(store, "bench", number)
