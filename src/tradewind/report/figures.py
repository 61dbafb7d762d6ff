"""A run in figures. Times are moments in UTC, by the clock of whoever wrote the journal, which is
good enough to look at; money is micro-dollars."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Stay(Struct, frozen=True, kw_only=True):
    """A leg."""

    leg: int
    place: str
    instance_type: str
    market: str
    nodes: int
    price: int
    """An hour, all machines together."""
    since: datetime
    """When it was asked for."""
    why: str
    up: datetime | None = None
    """When its job could begin."""
    noticed: datetime | None = None
    """When it was known that its machines would be taken."""
    until: datetime | None = None
    """When it was over; None: it goes on."""
    cause: str = ""
    """What ended it."""
    reason: str = ""
    began: float = 0.0
    """The step that it went on from."""
    step: float = 0.0
    """How far it came, as far as is known."""
    lost: float = 0.0
    """Of that, steps that were not saved when it ended: made again elsewhere."""
    again: float = 0.0
    """Steps that it made again itself, where its job was restarted on the same machines."""
    micros: int = 0
    on_demand: int | None = None
    """What the same machines cost on demand for as long."""

    @property
    def taken(self) -> bool:
        return self.cause in TAKEN

    @property
    def what(self) -> str:
        many = f"{self.nodes} × " if self.nodes > 1 else ""
        return f"{many}{self.instance_type}"


TAKEN = ("interrupted", "ended_early", "lost")
"""Causes of a leg's end by which its machines went away from it."""


class Refusal(Struct, frozen=True, kw_only=True):
    """A launch that came to nothing."""

    leg: int
    at: datetime
    place: str
    instance_type: str
    market: str
    kind: str
    reason: str


class Point(Struct, frozen=True, array_like=True):
    at: datetime
    step: float


class Course(Struct, frozen=True, kw_only=True):
    """How far it was when."""

    points: tuple[Point, ...] = ()
    saved: tuple[Point, ...] = ()
    """What was in a complete checkpoint."""


class Projection(Struct, frozen=True, kw_only=True):
    """Of a run that goes on, by its present speed."""

    finish: datetime
    cost: int
    rate: float
    """Units of work a second."""
    measured: bool
    """By the job itself; else as the plan had estimated."""


class Sum(Struct, frozen=True, kw_only=True):
    what: str
    legs: int
    seconds: int
    """Of machines, as billed."""
    micros: int
    on_demand: int | None


class Money(Struct, frozen=True, kw_only=True):
    micros: int
    estimated: int = 0
    """So much of it no provider has told."""
    open: int = 0
    """Machines that still live."""
    budget: int | None = None
    predicted: int | None = None
    """By the plan, for everything."""
    same_on_demand: int | None = None
    """The same machines for the same time, where that is known of all."""
    alone: int | None = None
    """The same work on demand alone, in one stay that nothing interrupts."""
    alone_what: str = ""
    foresight: int | None = None
    """What perfect foresight would have paid, where all that could be had is known."""
    foresight_words: str = ""
    """How that was reckoned, or why it was not."""
    by_market: tuple[Sum, ...] = ()
    by_place: tuple[Sum, ...] = ()


class Bucket(Struct, frozen=True, array_like=True):
    """Some steps in a row: the last of them, and what was measured."""

    step: float
    low: float
    mean: float
    high: float


class Curve(Struct, frozen=True, kw_only=True):
    name: str
    rows: int
    """Steps that were measured, each once; some fewer where buckets are wide and legs many."""
    width: int
    """Steps in a bucket."""
    buckets: tuple[Bucket, ...]
    last: float
    best: float
    """The lowest."""


class Kept(Struct, frozen=True, kw_only=True):
    """A checkpoint."""

    step: float
    leg: int
    at: datetime | None = None
    bytes: int | None = None
    took_s: float | None = None
    there: bool = False
    """It still is."""


class Span(Struct, frozen=True, array_like=True):
    since: datetime
    until: datetime


class Zone(Struct, frozen=True, kw_only=True):
    """Machines of one type, market and place."""

    place: str
    instance_type: str
    market: str
    legs: int = 0
    taken: int = 0
    refused: int = 0
    held_s: float = 0.0
    micros: int = 0
    there: tuple[Span, ...] | None = None
    """When such machines could be had; None where only a provider would know."""
    share: float | None = None
    """Of the run's time."""


class Seconds(Struct, frozen=True, kw_only=True):
    """Where the run's time went."""

    all: float = 0.0
    working: float = 0.0
    """A leg was up."""
    starting: float = 0.0
    """A leg was asked for and not up yet."""
    waiting: float = 0.0
    """There was none."""


class Rehearsal(Struct, frozen=True, kw_only=True):
    """The machines were processes of one computer."""

    kind: str
    """trace, chaos, or "" where nothing was set to interrupt them"""
    words: str
    speed: float = 1.0


class Line(Struct, frozen=True, kw_only=True):
    at: datetime
    words: str
    tail: str = ""
    """The last lines of the job's own output."""


class Report(Struct, frozen=True, kw_only=True):
    run_id: str
    made: datetime
    name: str = ""
    state: str = ""
    """waiting, active or ended while it goes on; then the outcome."""
    words: str = ""
    """The same, and why."""
    over: bool = False
    command: str = ""
    project: str = ""
    user: str = ""
    tags: dict[str, str] = {}
    submitted: datetime | None = None
    ended: datetime | None = None
    deadline: datetime | None = None
    late_s: float | None = None
    """How much later than the deadline it was, or will be; less than 0: earlier."""
    work: float = 0.0
    steps: bool = True
    """Whether the work is counted in steps; else it is hours of machines."""
    step: float = 0.0
    saved: float = 0.0
    predicted_hours: float | None = None
    rehearsal: Rehearsal | None = None
    seconds: Seconds = Seconds()
    legs: tuple[Stay, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    zones: tuple[Zone, ...] = ()
    course: Course = Course()
    projection: Projection | None = None
    money: Money = Money(micros=0)
    curves: tuple[Curve, ...] = ()
    checkpoints: tuple[Kept, ...] = ()
    events: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def taken(self) -> int:
        return sum(leg.taken for leg in self.legs)

    @property
    def lost(self) -> float:
        return sum(leg.lost + leg.again for leg in self.legs)
