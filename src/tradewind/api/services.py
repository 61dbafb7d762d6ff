"""A service in Python's hands. Nothing here prints or asks; what goes wrong is a TradewindError."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind import store as stores
from tradewind.api import follow
from tradewind.api.billed import Bill, bill_of
from tradewind.api.fronts import Fronts
from tradewind.base import clock, steps
from tradewind.base.errors import BadFile, TradewindError
from tradewind.base.ownfiles import append, home
from tradewind.controller.drive import performer
from tradewind.controller.services import Services, told_of
from tradewind.journal import services_book
from tradewind.model.event import Ended, LegOver
from tradewind.model.service import ServiceCommit, ServiceEvent, ServiceSpec
from tradewind.services import fronting
from tradewind.services.action import LookFront
from tradewind.services.fold import fold
from tradewind.services.seen import FrontSeen, Told
from tradewind.services.state import ServiceState
from tradewind.store.base import Store

if TYPE_CHECKING:
    from tradewind.model import Workload


@dataclass(frozen=True, slots=True)
class FrontView:
    """A rented front that is ordered and not gone, as it stands."""

    number: int
    run_id: str
    state: str
    """ordered, machine, starting (until it was told of the service), ready, draining"""
    told: Told
    host: str
    """In its network; "": not known yet."""
    public: str
    """In the world; "": it has none."""
    cost: int

    @property
    def name(self) -> str:
        return f"f{self.number}"


Where = str | Path | Store | None


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One that is ordered and not gone, as it stands."""

    number: int
    run_id: str
    market: str
    state: str
    """ordered, machine (it comes up), starting (its engine), warming, ready, draining"""
    told: Told
    cost: int
    """So far, micro-dollars."""

    @property
    def name(self) -> str:
        return f"r{self.number}"


class Service:
    """One service of a store, as it stood when it was last read; `refresh` reads it again."""

    trouble = ""
    """What went wrong in the last pass of `wait`; it is tried again."""

    def __init__(self, service_id: str, store: Where = None) -> None:
        """By its id, or the beginning of one that no other has."""
        self.store = _opened(store)
        self.id = services_book.named(self.store, service_id)
        self.state = ServiceState()
        self.commits: list[ServiceCommit] = []
        self._runs: dict[str, follow.Sight] = {}
        self._fronts = Fronts()
        self.front: FrontSeen | None = None
        """What its front says; None: it is not here, or does not answer."""
        self.refresh()

    def __repr__(self) -> str:
        return f"<Service {self.id}: {self.outcome or self.state.phase}, {len(self.ready)} ready>"

    @property
    def spec(self) -> ServiceSpec | None:
        return self.state.spec

    @property
    def outcome(self) -> str:
        """stopped, failed; "" while it goes on."""
        return self.state.outcome

    @property
    def url(self) -> str:
        """Where requests go; of several fronts, the first. "": no rented one is there yet."""
        return next(iter(self.urls), "")

    @property
    def urls(self) -> list[str]:
        """Of each front. A rented one has an address in the world, or else in its network."""
        if self.spec is None:
            return []
        if self.spec.rented:
            ready = [each for each in self.state.staying_fronts if each.ready_at]
            port = self.spec.front.port
            return [f"http://{each.public or each.host}:{port}" for each in ready]
        front = self.spec.front
        address = f"[{front.address}]" if ":" in front.address else front.address
        address = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}.get(address, address)
        return [f"http{'s' if front.certificate else ''}://{address}:{front.port}"]

    @property
    def events(self) -> list[tuple[datetime, ServiceEvent]]:
        return [(commit.at, event) for commit in self.commits for event in commit.events]

    @property
    def replicas(self) -> list[ReplicaView]:
        found = []
        for replica in self.state.replicas.values():
            sight = self._sight(replica.run_id)
            told = self._told(replica.run_id)
            state = _words(told, bool(replica.leaving_at))
            found.append(
                ReplicaView(replica.number, replica.run_id, replica.market, state, told, sight.cost)
            )
        return found

    @property
    def fronts(self) -> list[FrontView]:
        """Those that are rented: a front on this computer is none of them."""
        found = []
        for front in self.state.fronts.values():
            told = self._told(front.run_id)
            state = _words(told, bool(front.leaving_at))
            cost = self._sight(front.run_id).cost
            found.append(
                FrontView(front.number, front.run_id, state, told, front.host, front.public, cost)
            )
        return found

    def _told(self, run_id: str) -> Told:
        sight = self._sight(run_id)
        return told_of(sight.state, _reason(sight), next(iter(sight.beats.values()), None))

    @property
    def ready(self) -> list[ReplicaView]:
        """Those that answer; where the front is here, by its own probe too."""
        found = [each for each in self.replicas if each.state == "ready"]
        if self.front is None:
            return found
        return [each for each in found if each.name in self.front.up]

    def refresh(self) -> Service:
        new = services_book.read(self.store, self.id, self.state.number)
        self.state = fold(new, self.state)
        self.commits += new
        for run_id in (*self.state.replicas, *self.state.fronts):
            sight = self._sight(run_id)
            sight.look()
            sight.feel()
        self.front = None
        if self.spec is not None and self.spec.rented:
            told = {run_id: self._told(run_id) for run_id in self.state.fronts}
            self.front = fronting.together(self.state, told, {})
        elif self.spec is not None and self.state.phase in ("up", "stopping"):
            self.front = self._fronts.look(LookFront(self.id, self.spec.front))
        return self

    def wait(
        self,
        until: Callable[[Service], bool],
        timeout: float | None = None,
        *,
        on_progress: Callable[[Service], None] | None = None,
    ) -> bool:
        """Is a controller until this holds; False: it took longer than so many seconds, or the
        service has ended."""
        from tradewind.api import fleet

        loop = fleet.loop(self.store)
        begun = clock.stopwatch()
        found = False

        def wanted() -> bool:
            nonlocal found
            try:
                self.refresh()
            except BadFile:
                raise
            except TradewindError as error:
                self.trouble = error.message
            if on_progress:
                on_progress(self)
            found = until(self)
            late = timeout is not None and clock.stopwatch() - begun >= timeout
            return not found and not late and self.state.phase != "closed"

        def tell(troubles: list[tuple[str, TradewindError]]) -> None:
            mine = [error for who, error in troubles if who in ("", self.id)]
            self.trouble = mine[-1].message if mine else ""

        loop.watch(wanted, tell=tell)
        return found

    def wait_ready(self, count: int = 1, timeout: float | None = None) -> bool:
        return (
            self.wait(lambda service: len(service.ready) >= count or bool(service.outcome), timeout)
            and not self.outcome
        )

    def stop(self, timeout: float | None = None, *, reason: str = "its user asked for it") -> bool:
        """Running answers finish, every machine is given back, and all is accounted for. True: it
        is closed. `timeout=0` only asks."""
        services = _clerk()
        steps.run(services.stop(self.id, reason), performer(self.store, {}))
        if timeout == 0:
            return self.refresh().state.phase == "closed"
        return self.wait(lambda service: service.state.phase == "closed", timeout)

    def scale(self, fewest: int | None = None, most: int | None = None) -> Service:
        why = "its user asked for it"
        steps.run(_clerk().scale(self.id, fewest, most, why), performer(self.store, {}))
        return self.refresh()

    def detach(self) -> Path:
        """Leaves it to a controller in the background; the file that this writes to."""
        log = home() / "watch" / f"{self.id}.log"
        command = [sys.executable, "-P", "-m", "tradewind", "services", "watch", self.id]
        with append(log) as stream:
            # The shell is gone at once and leaves the other to init, as follow.leave does.
            subprocess.run(
                ["/bin/sh", "-c", '"$@" &', "sh", *command, "--store", self.store.url],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
                check=True,
            )
        return log

    def load(self) -> list[float]:
        """What its front saw in the last hours, in replicas, by periods of ten seconds."""
        from tradewind.controller import loads
        from tradewind.model import bounds, places

        keys = self.store.list_after(places.loads(self.id))[-2:]
        kept = [loads.decode(self.store.get(key, most=bounds.RECORD)) for key in keys]
        return [each for hour in kept if hour is not None for each in hour.load]

    def cost(self) -> Bill:
        return bill_of(self.store, self.id, self.state)

    def _sight(self, run_id: str) -> follow.Sight:
        if run_id not in self._runs:
            self._runs[run_id] = follow.Sight(self.store, run_id)
        return self._runs[run_id]


