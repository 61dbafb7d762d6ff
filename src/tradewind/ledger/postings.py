"""What a run cost, from its events alone: the price that each machine was bought at, and from when
to when its provider says that it billed it.

`postings` are the machines: what providers charge for, to the micro-dollar. `stored` is what their
store costs, where it has a price: requests, traffic and what lies there, as the machines counted
it and at the prices of their ways. `transfers` are what moving data to a leg cost, as the plan
reckoned it: no provider tells that for a run. `cost_of` has all of it, and what else is worth
knowing when money is compared.

Moments are the provider's own. A machine that lives has no end yet; asked with its provider's
present moment, its cost so far is posted and marked as open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tradewind.base.errors import BadFile
from tradewind.model.bill import charged, paid_s
from tradewind.model.event import (
    Ended,
    Event,
    LegOver,
    LegRequested,
    LegUp,
    MachineBack,
    MachineEnded,
    MachinesFound,
    MachineUsed,
    Progress,
    Resumed,
    Stored,
    Submitted,
)
from tradewind.model.run import Machine, Request, Spec, Way
from tradewind.model.sensitive import redacted_tags
from tradewind.model.sustained import Steps
from tradewind.model.timing import GRACE_S, UNATTENDED_S
from tradewind.model.usage import MONTH_S, Line, Usage, kept, lines

MACHINE, TRANSFER, STORE, SUSTAINED = "machine", "transfer", "store", "sustained"
_LAST_S = 250_000_000_000
"""In the year 9892."""


class Posting(Struct, frozen=True, kw_only=True):
    machine_id: str
    """Empty for what belongs to a leg as a whole."""
    leg: int
    market: str
    price: int
    """Micro-dollars an hour for the machine."""
    seconds: int | None
    """None while it is not known: the machine lives, and nobody said what time it is there."""
    micros: int
    kind: str = MACHINE
    run_id: str = ""
    project: str = ""
    user: str = ""
    tags: dict[str, str] = {}
    provider: str = ""
    region: str = ""
    zone: str = ""
    instance_type: str = ""
    paid_s: int = 0
    """`seconds`, with the billing step that was begun."""
    from_s: int = 0
    to_s: int | None = None
    stop_s: int | None = None
    """By then an open machine costs nothing any more: it has shut itself down, if it can, or a
    controller has ended it, where shutting down does not end the bill."""
    estimated: bool = False
    """No provider has told it."""
    open: bool = False
    """The machine lives: this is its cost so far."""
    on_demand_price: int | None = None
    """The same machine on demand, an hour, as the run's ways had it; None where they did not."""
    on_demand: int | None = None
    """What the same time on demand would have cost."""
    line: Line | None = None
    """What it is for, where it is not for time."""


class Lasting(Struct, frozen=True, kw_only=True):
    """Time of a machine that is paid less the longer such machines are up in a month: it is taken
    off where all runs of a store are known (sustained.py)."""

    machine_id: str
    provider: str
    region: str
    instance_type: str
    price: int
    """Micro-dollars an hour for the machine alone: disks and addresses cost the same all month."""
    from_s: int
    to_s: int
    """With the billing step that was begun."""
    steps: Steps


class RunCost(Struct, frozen=True, kw_only=True):
    """One run's money."""

    run_id: str
    spec: Spec | None
    """None: it was abandoned before it was submitted."""
    outcome: str
    """Empty while it goes on."""
    postings: tuple[Posting, ...]
    kept: int = 0
    """Bytes that lay in the store when it was closed."""
    kept_month: int = 0
    """Micro-dollars a month for them, until they are removed."""
    lasting: tuple[Lasting, ...] = ()
    done: float = 0.0
    """Of its work, what is kept: saved, or finished."""

    @property
    def micros(self) -> int:
        return sum(posting.micros for posting in self.postings)

    @property
    def elapsed_s(self) -> int:
        """From the first launch to the last machine's end: each provider's clock by itself, and the
        longest of them where there are several."""
        spans: dict[str, tuple[int, int]] = {}
        for posting in self.postings:
            end = posting.from_s if posting.to_s is None else posting.to_s
            first, last = spans.get(posting.provider, (posting.from_s, end))
            spans[posting.provider] = (min(first, posting.from_s), max(last, end))
        return max((last - first for first, last in spans.values()), default=0)


