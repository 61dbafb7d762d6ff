"""Setting up a cloud for a store, and undoing that: the store's side of it.

What is set up is written into the store last, when all of it is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tradewind import store as stores
from tradewind.api import clouds
from tradewind.base.errors import BadFile, InvalidValue
from tradewind.base.units import format_names
from tradewind.journal import runs_store
from tradewind.model import places

if TYPE_CHECKING:
    from tradewind.providers.changes import Line, Prepared
    from tradewind.providers.cloud import Look, Rentable
    from tradewind.store.base import Store


@dataclass(slots=True)
class Plan:
    """Of a setup: what would be made, and whether it must be written down."""

    cloud: Rentable
    store_url: str
    look: Look
    prepared: Prepared[Any]
    known: Any

    @property
    def recorded(self) -> bool:
        """Whether the record in the store says already what it would say then."""
        return not self.prepared.changes and self.prepared.record() == self.known

    def carry_out(self, told: Callable[[Line], None] = lambda line: None) -> Any:
        made = self.prepared.carry_out(told)
        if made != self.known:
            # A bucket that was just made is looked for again, to be opened.
            store = opened(self.cloud, self.store_url, self.look, made)
            store.replace(places.footprint(self.cloud.name), made.encoded())
        return made


@dataclass(slots=True)
class Removal:
    cloud: Rentable
    store: Store | None
    """None: there is none."""
    lines: list[Line]
    known: Any

    @property
    def changes(self) -> int:
        return sum(len(line.changes) for line in self.lines) + bool(self.known)

    def carry_out(self, told: Callable[[Line], None] = lambda line: None) -> None:
        """The record goes when all that it tells of is gone, and a bucket after that."""
        for last in (False, True):
            if last and self.known is not None and self.store is not None:
                self.store.delete(places.footprint(self.cloud.name))
            for line in self.lines:
                if line.last == last:
                    told(line)
                    line.carry_out()


def plan_setup(cloud: Rentable, store_url: str, look: Look) -> Plan:
    env = look.store_env
    known = None
    if env is not None:
        with suppress(BadFile):  # it is written again, as if it had not been there
            known = clouds.footprint(_opened(store_url, env), cloud)
    return Plan(cloud, store_url, look, look.prepared(known), known)


def plan_teardown(
    cloud: Rentable, store_url: str, look: Look, *, delete_store: bool = False
) -> Removal:
    env = look.store_env
    store = _opened(store_url, env) if env is not None else None
    known = clouds.footprint(store, cloud) if store is not None else None
    if store is not None:
        _refuse_while_going_on(store, cloud)
    return Removal(cloud, store, look.removed(known, delete_store=delete_store), known)


def _refuse_while_going_on(store: Store, cloud: Rentable) -> None:
    """One that waits for a machine has none up, and could never have one again."""
    loaded, _ = runs_store.load_all(store, runs_store.live_ids(store))
    names = [
        each.run_id
        for each in loaded
        if each.state.spec
        and not each.state.outcome
        and any(way.provider == cloud.name for way in each.state.spec.ways)
    ]
    if names:
        raise InvalidValue(
            f"runs of {store.url} go on: {format_names(names, 10)}",
            hint=f"tradewind stop {names[0]} --store {store.url} ends one",
        )


def opened(cloud: Rentable, store_url: str, look: Look, made: Any) -> Store:
    return _opened(store_url, look.store_env or cloud.environment(made, os.environ))


def _opened(store_url: str, env: Mapping[str, str]) -> Store:
    return stores.open(store_url, env={**os.environ, **env})
