"""Whose a machine is, and which are nobody's."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from tests.lifecycle.builders import AT, SPEC, a_machine, requested, submitted
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.run import Listing, Machine
from tradewind.model.timing import GRACE_S
from tradewind.providers.base import Provider
from tradewind.store.memory import MemoryStore
from tradewind.upkeep.survey import Survey, survey

RUN = a_machine().run_id
MOMENT_S = 1_000_000


class Lists:
    """A provider, as far as a survey asks it."""

    def __init__(self, *machines: Machine) -> None:
        self._machines = machines

    def list_machines(self) -> Listing:
        return Listing(machines=self._machines, at_s=MOMENT_S)


def looked(store: MemoryStore, *machines: Machine) -> Survey:
    return survey(store, {"cloud": cast("Provider", Lists(*machines))})


def a_run(*events: Any) -> MemoryStore:
    store = MemoryStore()
    store.create(places.live(RUN), b"{}")
    made = (submitted(SPEC), *events)
    assert journal.append(store, RUN, 1, writer="w", at=AT, events=made)
    return store


def test_machines_of_a_run_that_cannot_be_read_are_not_strays() -> None:
    """Else the journal's trouble would end machines that work."""
    store = a_run(requested())
    [key] = store.list_after(f"{places.run(RUN)}journal/")
    store.replace(key, b"{ no journal")
    old = a_machine(launched_s=MOMENT_S - 10 * GRACE_S)
    found = looked(store, old)
    assert (found.strays, [name for name, _ in found.troubles]) == ([], [RUN])
    assert looked(MemoryStore(), old).strays[0].due


def test_a_machine_that_no_purchase_shows_has_its_time_to_be_recorded() -> None:
    store = a_run(requested())
    young = a_machine(launch_id=f"{RUN}-2", launched_s=MOMENT_S - 60)
    [stray] = looked(store, young).strays
    assert (stray.known, stray.due) == (False, False)
    [stray] = looked(store, replace(young, launched_s=MOMENT_S - GRACE_S)).strays
    assert stray.due
    assert looked(store, a_machine()).strays == []
