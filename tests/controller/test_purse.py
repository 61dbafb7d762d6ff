"""Budgets of projects, from journals in a store."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.lifecycle.builders import (
    AT,
    SPEC,
    WAY,
    a_machine,
    a_request,
)
from tradewind.base import clock
from tradewind.base.errors import BadFile, NoAccess, SourceFailed
from tradewind.controller.drive import performer
from tradewind.controller.purse import AskMonth, Purse
from tradewind.journal import journal
from tradewind.ledger.budgets import Budget, Budgets
from tradewind.ledger.postings import cost_of
from tradewind.model import places
from tradewind.model.event import (
    Closed,
    Ended,
    Event,
    LegOver,
    LegRequested,
    MachineEnded,
    MachinesFound,
    Resumed,
    Submitted,
)
from tradewind.model.run import Listing, Machine, Request
from tradewind.model.timing import UNATTENDED_S
from tradewind.providers.base import LaunchMachines
from tradewind.store.memory import MemoryStore

USD = 10**6
NLP = replace(SPEC, project="nlp")
BUDGETS = Budgets(projects={"nlp": Budget(month=20 * USD), "x": Budget(month=USD, what="warn")})


def recorded(store: MemoryStore, run_id: str, *events: Event) -> None:
    store.create(places.live(run_id), b"{}")
    for event in events:
        number = len(journal.read(store, run_id)) + 1
        assert journal.append(store, run_id, number, writer="w1", at=AT, events=(event,))


def asked(run_id: str, hard_stop_s: int = 3600, leg: int = 1) -> LegRequested:
    request = a_request(leg, run_id=run_id, hard_stop_s=hard_stop_s, way=WAY)
    return LegRequested(request=request, reason="r")


def submitted(run_id: str, project: str = "nlp") -> Submitted:
    return Submitted(run_id=run_id, spec=replace(SPEC, project=project))


def machine(run_id: str, seconds: int) -> tuple[MachinesFound, MachineEnded]:
    now_s = int(clock.now().timestamp())
    one = replace(
        a_machine(f"m-{run_id}"), run_id=run_id, launch_id=f"{run_id}-1", launched_s=now_s - seconds
    )
    ended = MachineEnded(machine=replace(one, ended_s=now_s), reason="r")
    return MachinesFound(machines=(one,), reason="r"), ended


def purse(store: MemoryStore, budgets: Budgets = BUDGETS) -> Purse:
    made = Purse(store, lambda: budgets)
    assert made.open() == bool(budgets)
    return made


def cap(of: Purse, run_id: str = "me", *, buying: bool = True) -> int | None:
    month = of.month(AskMonth(run_id, NLP, buying))
    of.done()
    assert month is not None
    return month.cap


def test_without_budgets_nothing_is_asked() -> None:
    assert not purse(MemoryStore(), Budgets()).open()


def test_a_project_without_a_budget_is_not_limited() -> None:
    step = AskMonth("me", replace(SPEC, project="other"), True)
    assert purse(MemoryStore()).month(step) is None


def test_what_others_spent_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00:00Z")
    store = MemoryStore()
    found, ended = machine("other", 5000)
    recorded(store, "other", submitted("other"), asked("other"), found, ended)
    recorded(store, "apart", submitted("apart", "x"), asked("apart"))
    assert cap(purse(store)) == 15 * USD
    assert cap(purse(store), "other") == 20 * USD  # what it has spent is its own


def test_a_purchase_that_is_recorded_and_not_yet_made_counts_for_others() -> None:
    store = MemoryStore()
    recorded(store, "other", submitted("other"), asked("other", hard_stop_s=8000))
    assert cap(purse(store)) == 12 * USD
    assert cap(purse(store), "other") == 20 * USD


def test_a_budget_that_warns_limits_nothing_and_says_how_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00:00Z")
    store = MemoryStore()
    found, ended = machine("other", 5000)
    recorded(store, "other", submitted("other", "x"), asked("other"), found, ended)
    month = purse(store).month(AskMonth("me", replace(SPEC, project="x"), False))
    assert month is not None
    assert (month.number, month.share, month.cap) == (202611, 5.0, None)
    assert "runs continue" in month.words


def test_what_this_controller_bought_counts_at_once() -> None:
    """Though the rest is read only every few seconds."""
    store = MemoryStore()
    recorded(store, "other", submitted("other"))
    one = purse(store)
    assert cap(one, "other") == 20 * USD
    recorded(store, "other", asked("other", hard_stop_s=8000))
    assert cap(one) == 12 * USD


def test_runs_of_one_controller_buy_one_after_another() -> None:
    store = MemoryStore()
    for run_id in ("one", "two"):
        recorded(store, run_id, submitted(run_id))
    shared = purse(store)
    assert shared.month(AskMonth("one", NLP, True)) is not None
    found: list[int | None] = []
    other = threading.Thread(target=lambda: found.append(cap(shared, "two")))
    other.start()
    recorded(store, "one", asked("one", hard_stop_s=8000))
    assert found == []
    shared.done()
    other.join()
    assert eventually(lambda: found) == [12 * USD]


def test_who_makes_a_purchase_holds_up_nobody_else() -> None:
    """It is recorded by then, and a cloud may take minutes."""
    store = MemoryStore()
    for run_id in ("one", "two"):
        recorded(store, run_id, submitted(run_id))
    shared = purse(store)
    found: list[int | None] = []

    class Slow:
        def list_machines(self) -> Listing:
            return Listing(at_s=0, machines=())

        def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
            other = threading.Thread(target=lambda: found.append(cap(shared, "two")), daemon=True)
            other.start()
            other.join(30.0)
            return ()

        def terminate(self, machine_ids: Sequence[str]) -> None:
            pass

    perform = performer(store, {"cloud": Slow()}, shared)
    perform(AskMonth("one", NLP, True))
    bought = asked("one", hard_stop_s=8000)
    recorded(store, "one", bought)
    perform(LaunchMachines(bought.request, 2))
    assert found == [12 * USD]
    shared.done()


def test_a_purchase_where_shutting_down_does_not_end_the_bill() -> None:
    """Until a controller ends it: a quarter of an hour after its hard stop."""
    store = MemoryStore()
    way = replace(WAY, facts=replace(WAY.facts, ends="never"))
    request = a_request(1, run_id="one", hard_stop_s=8100, way=way)
    recorded(store, "one", submitted("one"), LegRequested(request=request, reason="r"))
    assert UNATTENDED_S == 900
    assert cap(purse(store)) == 11 * USD


def test_a_purchase_counts_though_somebody_else_has_asked_in_between() -> None:
    """Who does not buy reads a buyer's journal before that has recorded anything."""
    store = MemoryStore()
    for run_id in ("one", "two", "three"):
        recorded(store, run_id, submitted(run_id))
    shared = purse(store)
    assert cap(shared) == 20 * USD
    buyer = threading.Thread(target=lambda: shared.month(AskMonth("one", NLP, True)))
    buyer.start()
    buyer.join()
    assert cap(shared, "two", buying=False) == 20 * USD
    recorded(store, "one", asked("one", hard_stop_s=8000))
    shared._buying.release()  # as the buyer's `done` does, on its thread
    assert cap(shared, "three") == 12 * USD


