"""Knows what really happened, and stops the simulation when something never may.

1. No machine is paid for by no run for longer than finding and ending it takes.
2. No leg has two machines of one rank at work, and none works on past fencing.
3. Every run ends, in the state that what happened to it calls for (outcomes.py).
4. A leg starts from the newest complete checkpoint of its line, all its machines from the same.
5. The ledger equals what the clouds charged, to the micro-dollar, and no bytes move without a
   price (money.py).
6. No budget, the run's or its project's month, is exceeded by more than one billing step
   (money.py), and nothing is bought once its machines were up for as long as they may be.
7. What machines last said of their use of the store is recorded when the run is closed (said.py).
8. A run that is late was announced as late; one that will be is, as soon as its speed is known
   (outcomes.py).
9. Never do two legs work, and none that the journal has in a queue beside others; nothing is left
   in a queue.
10. No pass is in a journal, none is lent to a run that has ended, and none that is good is left in
   the store.
11. Nothing is bought outside of a run's windows, and nothing works on when one has closed.
12. Whatever machines say, a run pays for no more than MOST_SETS sets of machines at once, and its
   journal does not grow faster than MOST_COMMITS an hour.

A machine that lies of itself (liar.py) may bring its own run to any end, and hides how far it is:
of 3, 7 and 8 nothing is asked then, and all else holds. One of another run may change nothing: all
of it holds, but that a report which was overwritten counts as silence.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import json
from msgspec.structs import replace

from tradewind.base.signing import RESUME, key_of, opened
from tradewind.lifecycle.fold import DISBELIEVED
from tradewind.model.event import (
    Abandoned,
    CancelAsked,
    Closed,
    Commit,
    Ended,
    Event,
    LaunchRefused,
    LegOver,
    LegQueued,
    LegRequested,
    MachineBack,
    MachineEnded,
    MachinesFound,
    Resumed,
)
from tradewind.model.run import Machine, Request, Spec, Way
from tradewind.model.timing import BEAT_S, DRAIN_S, FENCE_S, GRACE_S, LOST_S, UNATTENDED_S
from tradewind.model.usage import GB
from tradewind.sim import money, outcomes
from tradewind.sim.history import SKEW_S, STALL_S, History
from tradewind.sim.lender import SECRET
from tradewind.sim.said import Said
from tradewind.sim.scenario import SEED, Scenario
from tradewind.sim.world import START_S, Violation, World
from tradewind.supervisor.decide import Me

_decode = json.Decoder(Commit).decode
FENCED_S = int((FENCE_S + 2 * BEAT_S) / 0.99) + 10
"""A replaced machine has stopped by then: it reads its orders every beat, or fences itself."""
MOST_SETS = 6
"""One that is being drained, its relief, two that are over within the time that is paid at least,
and two whose purchase nobody knows of yet."""
MOST_COMMITS = 2000
MOST_LATE = 4
"""Passes that a controller may have been about to lend: one for each machine of two legs."""
OUTSIDE_S = SKEW_S + STALL_S + DRAIN_S + FENCED_S + UNATTENDED_S
"""So long after its window closed a job may still be found at work: whoever should have ended it
was gone, and it began late."""
ORPHAN_S = GRACE_S + UNATTENDED_S + 300
UNSEEN_S = 150


class Referee(History):
    """Of one run."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        super().__init__(world, scenario)
        self._sold: set[int] = set()
        self._found: dict[str, int] = {}
        self._last = 0  # the greatest number of a leg, or of a turn
        self._turns: dict[int, int] = {}
        self._queued: set[int] = set()
        """Legs that the journal has in a queue."""
        self._beaten: dict[
            str, tuple[int, int]
        ] = {}  # when last, and how long after the one before
        self._outdated: dict[str, int] = {}
        """Machines one of whose reports was replaced by an older one, long on its way, and when."""
        self._said = Said(world)
        self._over: dict[int, int] = {}  # leg → when that was recorded
        self._working: dict[str, tuple[int, int]] = {}
        self._checkpoints: dict[tuple[int, int], int] = {}  # (leg, step) → since when
        self._resumed: dict[int, str] = {}
        self.ended = ""
        self._lent_late = 0
        self.closed_at = self.ended_at = 0
        self.closed = False
        self.open: set[str] = set()
        """Machines that the journal believes alive."""
        self.resumed = False
        self.just_closed = False
        self.attacked: dict[str, int] = {}
        """Machines whose reports were overwritten by others, and when last."""

    # -- what happens ----------------------------------------------------------------------------

    def created(self, kind: str, rest: Sequence[str], data: bytes) -> None:
        if kind == "journal":
            if SECRET in data:
                raise Violation(f"the journal of {self.run_id} has a pass in it")
            self._committed(_decode(data))
        elif kind == "checkpoints":
            step = int(rest[1].removesuffix(".json"))
            self._checkpoints[int(rest[0]), step] = self.world.now
        elif kind == "legs":
            self._chooses(int(rest[0]), data)

    def _committed(self, commit: Commit) -> None:
        world, events = self.world, self.events
        for event in commit.events:
            events.append(event)
            if world.telling:
                world.tell(commit.writer, f"{self.run_id} {commit.number}: {_told(event)}")
            if isinstance(event, LegRequested):
                self._asks(event.request)
            elif isinstance(event, CancelAsked):
                self.cancelled_at = world.now
            elif isinstance(event, LegOver | LaunchRefused):
                self._over[event.leg] = world.now
                self._queued.discard(event.leg)
                if isinstance(event, LegOver):
                    self._gives_up(event)
            elif isinstance(event, LegQueued):
                self._queued.add(event.leg)
            elif isinstance(event, MachinesFound):
                for machine in event.machines:
                    self._finds(machine)
                    if machine.ended_s is None:
                        self.open.add(machine.machine_id)
            elif isinstance(event, MachineEnded):
                self.open.discard(event.machine.machine_id)
            elif isinstance(event, MachineBack):
                self.open.add(event.machine_id)
            elif isinstance(event, Ended):
                self.ended, self.ended_at = event.outcome, world.now
                outcomes.check(self, event)
            elif isinstance(event, Abandoned):
                self.ended = "abandoned"
            elif isinstance(event, Resumed):
                self._resumes(event)
        self.orphans(ORPHAN_S)
        money.check_budget(self)
        if commit.number > 100 + MOST_COMMITS * (world.now - START_S) / 3600:
            raise Violation(f"{self.run_id} has {commit.number} commits")
        if isinstance(events[-1], Closed) and not self.lied and not self.attacked:
            now = self.rented.first_leg
            self._said.check(events, [m for m, of in self._found.items() if now <= of])
        if isinstance(events[-1], Closed | Abandoned):
            self.closed = self.just_closed = True
            self.closed_at = world.now

    def _resumes(self, event: Resumed) -> None:
        self.resumed = True
        self.cancelled, self.cancelled_at = False, None
        self.ended, self.closed, self._lent_late = "", False, 0
        for job in self.jobs.values():
            job.failures = 0
        spec = self.spec
        self.spec = replace(
            spec,
            budget=spec.budget if event.budget is None else event.budget,
            deadline_s=spec.deadline_s if event.deadline_s is None else event.deadline_s,
        )
        self.since = len(self.events)
        self.rented.first_leg = 1 + self._last

    def _asks(self, request: Request) -> None:
        """A purchase is recorded: none after the user's no, or past a hard deadline."""
        now, spec = self.world.now, self.spec
        if self.cancelled_at is not None:
            raise Violation(f"leg {request.leg} is asked for, and the run was cancelled")
        late_s = SKEW_S + STALL_S
        if spec.hard and spec.deadline_s is not None and now > spec.deadline_s + late_s:
            raise Violation(f"leg {request.leg} is asked for past a hard deadline")
        if not _open_lately(spec, now, late_s):
            raise Violation(f"leg {request.leg} is asked for outside of its window")
        most_s = spec.max_duration_s
        # Whoever asks may have stalled since it looked.
        if most_s is not None and self.rented.up_s() > most_s + STALL_S * self.rented.at_once():
            raise Violation(
                f"leg {request.leg} is asked for, and its machines were up for {most_s} s"
            )
        self.requests[request.leg] = request
        self._last = request.leg

    def _turn(self, leg: int) -> int:
        """In which it works, by number: one that was in a queue may have let others go before."""
        return self._turns.get(leg, leg)

    def buys(self, request: Request) -> None:
        """Before the cloud sells anything."""
        if self.requests.get(request.leg) != request:
            raise Violation(f"leg {request.leg} is bought before the purchase is recorded")

    def sells(self, request: Request) -> None:
        """The cloud has sold what was asked for, whether anybody hears of it or not."""
        if request.leg in self._sold:
            raise Violation(f"leg {request.leg} has two sets of machines")
        self._sold.add(request.leg)
        if self.rented.paid_sets() >= MOST_SETS:
            raise Violation(f"leg {request.leg} is bought, and {MOST_SETS} others are paid for")

    def replaced(self, kind: str, rest: Sequence[str], data: bytes) -> None:
        """A heartbeat has come to the store."""
        if kind == "legs":
            self.created(kind, rest, data)
            return
        name, now = rest[0], self.world.now
        if self._said.hears(name, data):
            self.heard.add(name)
            self._beaten[name] = (now, now - self._beaten.get(name, (now, 0))[0])
        else:
            self._outdated[name] = now

    def moves(self, way: Way, into: int, out: int) -> None:
        rates = way.rates
        assert rates is not None
        self.moved += (into * rates.gb_in + out * rates.gb_out) // GB

    def lends(self) -> None:
        """A pass has come to the store. What was decided before the run ended may come late."""
        if self.ended:
            self._lent_late += 1
        if self._lent_late > MOST_LATE * self.scenario.controllers:
            raise Violation(f"{self.run_id} has ended, and passes are lent to it")

    def _gives_up(self, event: LegOver) -> None:
        """Silence must have been as long as it has to be, by the world's clock too."""
        mine = [machine for machine, leg in self._found.items() if leg == event.leg]
        attacked = {name for each in (self.attacked, self._outdated) for name in each} & {*mine}
        if event.cause == DISBELIEVED and not (self.lied or attacked):
            raise Violation(f"leg {event.leg} is not believed, and nobody lied")
        if event.cause == "lost":
            # A machine may have come back after the controller had looked.
            heard = [self._beaten[name] for name in mine if name in self._beaten]
            silent = max((max(self.world.now - at, gap) for at, gap in heard), default=LOST_S)
            # A report that was replaced, by whomever, may have been read by nobody.
            replaced = [each.get(m, 0) for each in (self.attacked, self._outdated) for m in mine]
            unread = any(self.world.now - at < 3 * LOST_S for at in replaced)
            if silent < LOST_S - 5 and not unread and not self.lied:
                raise Violation(f"leg {event.leg} is given up after {silent} s of silence")

    def _finds(self, machine: Machine) -> None:
        request = self.requests.get(machine.leg)
        if request is None or machine.launch_id != request.launch_id:
            raise Violation(f"{machine.machine_id} is taken for a machine of leg {machine.leg}")
        if sum(r.launch_id == machine.launch_id for r in self.requests.values()) > 1:
            raise Violation(f"the launch id {machine.launch_id} stands for two purchases")
        self._found[machine.machine_id] = machine.leg
        there = sum(leg == machine.leg for leg in self._found.values())
        if there == request.way.nodes:
            self._queued.discard(machine.leg)
            if request.waits and machine.leg not in self._over:
                self._last += 1
                self._turns[machine.leg] = self._last

    def works(self, me: Me) -> None:
        mine = (me.leg, me.rank)
        request = self.requests[me.leg]
        relieved = request.relieves
        if relieved and relieved not in self._over:
            raise Violation(f"leg {me.leg} works, and leg {relieved} before it is not over")
        if request.waits and me.leg in self._queued:
            raise Violation(f"leg {me.leg} works, and the journal has it in a queue")
        for name, other in self._working.items():
            if other == mine and name != me.machine_id:
                raise Violation(
                    f"machines {name} and {me.machine_id} both do the work of leg {me.leg}"
                )
            if other[0] != me.leg and other[0] not in self._over and me.leg not in self._over:
                raise Violation(f"legs {other[0]} and {me.leg} both work")
        self._working[me.machine_id] = mine

    def rests(self, name: str) -> None:
        was = self._working.pop(name, None)
        if was is None:
            return
        over = self._over.get(was[0])
        if over is not None and self.world.now - over > FENCED_S:
            raise Violation(
                f"machine {name} worked for {self.world.now - over} s after leg {was[0]} was over"
            )

    def resumes(self, me: Me) -> None:
        chosen = me.resume or ""
        first = self._resumed.setdefault(me.leg, chosen)
        if first != chosen:
            raise Violation(f"leg {me.leg} resumes from {first!r} and from {chosen!r}")
        at = _checkpoint(chosen) if chosen else (0, 0)
        if chosen and (at not in self._checkpoints or at[0] >= self._turn(me.leg)):
            raise Violation(f"leg {me.leg} resumes from {chosen}, which was never completed")

    # -- what must hold --------------------------------------------------------------------------

    def _chooses(self, leg: int, data: bytes) -> None:
        """Nothing newer of its line may be left out; what was just completed may be unseen."""
        key = key_of(SEED, self.requests[leg].launch_id)
        chosen = (opened(data, key, RESUME) or b"").decode()
        known = [
            at
            for at, since in self._checkpoints.items()
            if at[0] < self._turn(leg) and since < self.world.now - UNSEEN_S
        ]
        if known and (not chosen or _checkpoint(chosen) < max(known)):
            raise Violation(f"leg {leg} leaves out the complete checkpoint {max(known)}")

    def ticked(self, announced: bool, ratio: float, leg: int, running: bool) -> None:
        """After a controller has dealt with a run whose speed is known."""
        if running and not announced:
            outcomes.check_announced(self, ratio, leg)

    def orphans(self, limit_s: int) -> None:
        now = self.world.now
        for name, (leg, _) in self._working.items():
            if not self.lied and not _open_lately(self.spec, now, OUTSIDE_S):
                raise Violation(f"{name} of leg {leg} works {OUTSIDE_S} s after its window closed")
        for cloud, rental in self.rented:
            machine = rental.machine
            free = self._over.get(machine.leg)
            if free is None:
                continue
            end = now if rental.ended is None else rental.ended
            since = max(free, machine.launched_s - cloud.skew_s)
            paid_s = end - since
            # Where a machine does not end itself, nobody can end one that is not listed either.
            lost_s = rental.hidden_s(since, end) if rental.way.facts.ends == "never" else 0
            if paid_s > limit_s + cloud.out_s + lost_s:
                raise Violation(
                    f"machine {machine.machine_id} was paid for {paid_s} s"
                    f" after leg {machine.leg} was over"
                )

        for cloud, launch_id, ticket in self.rented.tickets():
            over = self._over.get(ticket.request.leg)
            if over is not None and now - max(over, ticket.since) > limit_s + cloud.out_s:
                left_s = now - max(over, ticket.since)
                raise Violation(f"{launch_id} is left in a queue, {left_s} s after it was over")

    def balanced(self) -> bool:
        return money.balanced(self)

    def final(self, limit_s: int) -> None:
        self.orphans(limit_s)
        for _, rental in self.rented:
            if rental.ended is None:
                raise Violation(f"machine {rental.machine.machine_id} was left running")
        for _, launch_id, _ in self.rented.tickets():
            raise Violation(f"{launch_id} was left in a queue")
        for name in list(self._working):
            self.rests(name)
        if not self.events:
            return
        if not self.ended:
            raise Violation(f"{self.run_id} has not ended")
        if not self.closed:
            raise Violation(f"{self.run_id} was not closed")
        money.check_ledger(self)
        money.check_budget(self)
        if not self.lied and not self.attacked:
            money.check_moved(self)
        most_s, up_s = self.spec.max_duration_s, self.rented.up_s()
        if most_s is not None and up_s > most_s + (DRAIN_S + ORPHAN_S) * self.rented.at_once():
            raise Violation(f"{self.run_id} had machines up for {up_s} s, and may for {most_s} s")


def _open_lately(spec: Spec, now: int, seconds: int) -> bool:
    """Whether its machines might be up at any time in the last so many seconds, or the next: the
    clocks of those who decide it are wrong by as much."""
    return spec.schedule.usable_s(now - seconds, now + SKEW_S) > 0


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
