"""What happens to a run: one class for each type of event, as written into journals.

A type or field that is not here stops the reader. To change an event, give new fields a default and
keep the old ones; to change what a field means, add another type of event and keep the old one.
Every event that was decided, and not only seen, says its reason in words.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from tradewind.model.run import Machine, Request, Spec
from tradewind.model.usage import Usage


class _Event(
    Struct, frozen=True, kw_only=True, tag_field="type", forbid_unknown_fields=True, gc=False
):
    # Nothing in here ever points back: the garbage collector need not look at a long journal.
    pass


class Submitted(_Event, frozen=True, kw_only=True, tag="submitted"):
    run_id: str
    spec: Spec


class Abandoned(_Event, frozen=True, kw_only=True, tag="abandoned"):
    """In place of the first commit: whoever began to submit the run was cut off before it."""

    run_id: str
    reason: str


class LegRequested(_Event, frozen=True, kw_only=True, tag="leg_requested"):
    """Machines will be bought, or have been, if whoever wrote this was cut off."""

    request: Request
    reason: str


class MachinesFound(_Event, frozen=True, kw_only=True, tag="machines_found"):
    """The provider's answer to a launch, or what it lists under our tag."""

    machines: tuple[Machine, ...]
    reason: str


class LaunchRefused(_Event, frozen=True, kw_only=True, tag="launch_refused"):
    """Nothing was bought, and the provider says why: the leg is over before it began."""

    leg: int
    kind: str
    """no_capacity, no_quota, not_allowed, not_found, throttled"""
    reason: str


class LaunchUnknown(_Event, frozen=True, kw_only=True, tag="launch_unknown"):
    leg: int
    reason: str


class LegQueued(_Event, frozen=True, kw_only=True, tag="leg_queued"):
    """The provider has taken the purchase and has no machines for it yet. Again when it says
    another time."""

    leg: int
    reason: str
    starts_s: int | None = None
    """When it will likely have some, by the provider's clock."""


class LegUp(_Event, frozen=True, kw_only=True, tag="leg_up"):
    """Every machine's supervisor has reported."""

    leg: int
    reason: str


class Progress(_Event, frozen=True, kw_only=True, tag="progress"):
    leg: int
    step: float
    saved: float
    rate: float | None = None


class LegDraining(_Event, frozen=True, kw_only=True, tag="leg_draining"):
    """Its supervisors are to save and to stop the job."""

    leg: int
    cause: str
    reason: str
    stalled_s: float = 0.0
    """For how long the job had made no step."""


class LegLimited(_Event, frozen=True, kw_only=True, tag="leg_limited"):
    """Its machines may be up for so long in all, and never for longer than they were told at their
    launch: what they cost has changed, or others are asked for beside them."""

    leg: int
    hard_stop_s: int
    reason: str


class LegOver(_Event, frozen=True, kw_only=True, tag="leg_over"):
    """No machine of this leg is ours to use any more: it is fenced, and to be terminated."""

    leg: int
    cause: str
    reason: str
    step: float = 0.0
    saved: float = 0.0
    failures: int = 0
    exit_code: int | None = None
    tail: str = ""
    stalled_s: float = 0.0
    """For how long the job had made no step, where it was not drained."""


class MachineEnded(_Event, frozen=True, kw_only=True, tag="machine_ended"):
    """The provider says that it no longer bills it, and from when to when it did."""

    machine: Machine
    reason: str
    estimated: bool = False
    """The provider has forgotten it; the end is the latest that it can have been."""


class MachineBack(_Event, frozen=True, kw_only=True, tag="machine_back"):
    """Reported as ended, it is listed as alive again."""

    machine_id: str
    reason: str


class MachineUsed(_Event, frozen=True, kw_only=True, tag="machine_used"):
    """What a machine has asked of the store in all its life, by the last that it said. Another one
    takes the place of the one before."""

    machine_id: str
    leg: int
    usage: Usage


class Stored(_Event, frozen=True, kw_only=True, tag="stored"):
    """What lies in the run's folder of the store when it is closed."""

    bytes: int
    byte_s: int
    """Times the seconds for which each of its objects has lain there."""


class Forecast(_Event, frozen=True, kw_only=True, tag="forecast"):
    """What is to be expected has changed for better or worse."""

    late: bool
    over_budget: bool
    finish_s: float
    cost: int
    reason: str


class Warned(_Event, frozen=True, kw_only=True, tag="warned"):
    """Something that its user should know, said once for each level."""

    about: str
    """budget, month (of the project's), waiting, idle, stalled, policy, pass (to the store)"""
    level: int
    reason: str


class CancelAsked(_Event, frozen=True, kw_only=True, tag="cancel_asked"):
    reason: str


class Ended(_Event, frozen=True, kw_only=True, tag="ended"):
    outcome: str
    """succeeded, failed, cancelled, out_of_budget, too_late, too_long, idle"""
    reason: str


class Closed(_Event, frozen=True, kw_only=True, tag="closed"):
    """Every machine has ended and is accounted for."""

    reason: str


class Resumed(_Event, frozen=True, kw_only=True, tag="resumed"):
    """The user wants a run that has ended without success to go on from its last checkpoint."""

    reason: str
    budget: int | None = None
    """A new one, for everything since the run began; None: as it was."""
    deadline_s: float | None = None
    """A new one; None: as it was."""


Event = (
    Submitted | Abandoned | LegRequested | MachinesFound | LaunchRefused | LaunchUnknown | LegQueued
    | LegUp | Progress | LegLimited | LegDraining | LegOver | MachineEnded | MachineBack
    | MachineUsed | Stored | Forecast | Warned | CancelAsked | Ended | Closed | Resumed
)  # fmt: skip


FORMAT = 2
"""Of commits. A reader stops at a newer one, and reads all older ones."""


class Commit(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What came N-th: events that were recorded together, by one writer."""

    format: int
    number: int
    writer: str
    at: datetime
    """By the writer's clock: for people to read, never to reckon with."""
    events: tuple[Event, ...]
