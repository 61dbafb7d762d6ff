"""Setting up an AWS account for a store, and undoing that: the store's side of it.

What is set up is written into the store last, when all of it is there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradewind import runs_store
from tradewind import store as stores
from tradewind.errors import InvalidValue
from tradewind.providers.aws import footprint
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint
from tradewind.providers.aws.setup import bucket, teardown
from tradewind.providers.aws.setup import make as setup
from tradewind.providers.aws.setup.calls import Calls
from tradewind.units import format_names

if TYPE_CHECKING:
    from tradewind.providers.aws.setup.changes import Line
    from tradewind.providers.aws.setup.make import Prepared, Wish
    from tradewind.store.base import Store


@dataclass(slots=True)
class Plan:
    """Of a setup: what would be made, and whether it must be written down."""

    store_url: str
    prepared: Prepared
    known: Footprint | None

    @property
    def recorded(self) -> bool:
        """Whether the record in the store says already what it would say then."""
        return not self.prepared.changes and self.prepared.record() == self.known

    def carry_out(self, told: Callable[[Line], None] = lambda line: None) -> Footprint:
        made = self.prepared.carry_out(told)
        if made != self.known:
            _opened(self.store_url, made.bucket_region).replace(footprint.KEY, made.encoded())
        return made


@dataclass(slots=True)
class Removal:
    store_url: str
    lines: list[Line]
    bucket_region: str
    """ "" if there is no bucket."""
    known: Footprint | None

    @property
    def changes(self) -> int:
        return sum(len(line.changes) for line in self.lines) + bool(self.known)

    def carry_out(self, told: Callable[[Line], None] = lambda line: None) -> None:
        """The record goes when all that it tells of is gone, and a bucket after that."""
        for line in self.lines:
            if line.what != "bucket":
                told(line)
                for change in line.changes:
                    change.act()
        if self.known is not None:
            _opened(self.store_url, self.bucket_region).delete(footprint.KEY)
        for line in self.lines:
            if line.what == "bucket":
                told(line)
                for change in line.changes:
                    change.act()


def plan_setup(wish: Wish, account: Account | None = None) -> Plan:
    calls = Calls(account or Account())
    name, _ = footprint.bucket_of(wish.store_url)
    first = setup.asking(calls.account, wish.regions)
    region = bucket.region_of(calls, name, first)
    known = written(wish.store_url, region) if region else None
    return Plan(wish.store_url, setup.prepared(calls, wish, region, known), known)


def plan_teardown(
    store_url: str,
    regions: Sequence[str] = (),
    *,
    delete_bucket: bool = False,
    account: Account | None = None,
) -> Removal:
    calls = Calls(account or Account())
    name, _ = footprint.bucket_of(store_url)
    first = setup.asking(calls.account, regions)
    region = bucket.region_of(calls, name, first)
    known = written(store_url, region) if region else None
    setup.check_account(calls, store_url, known)
    if region:
        _refuse_while_going_on(_opened(store_url, region))
    asked = [*(known.regions if known else ()), *regions, calls.account.region, region]
    everywhere = [each for each in dict.fromkeys(asked) if each] or [first]
    setup.check_regions(calls, everywhere, first)
    lines = teardown.look(calls, store_url, everywhere, region or first)
    if delete_bucket and region:
        lines.append(teardown.look_at_bucket(calls, store_url, region))
    return Removal(store_url, lines, region, known)


def _refuse_while_going_on(store: Store) -> None:
    """One that waits for a machine has none up, and could never have one again."""
    loaded, _ = runs_store.load_all(store, runs_store.live_ids(store))
    names = [
        each.run_id
        for each in loaded
        if each.state.spec
        and not each.state.outcome
        and any(way.provider == "aws" for way in each.state.spec.ways)
    ]
    if names:
        raise InvalidValue(
            f"runs of {store.url} go on: {format_names(names, 10)}",
            hint=f"tradewind stop {names[0]} --store {store.url} ends one",
        )


def written(store_url: str, bucket_region: str) -> Footprint | None:
    """What is set up for a store; None: nothing was written down."""
    return footprint.read(_opened(store_url, bucket_region).get)


def _opened(store_url: str, bucket_region: str) -> Store:
    """A bucket answers in its own region, whichever is the user's."""
    return stores.open(store_url, env=os.environ | {"AWS_REGION": bucket_region})
