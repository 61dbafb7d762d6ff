"""How long it takes to open a long journal from a local folder."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from tradewind import clock, journal
from tradewind.model.event import FORMAT, Commit, Progress
from tradewind.store.local import LocalStore

EVENTS = 100_000
LIMIT_S = 1.0
_AT = datetime(2026, 11, 15, tzinfo=UTC)


def measure(repeats: int) -> dict[str, Any]:
    """For several sizes of commit, as controllers leave them; and one without its volumes."""
    found: dict[str, Any] = {"events": EVENTS}
    for each, bound in ((100, True), (10, True), (1, True), (1, False)):
        with tempfile.TemporaryDirectory() as folder:
            store = LocalStore(Path(folder))
            _fill(Path(folder), store, each, bound)
            taken = []
            for _ in range(repeats):
                start = clock.stopwatch()
                commits = journal.read(store, "bench")
                taken.append(clock.stopwatch() - start)
                assert sum(len(commit.events) for commit in commits) == EVENTS
                start = clock.stopwatch()
                journal.read(store, "bench", commits[-1].number - 1)
                again = clock.stopwatch() - start
            name = f"open_s_{each}_a_commit" + ("" if bound else "_unbound")
            found[name] = round(median(taken), 3)
            if each == 1 and bound:
                found["newest_ms"] = round(1e3 * again, 2)
    with tempfile.TemporaryDirectory() as folder:
        store, taken = LocalStore(Path(folder)), []
        for number in range(1, 51):
            start = clock.stopwatch()
            journal.append(store, "bench", number, writer="w", at=_AT, events=[_event(number)])
            taken.append(clock.stopwatch() - start)
        found["append_ms_median"] = round(1e3 * median(taken), 2)
    return found | {"limit_s": LIMIT_S, "repeats": repeats}


def _event(number: int) -> Progress:
    return Progress(leg=number % 64 + 1, step=float(number), saved=number - 0.5, rate=0.5)


def _fill(folder: Path, store: LocalStore, each: int, bound: bool) -> None:
    """The commits without syncing, which is not what is measured."""
    place = folder / "runs" / "bench" / "journal"
    place.mkdir(parents=True)
    for number in range(1, EVENTS // each + 1):
        events = tuple(_event(number * each + n) for n in range(each))
        data = journal.encoded(Commit(FORMAT, number, "ctl-bench", _AT, events))
        (place / f"{number:020d}.json").write_bytes(data)
        if bound:
            journal.bind(store, "bench", number)
