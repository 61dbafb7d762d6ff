"""What a service has cost: the ledgers of its runs (of replicas and rented fronts), added up. No
account of its own.

What a key or a token costs is a share of that: keys by how long their requests were at work, as the
front's log has it, in whole micro-dollars that add up to all of it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tradewind.base import clock
from tradewind.base.errors import NotFound, TooLarge
from tradewind.controller import seed
from tradewind.journal import journal
from tradewind.ledger.postings import MACHINE, cost_of
from tradewind.ledger.shares import shares
from tradewind.lifecycle import beats, fold
from tradewind.lifecycle.state import RunState
from tradewind.model import bounds, places
from tradewind.store.base import Store

if TYPE_CHECKING:
    from tradewind.services.state import ServiceState


@dataclass(frozen=True, slots=True)
class OfReplica:
    run_id: str
    number: int
    market: str
    micros: int
    seconds: int
    """Of its machines, as they are paid."""
    tokens_in: int
    tokens_out: int
    front: bool = False
    """A rented front, and no replica."""

    @property
    def name(self) -> str:
        return f"{'f' if self.front else 'r'}{self.number}"


@dataclass(frozen=True, slots=True)
class OfKey:
    requests: int
    failed: int
    seconds: float
    micros: int


@dataclass(frozen=True, slots=True)
class Bill:
    """Micro-dollars."""

    micros: int
    replicas: tuple[OfReplica, ...]
    """Those that are gone among them, and rented fronts."""
    requests: int
    failed: int | None
    """Not answered with 2xx to the last byte; None: the log that says so is on a rented front."""
    keys: dict[str, OfKey] = field(default_factory=dict)
    """By name; "" is for requests without one."""

    @property
    def tokens_in(self) -> int:
        return sum(each.tokens_in for each in self.replicas)

    @property
    def tokens_out(self) -> int:
        return sum(each.tokens_out for each in self.replicas)

    @property
    def usd_per_million(self) -> float | None:
        """Tokens in and out; None where no engine counts them."""
        tokens = self.tokens_in + self.tokens_out
        return self.micros / tokens if tokens else None

    @property
    def usd_per_thousand(self) -> float | None:
        """Requests; None where none were counted."""
        return self.micros / 1000 / self.requests if self.requests else None


def asked_of(store: Store, service_id: str) -> float:
    """Requests that its front has counted, in all hours that the store has."""
    from tradewind.controller import loads

    total = 0.0
    for key in store.list_after(places.loads(service_id)):
        with suppress(NotFound, TooLarge):
            kept = loads.decode(store.get(key, most=bounds.RECORD))
            total += sum(kept.requests) if kept is not None else 0.0
    return total


def bill_of(store: Store, service_id: str, state: ServiceState) -> Bill:
    from tradewind.api import fronts
    from tradewind.front import requests
    from tradewind.front.runner import Runner

    key = seed.find(store)
    every = state.every.items()
    replicas = (
        *(_replica(store, run_id, number, key) for run_id, number in every),
        *(_replica(store, *each, key, front=True) for each in state.every_front.items()),
    )
    micros = sum(each.micros for each in replicas)
    accounts: dict[str, requests.Account] = {}
    place = fronts.folder(service_id)
    if place.is_dir():
        accounts = requests.by_key(Runner(place).requests())
    parts = shares(micros, {name: each.seconds for name, each in accounts.items()})
    far = state.spec is not None and state.spec.rented
    counted = sum(each.requests for each in accounts.values())
    return Bill(
        micros=micros,
        replicas=replicas,
        requests=round(asked_of(store, service_id)) if far else counted,
        failed=None if far else sum(each.failed for each in accounts.values()),
        keys={
            name: OfKey(each.requests, each.failed, each.seconds, parts.get(name, 0))
            for name, each in accounts.items()
        },
    )


def _replica(
    store: Store, run_id: str, number: int, key: bytes, *, front: bool = False
) -> OfReplica:
    commits = journal.read(store, run_id)
    state = fold(commits)
    events = (event for commit in commits for event in commit.events)
    cost = cost_of(run_id, events, now=int(clock.now().timestamp()))
    market = next(iter(state.requests.values())).way.market if state.requests else ""
    tokens_in, tokens_out = _tokens(store, state, key)
    return OfReplica(
        run_id=run_id,
        number=number,
        market=market,
        micros=cost.micros,
        seconds=sum(each.seconds or 0 for each in cost.postings if each.kind == MACHINE),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        front=front,
    )


def _tokens(store: Store, state: RunState, key: bytes) -> tuple[int, int]:
    """As the engines counted them, in what their machines said last."""
    tokens_in = tokens_out = 0
    for name in state.machines:
        with suppress(NotFound, TooLarge):
            data = store.get(places.heartbeat(state.run_id, name), most=bounds.HEARTBEAT)
            beat = beats.read(state, name, data, key)
            if beat is not None and beat.serving is not None:
                tokens_in += beat.serving.tokens_in
                tokens_out += beat.serving.tokens_out
    return tokens_in, tokens_out
