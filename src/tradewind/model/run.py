"""What a run is asked to do, on what it may be done, and what its machines report.

Frozen values that go into the store as JSON: msgspec checks every field's type when they are read.
Times ending in `_s` are seconds: lengths of time, or, where they are moments, of the clock that the
text names. Moments of two clocks are never compared.
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from tradewind.base.errors import InvalidValue
from tradewind.model.circle import Circle
from tradewind.model.figures import Figures
from tradewind.model.plausible import (
    Amount,
    Code,
    Count,
    Few,
    Label,
    Moment,
    Money,
    Rate,
    Span,
    Words,
)
from tradewind.model.sensitive import redacted
from tradewind.model.serving import Serving
from tradewind.model.sustained import Steps
from tradewind.model.usage import Rates, Usage
from tradewind.model.windows import Schedule

LABELS = ("tags", "names")
ENDS = ("itself", "limit", "key", "never")
JOB, TAKEN = "job", "taken"
"""Whom a machine's end is owed to, where its provider tells: the job that ran there, or whoever
took the machine away. Else it is not known."""


class Facts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider behaves: data, so that no code asks for its name."""

    boot_timeout_s: Moment = 600
    """A machine whose supervisor has not reported after this long never will."""
    notice_s: Moment = 0
    """How long before taking a spot machine it tells so; 0: it does not."""
    billing_step_s: Moment = 1
    """Every step that was begun is paid whole."""
    billing_least_s: Moment = 0
    """However short a machine's life is, so much is paid."""
    billing_lead_s: Moment = 60
    """Billing begins at most this long before a machine's own clock does, and ends at most this
    long after it shut itself down."""
    tokens: bool = False
    """A launch repeated with the same id buys nothing again."""
    listing_lag_s: Moment = 120
    """What was launched is listed after this long at the latest."""
    labels: str = "tags"
    """What run, leg and rank of a machine are read from again: `tags`, or `names` where it has no
    tags. A cloud with neither is not rented from: a machine that was lost sight of would be paid
    for ever."""
    gang: bool = True
    """It sells all machines of a request or none; else they are bought one by one, and given back
    when one of them cannot be had."""
    queues: bool = False
    """A launch may wait for hours before it has machines; until then nothing is paid, and it is
    listed and can be withdrawn."""
    ends: str = "itself"
    """What ends a machine's bill when no controller looks: `itself`, by shutting down; `limit`, a
    timer of the provider's; `key`, the machine's own call, with a key for nothing else; `never`."""

    def __post_init__(self) -> None:
        if self.billing_step_s < 1:
            raise InvalidValue(f"a billing step of {self.billing_step_s} s is none")
        if self.labels not in LABELS:
            raise InvalidValue(f"machines are found again by {self.labels!r}, not one of {LABELS}")
        if self.ends not in ENDS:
            raise InvalidValue(f"a bill ends by {self.ends!r}, not one of {ENDS}")

    @property
    def safety(self) -> str:
        """What keeps a launch whose answer was lost from being made twice: `token`, the provider's
        own; `name`, a machine's name that it gives to one machine only; else `recorder`, only who
        recorded the purchase makes it, and once."""
        if not self.tokens:
            return "recorder"
        return "token" if self.labels == "tags" else "name"