def serve(
    what: str | Path | Workload,
    *,
    folder: str | Path | None = None,
    project: str = "",
    tags: Mapping[str, str] | None = None,
    store: Where = None,
    detach: bool = True,
    on: str | Sequence[str] = (),
) -> Service:
    """Plans it, brings it up on this computer at the plan's prices, and returns the service. With
    `detach` a controller in the background looks at it; without, `wait` is one. `on`: on machines
    of these clouds."""
    from tradewind.api import served, servedon

    opened = _opened(store)
    names = [on] if isinstance(on, str) else list(on)
    there = servedon.on(opened, names) if names else None
    plans = served.planned(what, on=there)
    spec = served.spec_of(plans, project=project, tags=tags, on=there)
    served.check(spec)
    if folder is None:
        folder = Path(what).absolute().parent if isinstance(what, str | Path) else Path.cwd()
    service = Service(served.submit(opened, spec, Path(folder)), opened)
    if detach:
        service.detach()
    return service


def services(store: Where = None, *, live: bool = False) -> list[Service]:
    """All services of a store, the oldest first; `live`: those that go on."""
    opened = _opened(store)
    ids = services_book.live_ids(opened) if live else services_book.service_ids(opened)
    found = [Service(service_id, opened) for service_id in ids]
    return [each for each in found if each.spec is not None]


def _words(told: Told, leaving: bool) -> str:
    if leaving:
        return "draining"
    if not told.phase or told.phase == "waiting":
        return "ordered"
    if told.serving is None:
        return "machine"
    return told.serving.state


def _reason(sight: follow.Sight) -> str:
    found = ""
    for commit in sight.commits:
        for event in commit.events:
            if isinstance(event, LegOver | Ended):
                found = event.reason
    return found


def _clerk() -> Services:
    from tradewind.api import fleet

    return Services(fleet.clerk())


def _opened(store: Where) -> Store:
    return stores.open(store) if store is None or isinstance(store, str | Path) else store
