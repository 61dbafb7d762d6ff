"""What is known of a run from its journal alone. Commits are named by number: how long ago one was
is for each observer to say."""

from __future__ import annotations

from copy import copy

from msgspec import Struct

from tradewind.model.run import Machine, Request, Spec, Way
from tradewind.model.usage import Usage


class Leg(Struct, frozen=True):
    """The stay that is under way."""

    request: Request
    requested_at: int
    at: int
    """The commit that brought it into its state."""
    state: str = "requested"
    unknown: bool = False
    """Nobody learned what became of the purchase."""
    machines: tuple[str, ...] = ()
    """By rank."""
    cause: str = ""
    """Why it is to end, once it is."""
    began_at: float = 0.0
    """What was saved when it was asked for."""
    starts_s: int | None = None
    """While it waits in a queue: when it will likely have machines, by its provider's clock."""
    waits_for: str = ""
    """And why, as its provider tells; empty: it has not told yet."""
    told_at: int = 0
    """The commit that told so."""
    given_s: int = 0
    """How long its machines might be up when they were bought, where they were told less since."""

    @property
    def number(self) -> int:
        return self.request.leg


class Rented(Struct, frozen=True):
    """A machine, for as long as it may cost something and after."""

    machine: Machine
    ended: bool
    at: int
    """The commit that last said something of it."""
    at_s: float = 0.0
    """When that was, by its writer's clock: for beliefs only."""


class Refusal(Struct, frozen=True):
    """Of machines that could not be had, or were taken away."""

    what: str
    """Market, type of machine and place."""
    kind: str
    at: int
    reason: str = ""
    """As it was told."""


class Sight(Struct, frozen=True, gc=False):
    """Of what can be had, at one moment."""

    up: bool | None
    """True: it was launched; False: refused, or taken; None: given back, and nobody looks."""
    at_s: float


class RunState(Struct):
    number: int = 0
    """Of the last commit."""
    run_id: str = ""
    spec: Spec | None = None
    phase: str = ""
    leg: Leg | None = None
    relief: Leg | None = None
    """The next one, whose machines come up while `leg` is drained."""
    queued: Leg | None = None
    """One that waits in a queue, unpaid; or whose machines have just come while another works."""
    requests: dict[int, Request] = {}
    """By leg."""
    last: int = 0
    """The greatest number that a leg, or its turn, was given."""
    machines: dict[str, Rented] = {}
    used: dict[str, Usage] = {}
    """What machines have asked of the store, as far as it is recorded."""
    doubts: dict[int, int] = {}
    """Legs that are over though nobody knows what became of their purchase, and since when."""
    refusals: dict[str, Refusal] = {}
    """The last of each kind, by kind and what was refused."""
    step: float = 0.0
    saved: float = 0.0
    """The newest checkpoint that was reported."""
    ratio: float = 1.0
    """Measured speed over estimated, where it was measured last."""
    ratios: dict[str, float] = {}
    """The same by number, type and place of machines, wherever it was measured."""
    moved_cost: int = 0
    """Micro-dollars for bringing data and checkpoints to the legs that came up."""
    failures: int = 0
    """Of the job by itself, since it last got further."""
    barren: int = 0
    """Legs in a row that brought nothing."""
    troubles: int = 0
    """Those among them that were bought and came to nothing."""
    fruitless: int = 0
    """Legs in a row that were interrupted before they had saved anything."""
    stalled_s: float = 0.0
    """For how long machines were up without a step of the job, in all legs that are over, since it
    saved last."""
    hard_stops: int = 0
    """Legs in a row that were up for as long as they might be, and have saved nothing."""
    over_at: int = 0
    """The commit that ended the last leg."""
    over_cause: str = ""
    tail: str = ""
    at_s: float = 0.0
    """When the last commit was written, by its writer's clock: good enough for beliefs about
    capacity, and used for nothing else."""
    submitted_s: float = 0.0
    sights: dict[str, tuple[Sight, ...]] = {}
    """What was seen of capacity lately, by market, type and place: the oldest first."""
    announced_late: bool = False
    announced_over: bool = False
    warned: dict[str, int] = {}
    """The last level that was said, by what it is about."""
    cancelled: str = ""
    outcome: str = ""
    life: int = 1
    """One more each time that it was resumed."""
    first_leg: int = 1
    """Of this life."""

    def copy(self) -> RunState:
        """To be folded further; `self` stays as it is."""
        new = copy(self)
        new.requests = self.requests.copy()
        new.machines = self.machines.copy()
        new.used = self.used.copy()
        new.doubts = self.doubts.copy()
        new.refusals = self.refusals.copy()
        new.ratios = self.ratios.copy()
        new.warned = self.warned.copy()
        new.sights = self.sights.copy()
        return new

    def ratio_of(self, way: Way) -> float:
        """By what was measured there; else by what was measured last, wherever that was: an
        estimate that is wrong on one machine is likely wrong on others."""
        return self.ratios.get(way.kind, 1.0 if way.guessed else self.ratio)

    @property
    def claimed(self) -> tuple[str, ...]:
        """The machines that the present leg uses, and the next one's where there is one already."""
        return tuple(name for leg in self.legs for name in leg.machines)

    @property
    def legs(self) -> tuple[Leg, ...]:
        """What is under way: at most one works, one is to relieve it, and one waits in a queue."""
        return tuple(leg for leg in (self.leg, self.relief, self.queued) if leg)

    @property
    def buys(self) -> bool:
        """Whether the next purchase may be decided on."""
        if self.phase == "active":
            return bool(self.leg and self.leg.state == "draining" and self.relief is None)
        return self.phase == "waiting"
