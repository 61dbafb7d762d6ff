"""What one observer has seen of a run, besides its journal. Lengths of time are its own."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from msgspec import Struct

from tradewind.model.run import Heartbeat, Machine, Queued


class Month(Struct, frozen=True, kw_only=True):
    """How the budget of the run's project stands, in the calendar month that it is."""

    number: int
    """2026-11 is 202611."""
    share: float
    """Of it is spent."""
    words: str
    cap: int | None
    """The most that this run may come to in all its months; None where the budget only warns."""


class Seen(Struct, frozen=True, kw_only=True):
    run_id: str
    known_s: Callable[[int], float]
    """For how long we had known a commit when we looked; 0 is the run itself."""
    listed: dict[str, tuple[str, Machine]] = {}
    """This run's machines, each with its provider, listed before the journal was read: every
    purchase that a listing shows, the journal shows too."""
    clocks: dict[str, int] = {}
    """Each provider's own, when it was listed; not there if it could not be."""
    beats: dict[str, tuple[Heartbeat, float]] = {}
    """Newest heartbeats, and for how long each has not changed; read after the listing."""
    disbelieved: frozenset[str] = frozenset()
    """Machines under whose name lies what cannot be believed."""
    signs: bool = False
    """Whether machines that are bought now are to sign what they say."""
    queued: dict[str, tuple[str, Queued]] = {}
    """By launch id, what of this run waits in a queue, and at which provider."""
    unqueued_s: Callable[[str], float] = lambda launch_id: 0.0
    """For how long a launch has not been listed as queued, as often as we looked."""
    unclaimed_s: Callable[[str], float] = lambda machine_id: 0.0
    """For how long a machine, or a launch in a queue, has been listed that no journal knows."""
    unlisted_s: Callable[[str], float] = lambda machine_id: 0.0
    """For how long a machine of the journal's has not been listed, as often as we looked."""
    lent_s: Callable[[str], float] = lambda machine_id: inf
    """How long ago we have lent a machine a pass to the store."""
    wrote: frozenset[int] = frozenset()
    """The commits that we made ourselves just now."""
    marked: bool = True
    """Whether the run is among those that are looked at."""
    month: Month | None = None
    """None where its project has no budget, or where none was asked for."""
