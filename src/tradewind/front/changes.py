"""What HAProxy has, what is wanted → what to tell it. Pure, and one step at a time.

A replica that is no longer wanted drains first, and is removed when its last answer is over: so
telling takes several passes, each of which looks anew. Told twice, a command changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tradewind.front.config import REPLICAS
from tradewind.front.routes import Backend, Front, State
from tradewind.front.stats import Health, Replica

ERRORS_IN_A_ROW = 5  # answers of a replica that failed, after which its probe must pass again


@dataclass(frozen=True, slots=True)
class Change:
    """Commands in this order; `why` is for people."""

    commands: tuple[str, ...]
    why: str


def changes(front: Front, seen: Iterable[Replica], wanted: Iterable[Backend]) -> list[Change]:
    there = {replica.id: replica for replica in seen}
    listed = {backend.id: backend for backend in wanted}
    found = []
    for backend in listed.values():
        replica = there.get(backend.id)
        if replica is None:
            if backend.state is State.READY:
                found.append(_add(front, backend))
        elif replica.place != backend.place:
            found.append(_remove(replica, "its address has changed"))
        else:
            found += _adjust(replica, backend)
    found += [_remove(each, "not wanted") for each in there.values() if each.id not in listed]
    return [change for change in found if change.commands]


def _add(front: Front, backend: Backend) -> Change:
    every = round(1000 * front.health_every_s)
    name = f"{REPLICAS}/{backend.id}"
    limit = f" maxconn {backend.at_once}" if backend.at_once else ""
    return Change(
        (
            f"add server {name} {backend.place} weight {backend.weight}{limit} check "
            f"inter {every}ms fastinter {max(every // 4, 50)}ms downinter {max(every // 2, 50)}ms "
            f"fall 2 rise 1 observe layer7 error-limit {ERRORS_IN_A_ROW} on-error mark-down",
            *_open(name),
        ),
        f"{backend.id}: added, waits for its probe",
    )


def _open(name: str) -> tuple[str, ...]:
    """A server that leaves maintenance would be up until a probe fails. It is declared down while
    it drains, where it gets nothing, so that only a passed probe opens it."""
    return (
        f"set server {name} state drain",
        f"set server {name} health down",
        f"enable health {name}",
        f"set server {name} state ready",
    )


def _adjust(replica: Replica, backend: Backend) -> list[Change]:
    name = f"{REPLICAS}/{replica.id}"
    found = []
    if replica.weight != backend.weight:
        found.append(
            Change(
                (f"set server {name} weight {backend.weight}",),
                f"{replica.id}: weight {backend.weight}",
            )
        )
    if replica.at_once != backend.at_once:
        found.append(
            Change(
                (f"set maxconn server {name} {backend.at_once}",),
                f"{replica.id}: {backend.at_once or 'any number'} at once",
            )
        )
    drain = backend.state is State.DRAINING
    if replica.health is Health.CLOSED and not drain:
        found.append(Change(_open(name), f"{replica.id}: opened, waits for its probe"))
    elif replica.draining != drain:
        state = "drain" if drain else "ready"
        found.append(Change((f"set server {name} state {state}",), f"{replica.id}: {state}"))
    return found


def _remove(replica: Replica, why: str) -> Change:
    """Nothing where it drains and still answers."""
    name = f"{REPLICAS}/{replica.id}"
    if replica.current or replica.queued:
        if replica.draining or replica.health is Health.CLOSED:
            return Change((), "")
        return Change((f"set server {name} state drain",), f"{replica.id}: drains, {why}")
    if not replica.draining and replica.health is Health.UP:
        # A request may be on its way to it: it is removed when nothing new can come any more.
        return Change((f"set server {name} state drain",), f"{replica.id}: drains, {why}")
    return Change(
        (f"set server {name} state maint", f"del server {name}"), f"{replica.id}: removed, {why}"
    )
