"""Knows what really happened, and stops the simulation when something never may.

1. No machine is paid for by no run for longer than finding and ending it takes.
2. No leg has two machines of one rank at work, and none works on past fencing.
3. Every run ends, in the state that what happened to it calls for.
4. A leg starts from the newest complete checkpoint of its line, all its machines from the same.
5. The ledger equals what the cloud charged, to the micro-dollar.
6. No budget, the run's or its project's month, is exceeded by more than one billing step, and
   nothing is bought once its machines were up for as long as they may be.
7. What machines last said of their use of the store is recorded when the run is closed.
8. A run that is late was announced as late; one that will be is, as soon as its speed is known.
9. Whatever machines say, a run pays for no more than MOST_SETS sets of machines at once, and its
   journal does not grow faster than MOST_COMMITS an hour.

A machine that lies of itself (liar.py) may bring its own run to any end, and hides how far it is:
of 3, 7 and 8 nothing is asked then, and all else holds. One of another run may change nothing: all
of it holds, but that a report which was overwritten counts as silence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import json
from msgspec.structs import replace

from tradewind.base.signing import RESUME, key_of, opened
from tradewind.ledger.postings import postings
from tradewind.lifecycle.fold import LASTING, TROUBLES
from tradewind.lifecycle.next import MOST_TROUBLES
from tradewind.model.event import (
    Abandoned,
    CancelAsked,
    Closed,
    Commit,
    Ended,
    Event,
    Forecast,
    LaunchRefused,
    LegOver,
    LegRequested,
    MachineBack,
    MachineEnded,
    MachinesFound,
    Resumed,
)
from tradewind.model.run import Machine, Request
from tradewind.model.timing import BEAT_S, DRAIN_S, FENCE_S, GRACE_S, LOST_S, UNATTENDED_S
from tradewind.sim.liar import OWN
from tradewind.sim.said import Said
from tradewind.sim.scenario import SEED, Scenario
from tradewind.sim.world import START_S, Violation, World
from tradewind.supervisor.decide import Me

if TYPE_CHECKING:
    from tradewind.sim.cloud import SimCloud
    from tradewind.sim.job import SimJob

_decode = json.Decoder(Commit).decode
SKEW_S = 240
STALL_S = 300
FENCED_S = int((FENCE_S + 2 * BEAT_S) / 0.99) + 10
"""A replaced machine has stopped by then: it reads its orders every beat, or fences itself."""


RESERVED_S = 1500 + 3600
"""The most seconds of a set of machines that may be left of a budget, a begun hour included."""
MOST_SETS = 6
"""One that is being drained, its relief, two that are over within the time that is paid at least,
and two whose purchase nobody knows of yet."""
MOST_COMMITS = 2000
ORPHAN_S = GRACE_S + UNATTENDED_S + 300
UNSEEN_S = 150
_NEARLY_S = 60 + 5


class Referee:
    def __init__(self, world: World, scenario: Scenario) -> None:
        self._world, self._scenario = world, scenario
        self.cloud: SimCloud
        self._since = 0  # the first event of the run's present life
        self._first_leg = 1  # and its first leg
        self.events: dict[str, list[Event]] = {}
        self.jobs: dict[tuple[str, int], SimJob] = {}
        self._requests: dict[tuple[str, int], Request] = {}
        self._sold: set[tuple[str, int]] = set()
        self._found: dict[str, tuple[str, int]] = {}
        self._beaten: dict[
            str, tuple[int, int]
        ] = {}  # when last, and how long after the one before
        self._said = Said(world)
        self._over: dict[tuple[str, int], int] = {}  # leg → when that was recorded
        self._working: dict[str, tuple[str, int, int]] = {}
        self._checkpoints: dict[str, dict[tuple[int, int], int]] = {}  # (leg, step) → since when
        self._resumed: dict[tuple[str, int], str] = {}
        self.ended: dict[str, str] = {}
        self.closed: set[str] = set()
        self.open: set[str] = set()
        """Machines that the journal believes alive."""
        self.cancelled = False
        self._cancelled_at: int | None = None
        self.resumed = False
        self.just_closed = False
        self._lied = scenario.liar == OWN
        self.attacked: dict[str, int] = {}
        """Machines whose reports were overwritten by others, and when last."""
        self.spec = scenario.spec  # as it is now, for this run

    # -- what happens ----------------------------------------------------------------------------

    def created(self, key: str, data: bytes) -> None:
        _, run_id, kind, *rest = key.split("/") if key[:5] == "runs/" else ("", "", "")
        if kind == "journal":
            self._committed(run_id, _decode(data))
        elif kind == "checkpoints":
            step = int(rest[1].removesuffix(".json"))
            done = self._checkpoints.setdefault(run_id, {})
            done[int(rest[0]), step] = self._world.now
        elif kind == "legs":
            self._chooses(run_id, int(rest[0]), data)

    def _committed(self, run_id: str, commit: Commit) -> None:
        world = self._world
        events = self.events.setdefault(run_id, [])
        for event in commit.events:
            events.append(event)
            if world.telling:
                world.tell(commit.writer, f"{run_id} {commit.number}: {_told(event)}")
            if isinstance(event, LegRequested):
                self._asks(run_id, event.request)
            elif isinstance(event, CancelAsked):
                self._cancelled_at = world.now
            elif isinstance(event, LegOver | LaunchRefused):
                self._over[run_id, event.leg] = world.now
                if isinstance(event, LegOver):
                    self._gives_up(run_id, event)
            elif isinstance(event, MachinesFound):
                for machine in event.machines:
                    self._finds(run_id, machine)
                    if machine.ended_s is None:
                        self.open.add(machine.machine_id)
            elif isinstance(event, MachineEnded):
                self.open.discard(event.machine.machine_id)
            elif isinstance(event, MachineBack):
                self.open.add(event.machine_id)
            elif isinstance(event, Ended):
                self._ends(run_id, event)
            elif isinstance(event, Abandoned):
                self.ended[run_id] = "abandoned"
            elif isinstance(event, Resumed):
                self._resumes(run_id, event)
        self.orphans(ORPHAN_S)
        self._budget(run_id, self.charged(run_id))
        if commit.number > 100 + MOST_COMMITS * (world.now - START_S) / 3600:
            raise Violation(f"{run_id} has {commit.number} commits")
        if isinstance(events[-1], Closed) and not self._lied and not self.attacked:
            now = (run_id, self._first_leg)
            self._said.check(events, [m for m, of in self._found.items() if now <= of])
        if isinstance(events[-1], Closed | Abandoned):
            self.closed.add(run_id)
            self.just_closed = True

    def _resumes(self, run_id: str, event: Resumed) -> None:
        self.resumed = True
        self.cancelled, self._cancelled_at = False, None
        self.ended.pop(run_id)
        self.closed.discard(run_id)
        for job in self.jobs.values():
            job.failures = 0
        spec = self.spec
        self.spec = replace(
            spec,
            budget=spec.budget if event.budget is None else event.budget,
            deadline_s=spec.deadline_s if event.deadline_s is None else event.deadline_s,
        )
        self._since = len(self.events[run_id])
        self._first_leg = 1 + sum(name == run_id for name, _ in self._requests)

    def _asks(self, run_id: str, request: Request) -> None:
        """A purchase is recorded: none after the user's no, or past a hard deadline."""
        now, spec = self._world.now, self.spec
        if self._cancelled_at is not None:
            raise Violation(f"leg {request.leg} is asked for, and the run was cancelled")
        late_s = SKEW_S + STALL_S
        if spec.hard and spec.deadline_s is not None and now > spec.deadline_s + late_s:
            raise Violation(f"leg {request.leg} is asked for past a hard deadline")
        most_s = spec.max_duration_s
        if most_s is not None and self._up_s(run_id) > most_s + STALL_S:
            raise Violation(
                f"leg {request.leg} is asked for, and its machines were up for {most_s} s"
            )
        self._requests[run_id, request.leg] = request

    def buys(self, request: Request) -> None:
        """Before the cloud sells anything."""
        if self._requests.get((request.run_id, request.leg)) != request:
            raise Violation(f"leg {request.leg} is bought before the purchase is recorded")

    def sells(self, request: Request) -> None:
        """The cloud has sold what was asked for, whether anybody hears of it or not."""
        if (request.run_id, request.leg) in self._sold:
            raise Violation(f"leg {request.leg} has two sets of machines")
        self._sold.add((request.run_id, request.leg))
        if self._paid(request.run_id) >= MOST_SETS:
            raise Violation(f"leg {request.leg} is bought, and {MOST_SETS} others are paid for")

    def replaced(self, key: str, data: bytes) -> None:
        """A heartbeat has come to the store."""
        _, _, kind, name, *_ = key.split("/")
        if kind == "legs":
            self.created(key, data)
            return
        now = self._world.now
        if self._said.hears(name, data):
            self._beaten[name] = (now, now - self._beaten.get(name, (now, 0))[0])

    def _gives_up(self, run_id: str, event: LegOver) -> None:
        """Silence must have been as long as it has to be, by the world's clock too."""
        mine = [
            machine
            for machine, (of_run, leg) in self._found.items()
            if (of_run, leg) == (run_id, event.leg)
        ]
        if event.cause == "lost":
            # A machine may have come back after the controller had looked.
            heard = [self._beaten[name] for name in mine if name in self._beaten]
            silent = max((max(self._world.now - at, gap) for at, gap in heard), default=LOST_S)
            met = any(self._world.now - self.attacked.get(m, 0) < 3 * LOST_S for m in mine)
            if silent < LOST_S - 5 and not met and not self._lied:
                raise Violation(f"leg {event.leg} is given up after {silent} s of silence")

    def _finds(self, run_id: str, machine: Machine) -> None:
        request = self._requests.get((run_id, machine.leg))
        if request is None or machine.launch_id != request.launch_id:
            raise Violation(f"{machine.machine_id} is taken for a machine of leg {machine.leg}")
        if sum(r.launch_id == machine.launch_id for r in self._requests.values()) > 1:
            raise Violation(f"the launch id {machine.launch_id} stands for two purchases")
        self._found[machine.machine_id] = (run_id, machine.leg)

    def works(self, me: Me) -> None:
        mine = (me.run_id, me.leg, me.rank)
        relieved = self._requests[me.run_id, me.leg].relieves
        if relieved and (me.run_id, relieved) not in self._over:
            raise Violation(f"leg {me.leg} works, and leg {relieved} before it is not over")
        for name, other in self._working.items():
            if other == mine and name != me.machine_id:
                raise Violation(
                    f"machines {name} and {me.machine_id} both do the work of leg {me.leg}"
                )
        self._working[me.machine_id] = mine

    def rests(self, name: str) -> None:
        was = self._working.pop(name, None)
        if was is None:
            return
        over = self._over.get(was[:2])
        if over is not None and self._world.now - over > FENCED_S:
            raise Violation(
                f"machine {name} worked for {self._world.now - over} s after leg {was[1]} was over"
            )

    def resumes(self, me: Me) -> None:
        chosen = me.resume or ""
        first = self._resumed.setdefault((me.run_id, me.leg), chosen)
        if first != chosen:
            raise Violation(f"leg {me.leg} resumes from {first!r} and from {chosen!r}")
        complete = self._checkpoints.get(me.run_id, {})
        if chosen and (_checkpoint(chosen) not in complete or _checkpoint(chosen)[0] >= me.leg):
            raise Violation(f"leg {me.leg} resumes from {chosen}, which was never completed")

    # -- what must hold --------------------------------------------------------------------------

    def _chooses(self, run_id: str, leg: int, data: bytes) -> None:
        """Nothing newer of its line may be left out; what was just completed may be unseen."""
        key = key_of(SEED, self._requests[run_id, leg].launch_id)
        chosen = (opened(data, key, RESUME) or b"").decode()
        known = [
            at
            for at, since in self._checkpoints.get(run_id, {}).items()
            if at[0] < leg and since < self._world.now - UNSEEN_S
        ]
        if known and (not chosen or _checkpoint(chosen) < max(known)):
            raise Violation(f"leg {leg} leaves out the complete checkpoint {max(known)}")

    def _ends(self, run_id: str, event: Event) -> None:
        assert isinstance(event, Ended)
        world, spec = self._world, self.spec
        self.ended[run_id] = event.outcome
        rights: dict[str, Callable[[str], bool]] = {
            "succeeded": self._succeeded,
            "failed": self._failed,
            "cancelled": lambda run_id: self.cancelled,
            "too_late": lambda run_id: (
                spec.hard and spec.deadline_s is not None and world.now + SKEW_S >= spec.deadline_s
            ),
            "out_of_budget": self._poor,
            "too_long": self._too_long,
            "idle": lambda run_id: any(job.hung for job in self.jobs.values()),
        }
        if self._lied:
            return
        right = rights[event.outcome](run_id)
        if self._cancelled_at is not None and event.outcome not in ("cancelled", "succeeded"):
            raise Violation(f"{run_id} was cancelled and ended as {event.outcome}")
        if not right:
            raise Violation(f"{run_id} ended as {event.outcome} ({event.reason}), and was not")
        # Decided up to a stall before; and work that was done in time is not late.
        done = min((job.finished_at or world.now for job in self.jobs.values()), default=world.now)
        at = done if event.outcome == "succeeded" else world.now - STALL_S
        late = spec.deadline_s is not None and at > spec.deadline_s + SKEW_S
        if late and not any(
            isinstance(e, Forecast) and e.late for e in self.events[run_id][self._since :]
        ):
            raise Violation(f"{run_id} is late and was never announced to be")

    def _succeeded(self, run_id: str) -> bool:
        return any(job.finished for (name, _), job in self.jobs.items() if name == run_id)

    def _failed(self, run_id: str) -> bool:
        events = self.events[run_id][self._since :]
        failures = sum(job.failures for (name, _), job in self.jobs.items() if name == run_id)
        troubles = sum(isinstance(e, LegOver) and e.cause in TROUBLES for e in events)
        refused = {e.leg for e in events if isinstance(e, LaunchRefused) and e.kind in LASTING}
        shut = {
            e.request.way.what
            for e in events
            if isinstance(e, LegRequested) and e.request.leg in refused
        }
        nothing_left = all(w.what in shut for w in self.spec.ways)
        if failures > 3 * self.spec.tries + 3:
            raise Violation(f"{run_id} was tried {failures} times, and may be {self.spec.tries}")
        return failures >= self.spec.tries or troubles >= MOST_TROUBLES or nothing_left

    def _poor(self, run_id: str) -> bool:
        spec = self.spec
        assert spec.budget is not None
        left = spec.budget - self.charged(run_id)
        return any(left * 3600 < RESERVED_S * way.price_all for way in spec.ways)

    def _too_long(self, run_id: str) -> bool:
        most_s = self.spec.max_duration_s
        # What a provider forgot is reckoned at the latest that it can have ended.
        guessed = any(isinstance(e, MachineEnded) and e.estimated for e in self.events[run_id])
        return most_s is not None and (guessed or self._up_s(run_id) >= most_s - _NEARLY_S)

    def _up_s(self, run_id: str) -> int:
        total, skew_s = 0, self._scenario.cloud_skew_s
        for rental in self.cloud.rentals.values():
            machine = rental.machine
            mine = machine.run_id == run_id and machine.leg >= self._first_leg
            if mine and machine.rank == 0:
                end = self._world.now if rental.ended is None else rental.ended
                total += end - (machine.launched_s - skew_s)
        return total

    def charged(self, run_id: str) -> int:
        return sum(
            self.cloud.charged(rental)
            for rental in self.cloud.rentals.values()
            if rental.machine.run_id == run_id
        )

    def ticked(self, run_id: str, announced: bool, ratio: float, leg: int, running: bool) -> None:
        """After a controller has dealt with a run whose speed is known."""
        spec, now = self.spec, self._world.now
        job = self.jobs.get((run_id, leg))
        if not running or spec.deadline_s is None or announced or job is None or self._lied:
            return
        kind = self._requests[run_id, leg].way.instance_type
        if abs(ratio - self._scenario.true_rates[kind]) > 0.001:
            return
        left_s = job.left_s
        if left_s is not None and now + 0.95 * left_s > spec.deadline_s + SKEW_S + 120:
            raise Violation(f"{run_id} will be late, and nobody says so")

    def orphans(self, limit_s: int) -> None:
        now = self._world.now
        for rental in self.cloud.rentals.values():
            machine = rental.machine
            end = now if rental.ended is None else rental.ended
            launched = machine.launched_s - self._scenario.cloud_skew_s
            of = (machine.run_id, machine.leg)
            free = self._over.get(of)
            if free is None:
                continue
            if end - max(free, launched) > limit_s:
                raise Violation(
                    f"machine {machine.machine_id} was paid for {end - max(free, launched)} s"
                    f" after leg {machine.leg} was over"
                )

    def balanced(self) -> bool:
        """Whether the ledger equals the bill; a last correction may still be on its way."""
        return all(
            sum(posting.micros for posting in postings(events)) == self.charged(run_id)
            for run_id, events in self.events.items()
        )

    def final(self, limit_s: int) -> None:
        self.orphans(limit_s)
        for name, rental in self.cloud.rentals.items():
            if rental.ended is None:
                raise Violation(f"machine {name} was left running")
        for name in list(self._working):
            self.rests(name)
        for run_id, events in self.events.items():
            if run_id not in self.ended:
                raise Violation(f"{run_id} has not ended")
            if run_id not in self.closed:
                raise Violation(f"{run_id} was not closed")
            charged = self.charged(run_id)
            posted = postings(events)
            if any(posting.seconds is None for posting in posted):
                raise Violation(f"{run_id} is closed, and its ledger still has open machines")
            if sum(p.micros for p in posted) != charged:
                total = sum(p.micros for p in posted)
                raise Violation(f"{run_id}: the ledger says {total}, the cloud {charged}")
            self._budget(run_id, charged)
            most_s, up_s = self.spec.max_duration_s, self._up_s(run_id)
            if most_s is not None and up_s > most_s + DRAIN_S + ORPHAN_S:
                raise Violation(f"{run_id} had machines up for {up_s} s, and may for {most_s} s")

    def _paid(self, run_id: str) -> int:
        """The sets of machines that are paid for now, used or not, by the cloud's own account."""
        paid = set()
        for rental in self.cloud.rentals.values():
            machine, facts = rental.machine, rental.way.facts
            least_s = max(facts.billing_step_s, facts.billing_least_s)
            if machine.ended_s is None or self.cloud.clock < machine.launched_s + least_s:
                paid.add((machine.run_id, machine.leg))
        return sum(of_run == run_id for of_run, _ in paid)

    def _budget(self, run_id: str, charged: int) -> None:
        spec, month = self.spec, self._scenario.month
        limits = [] if spec.budget is None else [spec.budget]
        if month and self._world.now < START_S + month[1]:
            limits.append(month[0])
        if not limits:
            return
        step = max(
            way.nodes * (way.price * way.facts.billing_step_s // 3600 + 1) for way in spec.ways
        )
        if charged > min(limits) + step:
            raise Violation(f"{run_id} cost {charged}, more than {min(limits)} + {step}")


def _checkpoint(key: str) -> tuple[int, int]:
    _, _, _, leg, name = key.split("/")
    return int(leg), int(name.removesuffix(".json"))


def _told(event: Event) -> str:
    kind = type(event).__name__
    if isinstance(event, LegRequested):
        return f"{kind} {event.request.leg}: {event.reason}"
    if isinstance(event, MachinesFound):
        return f"{kind} {' '.join(m.machine_id for m in event.machines)}: {event.reason}"
    fields = {
        name: getattr(event, name)
        for name in event.__struct_fields__
        if name not in ("spec", "machine") and getattr(event, name) not in (None, "", 0)
    }
    return f"{kind} " + " ".join(f"{name}={value}" for name, value in fields.items())