class Way(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set of machines on which the work could be done: one way to hold."""

    provider: str
    region: str
    zone: str
    instance_type: str
    market: str
    nodes: Few
    """Machines: ranks of a leg."""
    price: Money
    """Micro-dollars an hour for one machine, its disk and its address among them."""
    rate: Amount
    """Units of work a second, all machines together, as estimated."""
    start_s: Span
    """From the launch to the first new step: boot, setup, fetching data and checkpoint to there."""
    guessed: bool = False
    """Its rate is no estimate: what is measured there says nothing of other machines."""
    start_cost: Money = 0
    """Micro-dollars for moving data and checkpoint there, booked when a leg has come up: where
    nobody measures what is moved."""
    bring: Money = 0
    """Micro-dollars that each leg will likely pay for reading its checkpoint out of the store. As
    all that is measured, it is booked by the bytes and not by this: it is for choosing, for the
    reserve and for the hard stop."""
    bring_once: Money = 0
    """The same for the job's data, which each leg reads too."""
    save: Money = 0
    """Micro-dollars an hour that a leg will likely pay for what it writes into the store."""
    pass_s: Moment = 0
    """Its machines are nobody to the store: for so long one of the passes lasts that they are lent.
    0: they have an identity of their own."""
    disk_gb: Count = 0
    """What the job needs of each machine's disk, where that is bought with the machine."""
    disk_price: Money = 0
    """Of the price, what is for the disk."""
    address_price: Money = 0
    """Of the price, what is for an address of the machine's own in the world."""
    sustained: Steps = ()
    """Of the bare machine: what is paid the longer such machines are up in a month (sustained.py).
    `price` is what an hour costs at first, by which it is chosen; the ledger has the discount."""
    workers: Few = 1
    """So many machines are one of the type: a slice of accelerators is sold with all its hosts."""
    rates: Rates | None = None
    """What the store costs a machine there; None where nobody charges for it, or not by that."""
    facts: Facts = Facts()
    layout: dict[str, Any] = {}

    def __post_init__(self) -> None:
        # Whoever divides by these has no better moment to complain: it would stop all runs.
        if not self.rate > 0:
            raise InvalidValue(f"{self.words} does {self.rate} units of work a second")
        if self.nodes < 1 or self.workers < 1:
            raise InvalidValue(f"{self.nodes} machines cannot do any work")

    @property
    def place(self) -> str:
        return f"{self.provider}/{self.zone or self.region}"

    @property
    def what(self) -> str:
        """What of, where and how: that by which it is refused or taken."""
        return f"{self.market} {self.instance_type} in {self.place}"

    @property
    def kind(self) -> str:
        """What decides how fast it is; the market does not."""
        return f"{self.nodes} {self.instance_type} in {self.place}"

    @property
    def words(self) -> str:
        many = f"{self.units} × " if self.units > 1 else ""
        return f"{many}{self.instance_type} {self.market.replace('_', '-')} in {self.place}"

    @property
    def units(self) -> int:
        """How many of the type are bought."""
        return max(self.nodes // self.workers, 1)

    @property
    def price_all(self) -> int:
        return self.price * self.nodes

    def costing(self, bare: int) -> Way:
        """At another price of the bare machine: its disk and its address cost as before."""
        return replace(self, price=bare + self.disk_price + self.address_price)


class Spec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was asked for, as it was when the run was submitted."""

    name: str
    work: Amount
    """In steps of the job's own, or else in seconds of the plan's machines."""
    ways: tuple[Way, ...]
    """Where it may be done, from the plan; the first is the plan's own."""
    steps: bool = True
    """Whether it is counted in steps: where it is not, the job's own count says nothing of it."""
    deadline_s: Span | None = None
    """By the world's clock, since 1970."""
    hard: bool = False
    """Past the deadline the work is worth nothing: stop."""
    late: Money | None = None
    """Micro-dollars that an hour past the deadline costs its user; None: nothing."""
    budget: Money | None = None
    """Micro-dollars, for everything."""
    untold: bool = False
    """How long it takes nobody has said: `work` stands for it where a figure is needed, and nothing
    is foretold by it."""
    tries: Few = 3
    """How often the job may fail by itself without getting further."""
    retry_on: tuple[str, ...] | None = None
    """Only after these exit codes and signals is it tried again; None: whenever it may help."""
    max_duration_s: Moment | None = None
    """How long its machines may be up, one leg after another; waiting for some does not count. From
    the beginning again when the run is resumed."""
    idle_s: Moment | None = None
    """A job that does nothing for so long is reported."""
    idle_stop: bool = False
    """And stopped."""
    checkpoint_every_s: Moment = 600
    checkpoint_bytes: Count = 0
    checkpoint_keep: int = 3
    """How many are kept."""
    disk_bytes: Count = 0
    """What the job needs of each machine's disk beside the image and checkpoints."""
    checkpoint_stall_s: float | None = None
    """How long the job stands still for one, where it is to save as often as its machines make
    worth while; None: every `checkpoint_every_s`."""
    data: str = ""
    """Where what the job reads lies; checkpoints are in the run's own folder of the store."""
    data_bytes: Count = 0
    """How much that is, where it was told."""
    job: dict[str, Any] = {}
    project: str = ""
    user: str = ""
    tags: dict[str, str] = {}
    schedule: Schedule = Schedule()
    """When its machines may be up."""
    amounts: dict[str, float] = {}
    """What all of `work` comes to, where it was told: tokens, samples, epochs."""
    predicted_cost: Money | None = None
    """Micro-dollars for everything, as the plan had it; None where there was no plan."""
    predicted_hours: Amount | None = None
    """From the first launch to the last machine's end."""
    speed: float = 1.0
    """In a rehearsal, so many seconds of its world go by in one of ours. Prices are for an hour of
    ours, so that they are paid as in its world; policies, whose beliefs are of hours, are asked in
    its time."""
    circle: Circle | None = None
    """Of machines that others reach; None: nobody reaches them but those of their own leg."""

    @property
    def shown_command(self) -> str:
        """For people: a journal of an older Tradewind may have a token in it."""
        return redacted(str(self.job.get("command") or ""))

    def __post_init__(self) -> None:
        if not self.ways:
            raise InvalidValue(f"there is no way in which {self.name} could be done")
        if not 0 < self.speed < inf:
            raise InvalidValue(f"{self.name} cannot go at {self.speed} times its speed")


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A purchase, resolved to the last detail before it is made."""

    launch_id: str
    """The provider's idempotency token where it has one, and a tag of every machine always."""
    run_id: str
    leg: Count
    way: Way
    hard_stop_s: Moment
    """A machine shuts itself down when it has been up this long, whatever happens."""
    relieves: int = 0
    """The leg that saves and stops while these machines come up: not before it is over does their
    job begin. 0: there is none."""
    beside: int = 0
    """The leg that waits in a queue meanwhile, and takes over when its machines are there. 0: there
    is none."""
    waits: bool = False
    """Its machines may have to queue for long, and others may work meanwhile: their job begins when
    the journal has them all, and not before."""
    until_s: Span | None = None
    """When the window closes in which it was asked for, by the world's clock since 1970: whoever
    looks ends it then, and not because its own clock has another window. None: there is none."""
    signed: bool = False
    """Its machines sign what they say (tradewind/base/signing.py), and nothing else is believed."""
    circle: Circle | None = None


class Machine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A machine as its provider tells of it. Moments are the provider's."""

    machine_id: str
    launch_id: str
    run_id: str
    leg: Count
    rank: Count
    launched_s: Moment
    """When billing began."""
    ended_s: Moment | None = None
    """When billing ended; None while it goes on."""
    off_s: Moment | None = None
    """Since when nothing of it was paid but its disk, which was there until it ended: it had shut
    down, and was not removed yet. None: all of it was paid to its end."""
    prices: tuple[tuple[Moment, Money], ...] = ()
    """What it cost, where its provider tells: from when on, how many micro-dollars an hour. Empty:
    what it was bought at."""
    ended_by: str = ""
    """`JOB` or `TAKEN`; empty: its provider does not tell."""
    ended_why: str = ""
    """Of one that has ended: why, in its provider's words."""


class Queued(Struct, frozen=True, kw_only=True):
    """A purchase that a scheduler has taken: it has no machine yet, and nothing is paid for it."""

    launch_id: str
    run_id: str
    leg: int
    reason: str = ""
    """Why it waits, in the provider's own words."""
    starts_s: int | None = None
    """When it will likely begin, by the provider's clock; None: it does not say."""
    refused: str = ""
    """It will never begin, `reason` says why: a refusal of this kind that came late. Empty: it
    may."""


class Listing(Struct, frozen=True, kw_only=True):
    """Every machine that carries our owner's tag, those that ended lately among them."""

    at_s: int
    """The provider's clock."""
    machines: tuple[Machine, ...]
    queued: tuple[Queued, ...] = ()


class Heartbeat(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One object for each machine, replaced again and again: what the machine does now. It is a
    claim: what is believed of it is in lifecycle/beats.py."""

    machine_id: Label
    leg: Count
    beat: Count
    """Goes up by one each time: a change of it is the sign of life."""
    uptime_s: Amount
    doing: Annotated[str, Meta(pattern="^(setup|working|saving|stopped|failed|finished)$")]
    """setup, working, saving, stopped (by order), failed (for good), finished"""
    step: Amount = 0.0
    rate: Rate | None = None
    """Units of work a second by the machine's own clock; None until it is known."""
    saved: Amount = 0.0
    """The newest complete checkpoint of this leg's line."""
    failures: Count = 0
    """How often the job has failed by itself since it last got further."""
    exit_code: Code | None = None
    trouble: Label = ""
    """What the job died of: user, infrastructure."""
    tail: Words = ""
    """The last lines of the job's log."""
    notice: bool = False
    at_risk: bool = False
    """Its provider thinks that it may have to take the machine soon."""
    reason: Words = ""
    stalled_s: Amount = 0.0
    """For how long a job that counts its steps has made none."""
    idle_s: Amount = 0.0
    """For how long it has made none, and no use of its machine either."""
    figures: tuple[Figures, ...] = ()
    """What the job's processes on this machine measure of themselves."""
    pass_left_s: Amount | None = None
    """For how long its pass to the store still lasts; None: it needs none."""
    usage: Usage | None = None
    """What the machine has asked of the store since it came up, this report among it."""
    serving: Serving | None = None
    """Where its job is the engine of a service's replica."""
