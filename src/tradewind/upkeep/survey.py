"""Who claims what: the machines that providers list, beside the journals of their runs.

Providers are listed first and journals read after that: every purchase that a listing shows was
recorded before it was made, so the journal shows it too. What it does not show, nobody asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.journal import runs_store
from tradewind.lifecycle.state import RunState
from tradewind.model.run import Listing, Machine
from tradewind.model.timing import GRACE_S
from tradewind.providers.base import Provider
from tradewind.store.base import Store

_STAMP = re.compile(r"-([0-9a-f]{12})-[0-9a-f]{6}$")


class Stray(Struct, frozen=True, kw_only=True):
    """A machine that costs money and does no run any good."""

    provider: str
    machine: Machine
    why: str
    age_s: int
    """Since its launch, by its provider's clock."""
    known: bool
    """Its run has a journal that will account for it."""

    @property
    def due(self) -> bool:
        """Known ones go at once. Of the others no journal has asked for one in all that time."""
        return self.known or self.age_s >= GRACE_S


class Survey(Struct, kw_only=True):
    listings: dict[str, Listing] = {}
    strays: list[Stray] = []
    live: list[str] = []
    """Runs that are looked at."""
    states: dict[str, RunState] = {}
    """Of these, and of all whose machines are listed."""
    troubles: list[tuple[str, TradewindError]] = []
    """What could not be listed or read."""


def survey(store: Store, providers: Mapping[str, Provider]) -> Survey:
    found = Survey(listings={}, strays=[], live=[], states={}, troubles=[])
    for name, provider in providers.items():
        try:
            found.listings[name] = provider.list_machines()
        except TradewindError as error:
            found.troubles.append((name, error))
    found.live = runs_store.live_ids(store)
    there = set(runs_store.run_ids(store))
    ids = dict.fromkeys(found.live)
    for listing in found.listings.values():
        ids |= dict.fromkeys(m.run_id for m in listing.machines if m.run_id in there)
    loaded, troubles = runs_store.load_all(store, list(ids))
    found.troubles += troubles
    found.states = {each.run_id: each.state for each in loaded}
    unread = {name for name, _ in troubles}
    for name, listing in found.listings.items():
        found.strays += [
            stray
            for machine in listing.machines
            if machine.ended_s is None and machine.run_id not in unread
            for stray in _stray(name, machine, listing.at_s, found.states.get(machine.run_id))
        ]
    return found


def _stray(provider: str, machine: Machine, at_s: int, state: RunState | None) -> Sequence[Stray]:
    if state is None or not state.phase:
        why, known = f"there is no run {machine.run_id}", False
    elif not any(r.launch_id == machine.launch_id for r in state.requests.values()):
        why, known = f"{machine.run_id} has never asked for it", False
    elif state.phase == "closed":
        why, known = f"{machine.run_id} is over", True
    else:
        return ()
    age_s = max(at_s - machine.launched_s, 0)
    return (Stray(provider=provider, machine=machine, why=why, age_s=age_s, known=known),)


def age_s(name: str) -> float | None:
    """How long ago an id was made, by the clock of whoever made it; None: it does not tell."""
    stamp = _STAMP.search(name)
    return clock.epoch() - int(stamp[1], 16) / 1000 if stamp else None
