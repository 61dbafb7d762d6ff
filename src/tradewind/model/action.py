"""What `decide` wants done, each with its reason in words."""

from __future__ import annotations

from msgspec import Struct

from tradewind.model.event import Event
from tradewind.model.run import Request


class Record(Struct, frozen=True):
    """Into the journal, before anything is done about it. The event has the reason."""

    event: Event


class Launch(Struct, frozen=True):
    request: Request
    reason: str


class Terminate(Struct, frozen=True):
    provider: str
    machine_ids: tuple[str, ...]
    reason: str


class Withdraw(Struct, frozen=True):
    """Purchases that wait in a queue, and that no live leg claims."""

    provider: str
    launch_ids: tuple[str, ...]
    reason: str


class Lend(Struct, frozen=True):
    """Another pass to the store for a machine whose own ends, or for those that a launch in a queue
    will have. It is never recorded: a journal has no secrets."""

    machine_id: str
    """Empty: there are no machines yet."""
    launch_id: str
    rank: int | None
    """None: what they begin with, whichever they are."""
    for_s: int
    reason: str


class Forget(Struct, frozen=True):
    """Nothing is left to do for this run: it is no longer looked at."""

    reason: str


Action = Record | Launch | Terminate | Withdraw | Lend | Forget