def test_a_run_that_is_over_is_kept_by_what_it_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """And by that alone: a controller that watches for months has seen many."""
    monkeypatch.setenv("TRADEWIND_NOW", "2026-11-15T12:00:00Z")
    store = MemoryStore()
    found, ended = machine("other", 5000)
    done = (
        LegOver(leg=1, cause="cancelled", reason="r"),
        Ended(outcome="cancelled", reason="r"),
        Closed(reason="r"),
    )
    recorded(store, "other", submitted("other"), asked("other"), found, ended, *done)
    store.delete(places.live("other"))
    one = purse(store)
    assert cap(one) == 15 * USD
    assert one._runs["other"].commits == []
    # Resumed, it is read from the beginning again.
    store.create(places.live("other", 2), b"{}")
    recorded(store, "other", Resumed(reason="r"), asked("other", leg=2, hard_stop_s=8000))
    one._read_s = None
    assert cap(one) == 7 * USD


def test_a_file_that_cannot_be_read_allows_nothing_and_says_so() -> None:
    def broken() -> Budgets:
        raise NoAccess("budgets.yaml cannot be read: it is a folder")

    made = Purse(MemoryStore(), broken)
    assert made.open()
    month = made.month(AskMonth("me", SPEC, True))
    assert month is not None
    assert month.cap == 0
    assert "it is a folder" in month.words


def test_a_store_that_does_not_answer_allows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()

    def fails(*_: object) -> list[str]:
        raise SourceFailed("the store does not answer")

    monkeypatch.setattr(store, "folders", fails)
    assert cap(purse(store)) == 0


def test_a_damaged_journal_stops_nobody_else() -> None:
    store = MemoryStore()
    recorded(store, "other", asked("other"))  # of a run that was never submitted
    assert cap(purse(store)) == 20 * USD


@pytest.mark.parametrize("name", ["price", "start_cost"])
def test_numbers_that_cannot_be_trouble_no_other_run(name: str) -> None:
    """An overflow met in one journal ended the passes of all other runs of its project."""
    store = MemoryStore()
    recorded(store, "run-1", submitted("run-1"), asked("run-1"), *machine("run-1", 3600))
    recorded(store, "run-2", submitted("run-2"))
    key = f"runs/run-1/journal/{2:020d}.json"
    data = store.get(key)
    huge = re.sub(rf'"{name}":\d+'.encode(), f'"{name}":{10**400}'.encode(), data)
    assert huge != data
    store.replace(key, huge)
    with pytest.raises(BadFile):
        journal.read(store, "run-1")
    purse = Purse(store, lambda: BUDGETS)
    assert purse.open()
    assert purse.month(AskMonth("run-2", NLP, buying=False)) is not None
    assert purse.due() is not None or not BUDGETS.tell


def test_what_adds_up_to_nonsense_troubles_no_other_run(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    recorded(store, "run-1", submitted("run-1"), asked("run-1"), *machine("run-1", 3600))
    recorded(store, "run-2", submitted("run-2"))
    whole = cost_of

    def broken(run_id: str, *given: Any, **more: Any) -> Any:
        if run_id == "run-1":
            raise OverflowError("cannot convert float infinity to integer")
        return whole(run_id, *given, **more)

    monkeypatch.setattr("tradewind.controller.purse.cost_of", broken)
    purse = Purse(store, lambda: BUDGETS)
    assert purse.open()
    assert purse.month(AskMonth("run-2", NLP, buying=False)) is not None
