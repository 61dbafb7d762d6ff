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


class Forget(Struct, frozen=True):
    """Nothing is left to do for this run: it is no longer looked at."""

    reason: str


Action = Record | Launch | Terminate | Forget
