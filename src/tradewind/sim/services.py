"""`tradewind sim faults --services`: one seed, a service through everything that can go wrong.

The product's own passes (runs, then the service), supervisors' decisions and store keys, under a
fake clock: controllers that die between any two steps and share the work step by step, a store that
fails before or after it did what it was asked, machines that never come up, are taken with a notice
or without, replicas that say they are ready and are not, fronts that die. A referee who knows what
really happened looks for what must never be: an answer that is cut off by us, more machines than
were wanted, a machine or a run that is left.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tradewind.base import clock, steps
from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.base.steps import Steps
from tradewind.controller import Controller
from tradewind.controller.services import Services
from tradewind.journal import journal
from tradewind.lifecycle import fold
from tradewind.model import places
from tradewind.model.run import Facts, Listing, Machine, Request, Way
from tradewind.model.service import EngineSpec, FrontSpec, ServiceSpec
from tradewind.model.serving import Serving
from tradewind.providers.base import (
    LaunchMachines,
    ListAll,
    ListMachines,
    Refused,
    TerminateMachines,
)
from tradewind.services.action import EndFront, LookFront, TendFront
from tradewind.services.seen import FrontSeen
from tradewind.store.memory import MemoryStore
from tradewind.store.steps import performer
from tradewind.supervisor.beat import beat
from tradewind.supervisor.decide import Job, Me, Save, Start

SERVICE = "svc-1-a"
_START_S, _TURN_S = 1_700_000_000.0, 10.0
_NOISY_S, _QUIET_S, _MOST_S = 1800.0, 600.0, 7200.0
_DRAIN_S = 60
_BOOT_S, _COLD_S = 15.0, 15.0
_STEPS = 4000
"""Of all controllers in one turn: more is a pass that never ends."""


class Violation(Exception):
    pass


@dataclass
class Host:
    """A machine, its supervisor and its engine, as they really are."""

    machine: Machine
    request: Request
    me: Me
    up_at: float
    dud: bool = False
    lies: bool = False
    taken_at: float | None = None
    notice: bool = False
    ended: float | None = None
    started: float | None = None
    saving: float | None = None
    exited: bool = False
    gone_by_fate: bool = False
    answers: list[float] = field(default_factory=list)
    """When each request that it answers will be done."""

    def serves(self, now: float) -> bool:
        alive = self.ended is None and not self.exited and not self.lies
        return alive and self.started is not None and now - self.started >= _COLD_S


class Sim:
    def __init__(self, seed: int, *, hasty: bool = False, noisy_s: float = _NOISY_S) -> None:
        """`hasty`: the referee is tried: engines end at once when they are asked to."""
        self.rng = clock.generator(seed)
        self.now, self.faults, self.kinds = _START_S, 0, Counter[str]()
        self.store, self.hosts = MemoryStore(), dict[str, Host]()
        self.in_store = performer(self.store)
        self.backends: dict[str, tuple[str, bool]] | None = None
        """Of the front, while it lives: run id and whether it drains, by name."""
        self.ending = False
        self.held: list[float] = []
        self.asked = self.answered = self.lost = 0
        self.hasty, self.noisy_s = hasty, noisy_s
        self.spec = self._spec()
        self.controllers = [self._born(n) for n in range(self.rng.choice((1, 2, 2, 3)))]
        self.noisy = True

    # -- the world --------------------------------------------------------------------------------

    def _spec(self) -> ServiceSpec:
        rng = self.rng
        facts = Facts(boot_timeout_s=60, notice_s=30, tokens=True, listing_lag_s=0)
        ways = tuple(
            Way(
                provider="sim", region="r", zone="z", instance_type="m", market=market, nodes=1,
                price=price, rate=1.0, start_s=5.0, facts=facts,
            )
            for market, price in (("spot", 300_000), ("on_demand", 900_000))
        )  # fmt: skip
        start = rng.randrange(1, 4)
        return ServiceSpec(
            name="svc",
            model="m",
            front=FrontSpec(port=8080),
            engine=EngineSpec(job={"command": "x"}, at_once=4, drain_s=_DRAIN_S),
            ways=ways if rng.random() < 0.7 else ways[1:],
            start=start,
            fewest=rng.choice((0, 1, start)),
            most=6,
            on_demand=rng.randrange(2),
            spare=rng.randrange(2),
            idle_s=120,
        )

    def _born(self, number: int) -> tuple[Controller, Services]:
        made = Controller(
            f"c{number}-{self.rng.randrange(10**9)}", ("sim",),
            clock=lambda: self.now, watch=lambda: self.now,
        )  # fmt: skip
        return made, Services(made, self)

    def mine(self, service_id: str, spec: ServiceSpec) -> bool:
        return True

    def own(self, service_id: str, run_id: str, job: dict[str, Any]) -> None:
        """Whatever is submitted may run here."""

    def fault(self, kind: str, chance: float) -> bool:
        if not self.noisy or self.rng.random() >= chance:
            return False
        self.faults += 1
        self.kinds[kind] += 1
        return True

    def run(self) -> None:
        self._order(lambda services: services.submit(SERVICE, self.spec))
        stopped = False
        while True:
            self.noisy = self.now - _START_S < self.noisy_s
            self._turn()
            age = self.now - _START_S
            if not stopped and age >= self.noisy_s + _QUIET_S:
                stopped = True
                self._order(lambda services: services.stop(SERVICE, "the user asked for it"))
            if stopped and self._over():
                break
            if age >= _MOST_S:
                raise Violation(f"after {age:.0f} s there is still {self._left()}")
        self._balance()

    def _order(self, what: Any) -> None:
        """The user tries again until it has worked."""
        steps.run(what(Services(self._born(99)[0])), self._do)

    def _over(self) -> bool:
        return not self.store.list_after(places.LIVE) and self._left() == ""

    def _left(self) -> str:
        living = [name for name, host in self.hosts.items() if host.ended is None]
        marks = self.store.list_after(places.LIVE)
        front = ["its front"] if self.backends is not None else []
        return ", ".join([*living, *marks, *front])

    def _balance(self) -> None:
        for name, host in self.hosts.items():
            state = fold(journal.read(self.store, host.machine.run_id))
            known = state.machines.get(name)
            if known is None or not known.ended:
                raise Violation(f"{name} is not accounted for")
            if state.phase != "closed":
                raise Violation(f"{host.machine.run_id} is {state.phase}")

    # -- a turn: machines, requests, and passes step by step --------------------------------------

    def _turn(self) -> None:
        for host in list(self.hosts.values()):
            self._beat(host)
        self._requests()
        if self.backends is not None and self.fault("front dies", 0.004):
            self.backends = None  # what was on its way there was told so: the connection broke
            self.held = []
            for host in self.hosts.values():
                host.answers = []
        self._passes()
        living = sum(host.ended is None for host in self.hosts.values())
        if living > 3 * (self.spec.most + self.spec.spare + 1):
            raise Violation(f"{living} machines live, and {self.spec.most} are the most wanted")
        self.now += _TURN_S

    def _passes(self) -> None:
        going: dict[int, list[Any]] = {}
        for number in range(len(self.controllers)):
            if not self.fault("controller is away", 0.1):
                going[number] = [self._pass(*self.controllers[number]), None, None]
        for _ in range(_STEPS):
            if not going:
                return
            number = self.rng.choice(list(going))
            made, answer, error = going[number]
            try:
                step = made.send(answer) if error is None else made.throw(error)
            except StopIteration:
                del going[number]
                continue
            except SourceFailed:
                del going[number]
                continue
            if self.fault("crash", 0.004):
                if self.rng.random() < 0.5:
                    self._quietly(step)
                made.close()
                self.controllers[number] = self._born(number)
                del going[number]
                continue
            going[number][1:] = self._answered(step)
        raise Violation("a pass does not end")

    def _answered(self, step: Any) -> list[Any]:
        fails = not isinstance(step, TendFront | EndFront | LookFront)
        if fails and self.fault("lost answer", 0.005):
            if self.rng.random() < 0.5:
                self._quietly(step)
            return [None, SourceFailed("the connection broke (sim)")]
        try:
            return [self._do(step), None]
        except TradewindError as error:
            return [None, error]

    def _quietly(self, step: Any) -> None:
        try:
            self._do(step)
        except TradewindError:
            return

    def _pass(self, controller: Controller, services: Services) -> Steps[None]:
        sight = yield from controller.look()
        for run_id in sight.runs:
            try:
                yield from controller.tick(run_id, sight)
            except SourceFailed:
                continue
        for service_id in sight.services:
            yield from services.tick(service_id, sight)

    # -- machines ---------------------------------------------------------------------------------

    def _beat(self, host: Host) -> None:
        now = self.now
        if host.ended is not None:
            return
        if host.taken_at is not None and now >= host.taken_at:
            host.ended, host.gone_by_fate = now, True
            self.lost += len(host.answers)
            host.answers = []
            return
        host.notice = host.notice or (host.taken_at is not None and now >= host.taken_at - 30)
        if host.dud or now < host.up_at:
            return
        host.me.notice = host.notice
        host.answers = [until for until in host.answers if until > now]
        if host.saving is not None and (not host.answers or now - host.saving >= _DRAIN_S):
            self._exits(host)
        job = Job("none")
        if host.started is not None:
            job = (
                Job("exited", exit_code=0)
                if host.exited
                else Job("running", serving=self._says(host))
            )
        for act in steps.run(beat(host.me, job, now - host.up_at), self.in_store):
            if isinstance(act, Start):
                host.started, host.exited = now, False
            elif isinstance(act, Save):
                host.saving = now
                if self.hasty:
                    self._exits(host)
            elif not host.exited:  # stopped, or shut down
                self._exits(host)
        if host.me.shut_down:
            host.ended = now

    def _says(self, host: Host) -> Serving:
        assert host.started is not None
        ready = self.now - host.started >= _COLD_S
        state = "draining" if host.saving is not None else "ready" if ready else "starting"
        return Serving(
            state=state, host="10.0.0.1", port=8000, up_s=self.now - host.started,
            running=len(host.answers),
        )  # fmt: skip

    def _exits(self, host: Host) -> None:
        """Its engine ends; who is answered then is cut off, and that must not be our doing."""
        late = host.saving is not None and self.now - host.saving >= _DRAIN_S
        taken = host.notice or host.gone_by_fate
        if host.answers and not late and not taken:
            raise Violation(f"{host.machine.machine_id} ended with {len(host.answers)} answers")
        self.lost += len(host.answers)
        host.answers, host.exited = [], True

    # -- requests ---------------------------------------------------------------------------------

    def _requests(self) -> None:
        rng = self.rng
        age = self.now - _START_S
        new = rng.choice((0, 0, 1, 4)) if age < self.noisy_s else 0
        for _ in range(new):
            self.asked += 1
            self.held.append(rng.choice((5.0, 10.0, 40.0)))
        if self.backends is None or self.ending:
            self.held = []  # refused before they were taken: their clients see that
            return
        up = [
            host
            for run_id, draining in self.backends.values()
            if not draining
            for host in self.hosts.values()
            if host.machine.run_id == run_id and host.serves(self.now)
        ]
        if up:
            for takes_s in self.held:
                rng.choice(up).answers.append(self.now + takes_s)
                self.answered += 1
            self.held = []

    # -- what controllers ask ---------------------------------------------------------------------

    def _do(self, step: Any) -> Any:
        if isinstance(step, ListAll):
            return {"sim": self._listing()}
        if isinstance(step, ListMachines):
            return self._listing()
        if isinstance(step, LaunchMachines):
            return self._launch(step)
        if isinstance(step, TerminateMachines):
            return self._terminate(step)
        if isinstance(step, LookFront):
            return self._front()
        if isinstance(step, TendFront):
            if not self.ending:
                self.backends = {
                    each.name: (f"{SERVICE}-{each.name}", each.draining) for each in step.backends
                }
            return None
        if isinstance(step, EndFront):
            self.ending = True
            if not any(host.answers for host in self.hosts.values()):
                self.backends = None
            return None
        return self.in_store(step)

    def _front(self) -> FrontSeen | None:
        if self.backends is None:
            return None
        busy = {
            name: sum(
                len(host.answers)
                for host in self.hosts.values()
                if host.machine.run_id == run_id and host.ended is None
            )
            for name, (run_id, _) in self.backends.items()
        }
        current = sum(busy.values()) + len(self.held)
        return FrontSeen(current=current, held=len(self.held), total=self.asked, busy=busy)

    def _listing(self) -> Listing:
        from msgspec.structs import replace

        machines = tuple(
            replace(host.machine, ended_s=None if host.ended is None else int(host.ended))
            for host in self.hosts.values()
        )
        return Listing(at_s=int(self.now), machines=machines)

    def _launch(self, step: LaunchMachines) -> tuple[Machine, ...]:
        request, rng = step.request, self.rng
        name = f"sim-{request.launch_id}-0"
        if name in self.hosts:
            return (self.hosts[name].machine,)
        if request.way.market == "spot" and self.fault("no spot", 0.2):
            raise Refused("no_capacity", "no spot machines (sim)")
        machine = Machine(
            machine_id=name, launch_id=request.launch_id, run_id=request.run_id, leg=request.leg,
            rank=0, launched_s=int(self.now),
        )  # fmt: skip
        me = Me(
            name, request.run_id, request.leg, 0, 1, request.hard_stop_s, 3, step.after,
            launch_id=request.launch_id,
        )  # fmt: skip
        host = self.hosts[name] = Host(machine, request, me, self.now + _BOOT_S)
        host.dud = self.fault("machine never comes up", 0.05)
        host.lies = self.fault("replica lies", 0.05)
        if self.fault("interruption", 0.3):
            host.taken_at = self.now + rng.randrange(20, 900)
            if rng.random() < 0.3:
                host.taken_at -= 30  # the notice comes too late to be one
        return (machine,)

    def _terminate(self, step: TerminateMachines) -> None:
        for name in step.machine_ids:
            host = self.hosts.get(name)
            if host is not None and host.ended is None:
                if not host.exited and host.started is not None:
                    self._exits(host)
                host.ended = self.now


@dataclass
class ServicesTally:
    seeds: int = 0
    violations: int = 0
    first_violation_seed: int | None = None
    first_violation: str = ""
    faults: int = 0
    asked: int = 0
    answered: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


def campaign(first: int, seeds: int, progress: Any = lambda done, total: None) -> ServicesTally:
    tally = ServicesTally()
    for seed in range(first, first + seeds):
        sim = Sim(seed)
        try:
            sim.run()
        except Violation as found:
            tally.violations += 1
            if tally.first_violation_seed is None:
                tally.first_violation_seed, tally.first_violation = seed, str(found)
        tally.seeds += 1
        tally.faults += sim.faults
        tally.asked += sim.asked
        tally.answered += sim.answered
        tally.kinds.update(sim.kinds)
        progress(tally.seeds, seeds)
    return tally