class _Found:
    """What the events say of machines."""

    def __init__(self, events: Iterable[Event], run_id: str = "") -> None:
        self.run_id, self.outcome = run_id, ""
        self.spec: Spec | None = None
        self.requests: dict[int, Request] = {}
        self.machines: dict[str, Machine] = {}
        self.living: set[str] = set()
        self.forgotten: set[str] = set()
        self.used: dict[str, Usage] = {}
        self.stored: list[tuple[int, Stored]] = []  # with the leg that was the last then
        self.up: dict[int, int] = {}  # leg → when its last machine was launched
        self.done = 0.0
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, Submitted):
            self.run_id, self.spec = self.run_id or event.run_id, event.spec
        elif isinstance(event, LegRequested):
            self.requests[event.request.leg] = event.request
        elif isinstance(event, MachinesFound):
            for machine in event.machines:
                self.machines[machine.machine_id] = machine
                if machine.ended_s is None:
                    self.living.add(machine.machine_id)
        elif isinstance(event, LegUp):
            of_leg = [m.launched_s for m in self.machines.values() if m.leg == event.leg]
            self.up[event.leg] = max(of_leg, default=0)
        elif isinstance(event, MachineEnded):
            name = event.machine.machine_id
            self.machines[name] = event.machine
            self.living.discard(name)
            # A provider that remembers after all corrects what was only estimated.
            (self.forgotten.add if event.estimated else self.forgotten.discard)(name)
        elif isinstance(event, MachineBack):
            self.living.add(event.machine_id)
            self.forgotten.discard(event.machine_id)
        elif isinstance(event, MachineUsed):
            self.used[event.machine_id] = event.usage
        elif isinstance(event, Stored):
            self.stored.append((max(self.requests, default=0), event))
        elif isinstance(event, Progress):
            self.done = max(self.done, event.saved)
        elif isinstance(event, LegOver):
            finished = event.step if event.cause == "finished" else 0.0
            self.done = max(self.done, event.saved, finished)
        elif isinstance(event, Ended):
            self.outcome = event.outcome
            if self.outcome == "succeeded" and not self.done and self.spec:
                self.done = self.spec.work  # a job that counts nothing has done all of it
        elif isinstance(event, Resumed):
            self.outcome = ""

    def posting(self, machine: Machine, now: int | None) -> Posting:
        name, request = machine.machine_id, self.requests[machine.leg]
        way = request.way
        facts = way.facts
        living = name in self.living
        end = machine.ended_s
        if living or end is None:
            end = now
        if end is not None:
            end = max(end, machine.launched_s)  # clocks are set back, and providers err
        seconds = None if end is None else end - machine.launched_s

        def cost(price: int) -> int:
            usual = replace(way, price=price)
            return 0 if seconds is None else charged(usual, replace(machine, prices=()), seconds)

        usual = self._on_demand(way)
        return Posting(
            machine_id=name,
            seconds=seconds,
            micros=0 if seconds is None else charged(way, machine, seconds),
            paid_s=0 if seconds is None else paid_s(seconds, facts),
            from_s=machine.launched_s,
            to_s=end,
            stop_s=_stop_s(request, machine, end) if living else None,
            estimated=name in self.forgotten,
            open=living,
            on_demand_price=usual,
            on_demand=None if usual is None else cost(usual),
            **self._whose(machine.leg),
        )

    def lasting(self, machine: Machine, now: int | None) -> Lasting | None:
        way = self.requests[machine.leg].way
        end = now if machine.machine_id in self.living else machine.ended_s
        if not way.sustained or end is None:
            return None
        if machine.off_s is not None:
            end = min(machine.off_s, end)
        begin = machine.launched_s
        return Lasting(
            machine_id=machine.machine_id,
            provider=way.provider,
            region=way.region,
            instance_type=way.instance_type,
            price=way.price - way.disk_price - way.address_price,
            from_s=begin,
            to_s=begin + paid_s(max(end - begin, 0), way.facts),
            steps=way.sustained,
        )

    def transfer(self, leg: int, at_s: int) -> Posting:
        cost = self.requests[leg].way.start_cost
        return Posting(
            machine_id="",
            kind=TRANSFER,
            seconds=0,
            micros=cost,
            from_s=at_s,
            to_s=at_s,
            estimated=True,
            on_demand=self._besides(leg, cost),
            **self._whose(leg) | {"price": 0},
        )

    def uses(self, machine: Machine, now: int | None) -> list[Posting]:
        """Of the store, by one machine."""
        usage, rates = self.used.get(machine.machine_id), self.requests[machine.leg].way.rates
        if usage is None or rates is None:
            return []
        end = now if machine.machine_id in self.living else machine.ended_s
        span = (machine.launched_s, max(end or 0, machine.launched_s))
        made = lines(usage, rates)
        return [self._line(line, machine.machine_id, machine.leg, span) for line in made]

    def lies(self) -> list[Posting]:
        """What lay in the store. A run that went on has been weighed before: the last time counts
        for all of it."""
        for leg, event in self.stored[-1:]:
            rates = self.requests[leg].way.rates if leg in self.requests else None
            begun = [machine.launched_s for machine in self.machines.values()]
            ended = [machine.ended_s or 0 for machine in self.machines.values()]
            if rates is not None and begun and kept(event.byte_s, rates).micros:
                span = (min(begun), max(*begun, *ended))
                return [self._line(kept(event.byte_s, rates), "", leg, span, estimated=True)]
        return []

    def left(self) -> tuple[int, int]:
        """Bytes that the run has left in the store, and what they cost a month."""
        for leg, event in self.stored[-1:]:
            rates = self.requests[leg].way.rates if leg in self.requests else None
            if rates is not None:
                return event.bytes, kept(event.bytes * MONTH_S, rates).micros
        return 0, 0

    def _line(
        self, line: Line, name: str, leg: int, span: tuple[int, int], *, estimated: bool = False
    ) -> Posting:
        return Posting(
            machine_id=name,
            kind=STORE,
            seconds=0,
            micros=line.micros,
            from_s=span[0],
            to_s=span[1],
            estimated=estimated,
            on_demand=self._besides(leg, line.micros),
            line=line,
            **self._whose(leg) | {"price": 0},
        )

    def _whose(self, leg: int) -> dict[str, Any]:
        way = self.requests[leg].way
        spec = self.spec
        return {
            "leg": leg,
            "run_id": self.run_id,
            "project": spec.project if spec else "",
            "user": spec.user if spec else "",
            "tags": redacted_tags(spec.tags) if spec else {},
            "provider": way.provider,
            "region": way.region,
            "zone": way.zone,
            "instance_type": way.instance_type,
            "market": way.market,
            "price": way.price,
        }

    def _besides(self, leg: int, cost: int) -> int | None:
        """What costs the same on demand: what is saved is saved on machines. Where those cannot be
        compared, it would be all that their run seems to cost on demand."""
        return None if self._on_demand(self.requests[leg].way) is None else cost

    def _on_demand(self, way: Way) -> int | None:
        """In the same zone if the run's ways have it there, else in the region, else the cheapest
        of that provider."""
        if way.market == "on_demand":
            return way.price
        same = [
            (other.zone != way.zone, other.region != way.region, other.price)
            for other in (self.spec.ways if self.spec else ())
            if other.market == "on_demand"
            and (other.provider, other.instance_type) == (way.provider, way.instance_type)
        ]
        return min(same)[2] if same else None


