"""What one observer has seen of a service, besides its journal. Lengths of time are its own."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tradewind.model.serving import Serving


class Told(Struct, frozen=True, kw_only=True):
    """Of one replica's run."""

    phase: str = ""
    """"": it is not submitted yet; waiting, active, ended, closed"""
    outcome: str = ""
    reason: str = ""
    tail: str = ""
    """The last lines of its engine."""
    blame: bool = False
    """Its engine has failed by itself, and not its machine."""
    refused: str = ""
    """Why it has no machine, where one was refused."""
    lost: str = ""
    """Why its machine goes or is gone; empty while it stays."""
    serving: Serving | None = None
    """What it says; None: nothing that can be believed, or nothing lately."""


class FrontSeen(Struct, frozen=True, kw_only=True):
    """What the front says now."""

    current: int = 0
    """Requests in it, wherever they are."""
    queued: int = 0
    held: int = 0
    """Because there is no replica."""
    total: int = 0
    denied: int = 0
    busy: dict[str, int] = {}
    """Requests at each replica that it has, by its name."""
    pending: tuple[str, ...] = ()
    """Replicas to which a front may send something still, whatever the journal says by now: it has
    not said yet that it was told."""
    up: tuple[str, ...] = ()
    """Those that have passed its probe and get requests."""


class Seen(Struct, frozen=True, kw_only=True):
    service_id: str
    known_s: Callable[[int], float]
    """For how long we had known a commit when we looked; 0 is the service itself."""
    replicas: dict[str, Told] = {}
    """By run id."""
    fronts: dict[str, Told] = {}
    """Of rented fronts, by run id."""
    front: FrontSeen | None = None
    """None: there is none here, or it does not answer: that is not silence."""
    has_front: bool = False
    """Whether the front is ours to keep."""
    load: tuple[float, ...] = ()
    """In replicas, by period; the last one goes on."""
    requests: tuple[float, ...] = ()
