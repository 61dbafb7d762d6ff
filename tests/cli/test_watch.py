"""`tradewind watch` of all runs tells how they end."""

from __future__ import annotations

from tests.lifecycle.builders import AT, SPEC
from tradewind.cli.runs.watch import Ends
from tradewind.controller.memory import RunMemory
from tradewind.journal import journal
from tradewind.lifecycle.fold import fold
from tradewind.model.event import Ended, Event, Submitted
from tradewind.store.memory import MemoryStore


def remembered(store: MemoryStore, run_id: str) -> RunMemory:
    memory = RunMemory(run_id, 0.0)
    memory.state = fold(journal.read(store, run_id))
    return memory


def write(store: MemoryStore, run_id: str, number: int, event: Event) -> None:
    assert journal.append(store, run_id, number, writer="w", at=AT, events=[event])


def test_each_end_is_told_once_also_of_those_that_others_have_ended() -> None:
    store = MemoryStore()
    ends = Ends(store)
    for name in ("a", "b", "c"):
        write(store, name, 1, Submitted(run_id=name, spec=SPEC))
    write(store, "old", 1, Submitted(run_id="old", spec=SPEC))
    write(store, "old", 2, Ended(outcome="failed", reason="r"))
    assert ends.since({n: remembered(store, n) for n in ("a", "b", "c", "old")}) == []
    write(store, "a", 2, Ended(outcome="succeeded", reason="r"))
    write(store, "b", 2, Ended(outcome="cancelled", reason="r"))
    told = ends.since({n: remembered(store, n) for n in ("a", "c")})  # b is forgotten already
    assert [(name, state.outcome) for name, state in told] == [
        ("a", "succeeded"),
        ("b", "cancelled"),
    ]
    assert ends.since({n: remembered(store, n) for n in ("a", "c")}) == []
