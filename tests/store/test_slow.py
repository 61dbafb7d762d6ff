"""A store at a distance keeps the promises of a store, and counts what it is asked."""

from __future__ import annotations

import pytest

from tests.store.conformance import Conformance, Place
from tradewind.base import clock
from tradewind.bench.slow import Slow
from tradewind.store.memory import MemoryStore


class TestSlow(Conformance):
    @pytest.fixture
    def place(self) -> Place:
        return Place(Slow(MemoryStore(), 0.0), other_process=False)


def test_requests_are_counted_and_take_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(clock, "sleep", slept.append)
    store = Slow(MemoryStore(), 0.5)
    for number in range(2500):
        store.create(f"live/{number:04d}", b"")
    store.replace("runs/a", b"1")
    assert (store.requests(), store.requests("live"), store.changes()) == (2501, 2500, 2501)
    slept.clear()
    assert len(store.list_after("live/")) == 2500
    assert slept == [1.5]  # three pages, one after another
    assert store.list_after("nothing/") == []
    store.get_many(["live/0001", "live/0002"])
    store.get_many([])
    assert slept == [1.5, 0.5, 0.5]  # both at once, and nothing for nothing
    store.get("runs/a")
    assert (store.requests("live"), store.requests("nothing")) == (2505, 1)
    assert (store.requests("runs"), store.changes()) == (2, 2501)
