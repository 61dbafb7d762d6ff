"""A run is not resumed past its deadline without a word."""

from __future__ import annotations

import pytest

from tests.lifecycle.builders import AT, submitted
from tradewind.api import orders
from tradewind.base.errors import InvalidValue
from tradewind.journal import journal, runs_store
from tradewind.model.event import Closed, Ended, Event
from tradewind.sim.faults import RUN
from tradewind.store.memory import MemoryStore


def over(*, hard: bool) -> MemoryStore:
    """A run that has ended, a long time after its deadline."""
    store = MemoryStore()
    events: list[Event] = [
        submitted(deadline_s=AT.timestamp() - 7200, hard=hard),
        Ended(outcome="too_late", reason="the deadline has passed"),
        Closed(reason="every machine has ended"),
    ]
    assert journal.append(store, RUN, 1, writer="w", at=AT, events=events)
    return store


def test_a_hard_deadline_that_has_passed_needs_another_one() -> None:
    store = over(hard=True)
    with pytest.raises(InvalidValue, match="its deadline passed") as found:
        orders.resume(store, RUN)
    assert "--deadline" in (found.value.hint or "")
    assert runs_store.load(store, RUN).state.phase == "closed"
    orders.resume(store, RUN, within_s=3600)
    assert runs_store.load(store, RUN).state.phase == "waiting"
    assert orders.late_by_s(store, RUN) == 0


def test_another_one_is_finished_late() -> None:
    store = over(hard=False)
    orders.resume(store, RUN)
    assert runs_store.load(store, RUN).state.phase == "waiting"
    assert orders.late_by_s(store, RUN) > 0