def postings(
    events: Iterable[Event], now: int | None = None, clocks: Mapping[str, int] | None = None
) -> list[Posting]:
    """Its machines, in the order in which they were found. `clocks` is each provider's present
    moment, `now` that of all others; without either, an open machine has no cost yet."""
    return _machines(_Found(events), now, clocks or {})


def transfers(events: Iterable[Event]) -> list[Posting]:
    """One for each leg that came up, where it cost anything to bring data and checkpoint there."""
    return _transfers(_Found(events))


def stored(
    events: Iterable[Event], now: int | None = None, clocks: Mapping[str, int] | None = None
) -> list[Posting]:
    """What its machines asked of the store, a line for each price, and what it kept there."""
    return _stored(_Found(events), now, clocks or {})


def cost_of(
    run_id: str,
    events: Iterable[Event],
    now: int | None = None,
    clocks: Mapping[str, int] | None = None,
) -> RunCost:
    """Everything that a run has cost until now. `run_id` is where its journal lies, which is what
    a user can name, whatever the journal says. BadFile where it has moments that no calendar has:
    they could not be told by day or month."""
    found = _Found(events, run_id)
    known = clocks or {}
    posted = tuple(_machines(found, now, known) + _stored(found, now, known) + _transfers(found))
    for posting in posted:
        if not 0 <= posting.from_s <= max(posting.from_s, posting.to_s or 0) <= _LAST_S:
            raise BadFile(
                f"the journal says that {posting.machine_id or 'data'} of leg {posting.leg} was"
                f" billed from second {posting.from_s} to {posting.to_s} since 1970: that cannot be"
            )
    left, month = found.left()
    return RunCost(
        run_id=run_id, spec=found.spec, outcome=found.outcome, postings=posted, kept=left,
        kept_month=month, lasting=_lasting(found, now, known), done=found.done,
    )  # fmt: skip


def _stop_s(request: Request, machine: Machine, now: int | None) -> int:
    """As lifecycle/money.py keeps it back from a run's budget: a machine that is off and paid for
    nevertheless costs until a controller ends it, however long its hard stop is past."""
    facts = request.way.facts
    stop_s = machine.launched_s + longest_s(request) + 2 * facts.billing_lead_s
    if facts.ends != "never":
        return stop_s
    return max(stop_s, (now or 0) + UNATTENDED_S + GRACE_S)


def longest_s(request: Request) -> int:
    """For so long a machine of it may be up, or off and paid for nevertheless."""
    endless = request.way.facts.ends == "never"
    return request.hard_stop_s + (UNATTENDED_S if endless else 0)


def _machines(found: _Found, now: int | None, clocks: Mapping[str, int]) -> list[Posting]:
    return [
        found.posting(machine, clocks.get(found.requests[machine.leg].way.provider, now))
        for machine in found.machines.values()
    ]


def _lasting(found: _Found, now: int | None, clocks: Mapping[str, int]) -> tuple[Lasting, ...]:
    uses = (
        found.lasting(machine, clocks.get(found.requests[machine.leg].way.provider, now))
        for machine in found.machines.values()
    )
    return tuple(use for use in uses if use is not None)


def _stored(found: _Found, now: int | None, clocks: Mapping[str, int]) -> list[Posting]:
    of_machines = [
        posting
        for machine in found.machines.values()
        for posting in found.uses(
            machine, clocks.get(found.requests[machine.leg].way.provider, now)
        )
    ]
    return of_machines + found.lies()


def _transfers(found: _Found) -> list[Posting]:
    return [
        found.transfer(leg, at_s)
        for leg, at_s in found.up.items()
        if found.requests[leg].way.start_cost
    ]
