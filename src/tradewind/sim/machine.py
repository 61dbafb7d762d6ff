"""A machine with its supervisor (the real one's decisions) and its share of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tradewind.base import steps
from tradewind.base.errors import NoAccess, SourceFailed
from tradewind.model import places
from tradewind.model.run import Request
from tradewind.model.timing import BEAT_S, DRAIN_S
from tradewind.model.usage import Usage
from tradewind.sim import liar
from tradewind.sim.cloud import TAKEN_WORDS, Rental, SimCloud
from tradewind.sim.job import SimJob
from tradewind.sim.lender import SimLender
from tradewind.sim.scenario import Scenario
from tradewind.sim.store import SimStore
from tradewind.sim.world import START_S, World
from tradewind.store.steps import Create, Find, Get, Replace
from tradewind.supervisor.beat import beat
from tradewind.supervisor.decide import Act, Me, Save, ShutDown, Start

if TYPE_CHECKING:
    from tradewind.sim.referee import Referee

_SAVE_S = 20
_STUBBORN_S = 2 * DRAIN_S


class SimMachine:
    def __init__(
        self,
        world: World,
        scenario: Scenario,
        store: SimStore,
        cloud: SimCloud,
        referee: Referee,
        lender: SimLender,
        job: SimJob,
        rental: Rental,
        request: Request,
        after: int,
        key: str,
        boot_s: int = 60,
    ) -> None:
        self._world, self._scenario = world, scenario
        self._store, self._cloud, self._referee = store, cloud, referee
        self._rental, self.job = rental, job
        machine = rental.machine
        self.name, self.rank = machine.machine_id, machine.rank
        self.me = Me(
            machine.machine_id, request.run_id, request.leg, machine.rank, request.way.nodes,
            request.hard_stop_s, scenario.spec.tries, after, key=key,
            relieves=request.relieves, waits=request.waits, launch_id=request.launch_id,
        )  # fmt: skip
        self._off = False
        self._writes = self._reads = self._bytes_in = self._bytes_out = 0
        self._notice_at: int | None = None
        self._cut_off: tuple[int, int] | None = None
        self._broken_at: int | None = None
        rng = world.rng
        self._clock_rate = 1.0
        self._up_at = world.now
        self._lender = lender
        self._pass_until: int | None = None
        if request.way.pass_s:
            lent, age_s = lender.first(request)
            self.me.pass_for_s, self.me.pass_until_s = lent.for_s, 0.98 * lent.for_s - age_s
            self.me.pass_seen = lent.mark
            self._pass_until = lender.until(lent.mark)
        if cloud.noisy:
            self._clock_rate = rng.uniform(0.99, 1.01)
            self._up_at += rng.randrange(60)
            boot_s = rng.randrange(60, 200)
            if self._fate(request):
                return
        world.later(boot_s, self.wake)

    def _fate(self, request: Request) -> bool:
        """What is in store for it; true if it never comes up."""
        world, chances, rng = self._world, self._scenario.chances, self._world.rng
        spot = request.way.market == "spot"
        if rng.random() < (4 * chances.vanish if spot else chances.vanish):
            taken_s = rng.randrange(30, 1800)
            world.later(taken_s, self.taken)
            notice_s = request.way.facts.notice_s
            if spot and notice_s and rng.random() < 0.8:
                late_s = rng.randrange(notice_s) if rng.random() < 0.3 else 0
                self._notice_at = world.now + taken_s - notice_s + late_s
        dud = rng.random() < chances.dud
        if not dud and rng.random() < chances.zombie:
            start = world.now + rng.randrange(60, 1200)
            lie = (start, start + rng.randrange(60, 900))
            world.later(start - world.now, lambda: self._declared_dead(lie))
        if rng.random() < chances.cut_off:
            start = world.now + rng.randrange(1200)
            self._cut_off = (start, start + rng.randrange(30, 1500))
            world.fault("machine cut off from the store")
        if rng.random() < chances.hardware:
            self._broken_at = world.now + rng.randrange(60, 1800)
        if dud:
            world.fault("machine never comes up")
        return dud

    def wake(self) -> None:
        if self._off:
            return
        world, me, job = self._world, self.me, self.job
        now = world.now
        uptime_s = (now - self._up_at) * self._clock_rate
        if self._notice_at is not None and now >= self._notice_at:
            if not me.notice:
                world.fault("notice")
                if world.telling:
                    world.tell(self.name, "has notice that it will be taken")
            me.notice = True
        if self._broken_at is not None and now >= self._broken_at:
            self._broken_at = None
            killed = world.rng.random() < 0.5
            world.fault("job killed" if killed else "hardware broken")
            job.breaks(self.rank, now, killed=killed)
            self._referee.rests(self.name)
        job.update(now)
        if not job.works(self.rank):
            self._referee.rests(self.name)
        due = job.due(self.rank, now)
        if due is not None:
            self._save(due)
        was = me.doing
        acts = steps.run(beat(me, job.seen(self.rank, now), uptime_s, self._used), self._perform)
        if me.pass_data:
            self._pass_until = self._lender.until(me.pass_seen)
            me.pass_data = b""
        shut_down = me.shut_down
        self._carry_out(acts)
        if shut_down:
            return
        if me.doing != was:
            if world.telling:
                world.tell(self.name, f"{was} → {me.doing} {me.reason}")
            wait = 1
        else:
            wait = min(BEAT_S, max(job.exits_in(self.rank, now), 1))
        world.later(wait, self.wake)

    def off(self) -> None:
        self._off = True
        self.job.leaves(self.rank, self._world.now)
        self._referee.rests(self.name)

    def _carry_out(self, acts: list[Act]) -> None:
        world, job = self._world, self.job
        for act in acts:
            if world.telling:
                world.tell(self.name, f"{type(act).__name__}: {act.reason}")
            if isinstance(act, Start):
                assert self.me.resume is not None
                self._referee.resumes(self.me)
                if self.me.resume and self.rank == 0:
                    self._moves(out=self._scenario.spec.checkpoint_bytes)
                job.starts(self.rank, self.me.resume, world.now)
                self._referee.works(self.me)
            elif isinstance(act, Save):
                save_s = self._save_s() if self._cloud.noisy else _SAVE_S
                job.saves(self.rank, world.now, world.now + save_s)
                self._referee.rests(self.name)
            elif isinstance(act, ShutDown):
                self._off = True
                world.later(world.rng.randrange(1, 50), self._powered_off)
            else:
                job.leaves(self.rank, world.now)
                self._referee.rests(self.name)

    def _save_s(self) -> int:
        rng, chance = self._world.rng, self._scenario.chances.stubborn
        if chance and rng.random() < chance:
            return _STUBBORN_S
        return rng.choice((_SAVE_S, rng.randrange(1, 100)))

    def _powered_off(self) -> None:
        if self._cloud.facts.ends == "never":
            self._world.fault("off, and paid for")
        elif self._rental.ended is None:
            self._cloud.end(self._rental, "it shut itself down")

    def told_to_go(self) -> None:
        self._notice_at = self._world.now

    def taken(self) -> None:
        if self._rental.ended is None:
            self._world.fault("machine interrupted")
            self._cloud.end(self._rental, TAKEN_WORDS)

    def _declared_dead(self, lie: tuple[int, int]) -> None:
        if self._rental.ended is None:
            self._world.fault("declared dead, alive")
            if self._world.telling:
                self._world.tell(self.name, "is listed as ended, and lives")
            dead = None
            if self._world.rng.random() < 0.6:
                dead = replace(self._rental.machine, ended_s=self._cloud.clock)
            self._rental.claimed_dead = (*lie, dead)

    def _save(self, step: int) -> None:
        key = places.checkpoint(self.me.run_id, self.me.turn, step)
        try:
            self._perform(Create(key, b"{}"))
        except (NoAccess, SourceFailed):
            return
        self.job.saved_at(step)
        self._moves(into=self._scenario.spec.checkpoint_bytes)

    def _moves(self, *, into: int = 0, out: int = 0) -> None:
        self._bytes_in += into
        self._bytes_out += out
        self._referee.moves(self._rental.way, into, out)

    def _perform(self, step: Any) -> Any:
        world = self._world
        cut = self._cut_off
        if cut and cut[0] <= world.now < cut[1]:
            raise SourceFailed("the store cannot be reached (sim)")
        if self._pass_until is not None and world.now >= self._pass_until:
            world.fault("pass has ended")
            raise NoAccess("the pass has ended (sim)")
        if world.now < START_S + self._scenario.quiet_s:
            fails = self._scenario.chances.store_fails
            if fails and world.rng.random() < fails:
                return self._store.fail(step)
        if isinstance(step, Get | Find):
            self._reads += 1
        else:
            self._writes += 1
        if isinstance(step, Create | Replace):
            self._bytes_in += len(step.data)
        if self._lies(step):
            lie = liar.lie(world.rng, step.data, self.me.key, self._scenario.lie)
            return self._store.plant(step.key, lie)
        return self._store.perform(step)

    def _lies(self, step: Any) -> bool:
        if self._scenario.liar != liar.OWN or not self._cloud.noisy:
            return False
        mine = places.heartbeat(self.me.run_id, self.name)
        if not isinstance(step, Replace) or step.key != mine:
            return False
        lies = self._world.rng.random() < liar.OFTEN[self._scenario.lie]
        if lies:
            self._world.fault("machine lies")
            if self._world.telling:
                self._world.tell(self.name, "lies")
        return lies

    def _used(self) -> Usage:
        return Usage(
            writes=self._writes,
            reads=self._reads,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
        )
