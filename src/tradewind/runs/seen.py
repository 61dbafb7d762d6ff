"""What one observer has seen of a run, besides its journal. Lengths of time are its own."""

from __future__ import annotations

from collections.abc import Callable

from tradewind.model.run import Heartbeat, Machine


class Seen:
    __slots__ = (
        "beats",
        "clocks",
        "known_s",
        "listed",
        "looked_s",
        "marked",
        "run_id",
        "unclaimed_s",
        "wrote",
    )

    def __init__(
        self,
        *,
        run_id: str,
        known_s: Callable[[int], float],
        listed: dict[str, tuple[str, Machine]] | None = None,
        clocks: dict[str, int] | None = None,
        beats: dict[str, tuple[Heartbeat, float]] | None = None,
        unclaimed_s: Callable[[str], float] = lambda machine_id: 0.0,
        wrote: frozenset[int] = frozenset(),
        marked: bool = True,
    ) -> None:
        self.run_id = run_id
        self.known_s = known_s
        """For how long we had known a commit when we looked; 0 is the run itself."""
        self.listed = listed or {}
        """This run's machines, each with its provider, listed before the journal was read: every
        purchase that a listing shows, the journal shows too."""
        self.clocks = clocks or {}
        """Each provider's own, when it was listed; not there if it could not be."""
        self.beats = beats or {}
        """Newest heartbeats, and for how long each has not changed; read after the listing."""
        self.unclaimed_s = unclaimed_s
        """For how long a machine has been listed that no journal knows."""
        self.wrote = wrote
        """The commits that we made ourselves just now."""
        self.marked = marked
        """Whether the run is among those that are looked at."""
