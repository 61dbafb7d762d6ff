from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.ledger.making import HOUR_S, NOON_S, events_of
from tests.lifecycle.builders import AT, SPOT
from tradewind import store as stores
from tradewind.api import orders
from tradewind.base.errors import InvalidValue
from tradewind.journal import journal, runs_store
from tradewind.model import places
from tradewind.model.event import Closed, LegOver, Progress
from tradewind.store import readers
from tradewind.store.base import Store
from tradewind.upkeep import unread

DAY_S = 86_400


@pytest.fixture
def store(home: Path) -> Store:
    return stores.open()


def left(store: Store, run_id: str, outcome: str, *, days_ago: float, closed: bool = True) -> None:
    """A run with a checkpoint and an output, written so long ago."""
    events: list[Any] = events_of(run_id, NOON_S, (SPOT, HOUR_S), outcome="")
    if outcome:
        events.append(Progress(leg=1, step=900.0, saved=900.0, rate=None))
        events.append(LegOver(leg=1, cause="lost", reason="r"))
        events += list(events_of(run_id, NOON_S, outcome=outcome)[-2:])
    if closed:
        events.append(Closed(reason="r"))
    assert journal.append(store, run_id, 1, writer="w", at=AT, events=events)
    for key in (places.checkpoint(run_id, 1, 5), f"{places.shards(run_id)}000001/5-1/a"):
        store.replace(key, b"x" * 1000)
        _age(store, key, days_ago)


def _age(store: Store, key: str, days_ago: float) -> None:
    path = Path(store.url.removeprefix("file://")) / key
    then = NOON_S - days_ago * DAY_S
    os.utime(path, (then, then))


def found(store: Store, days: float) -> list[str]:
    loaded, _ = runs_store.load_all(store, runs_store.run_ids(store))
    return [one.run_id for one in unread.find(store, loaded, NOON_S, days * DAY_S)]


def test_runs_that_are_over_and_whose_data_nobody_has_touched(store: Store) -> None:
    left(store, "old-1", "succeeded", days_ago=40)
    left(store, "new-1", "succeeded", days_ago=3)
    left(store, "on-1", "", days_ago=40, closed=False)
    assert found(store, 30) == ["old-1"]
    assert sorted(found(store, 1)) == ["new-1", "old-1"]
    assert found(store, 50) == []


def test_whoever_fetches_it_has_read_it(store: Store) -> None:
    left(store, "old-1", "succeeded", days_ago=40)
    readers.note(store, "old-1")
    _age(store, places.read("old-1"), 2)
    assert found(store, 30) == []
    _age(store, places.read("old-1"), 31)
    assert found(store, 30) == ["old-1"]


def test_the_command_shows_it_and_the_one_that_it_names_removes_it(store: Store, cli: Cli) -> None:
    left(store, "old-1", "failed", days_ago=40)
    shown = cli("cost", "--unread", "30d")
    assert "old-1" in shown.out
    assert "tradewind sweep --unread 30d" in shown.out
    told = cli("cost", "--unread", "30d", "--json").json["unread"]
    assert told["runs"][0]["bytes"] == 2000
    before = cli("cost", "--json").json
    swept = cli("sweep", "--unread", "30d", "--yes")
    assert "could not be resumed any more" in swept.out
    assert "1 of 1 done" in swept.out
    assert found(store, 30) == []
    assert not store.list_after(places.shards("old-1"))
    assert cli("cost", "--json").json == before  # the ledger stays


BEFORE_S = NOON_S - 30 * DAY_S


def test_what_is_resumed_or_fetched_meanwhile_is_left(store: Store) -> None:
    left(store, "old-1", "failed", days_ago=40)
    readers.note(store, "old-1")
    assert not unread.remove(store, "old-1", BEFORE_S)
    _age(store, places.read("old-1"), 31)
    store.create(places.live("old-1"), b"")
    assert not unread.remove(store, "old-1", BEFORE_S)
    store.delete(places.live("old-1"))
    fresh = places.checkpoint("old-1", 2, 9)  # it went on meanwhile, and is over again
    store.replace(fresh, b"x")
    _age(store, fresh, 1)
    assert not unread.remove(store, "old-1", BEFORE_S)
    store.delete(fresh)
    assert store.list_after(places.shards("old-1"))
    assert unread.remove(store, "old-1", BEFORE_S)
    assert not store.list_after(places.shards("old-1"))


def test_what_goes_on_while_it_is_removed_keeps_the_rest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    left(store, "old-1", "failed", days_ago=40)
    delete = type(store).delete

    def resumed(self: Store, key: str) -> None:
        delete(self, key)
        self.create(places.live("old-1"), b"")

    monkeypatch.setattr(type(store), "delete", resumed)
    assert not unread.remove(store, "old-1", BEFORE_S)
    assert store.list_after(places.shards("old-1"))


def test_what_was_swept_is_not_resumed_as_if_it_went_on(store: Store) -> None:
    left(store, "old-1", "failed", days_ago=40)
    left(store, "own-1", "failed", days_ago=40)  # it saves where it likes, and nothing of it here
    for key in [*store.list_after(places.shards("own-1")), places.checkpoint("own-1", 1, 5)]:
        store.delete(key)
    assert unread.remove(store, "old-1", BEFORE_S)
    with pytest.raises(InvalidValue, match="removed by a sweep"):
        orders.resume(store, "old-1")
    assert runs_store.load(store, "old-1").state.phase == "closed"
    orders.resume(store, "own-1")
    assert runs_store.load(store, "own-1").state.phase == "waiting"
