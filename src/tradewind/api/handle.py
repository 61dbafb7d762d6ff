"""A run in Python's hands. Nothing here prints or asks; what goes wrong is a TradewindError."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind import store as stores
from tradewind.api import follow, orders
from tradewind.api.legs import LegView, legs_of
from tradewind.base.errors import TradewindError
from tradewind.journal import runs_store
from tradewind.store.base import Store

if TYPE_CHECKING:
    from tradewind.api.logs import Line
    from tradewind.api.outputs import Output
    from tradewind.lifecycle.state import RunState
    from tradewind.model import Workload
    from tradewind.model.event import Event
    from tradewind.model.plan import Plans
    from tradewind.model.run import Spec
    from tradewind.planning.document import Saved
    from tradewind.report.figures import Report

Where = str | Path | Store | None


class Run:
    """One run of a store, as it stood when it was last read; `refresh` reads it again."""

    trouble = ""
    """What went wrong in the last pass of `wait`; it is tried again."""

    def __init__(self, run_id: str, store: Where = None) -> None:
        """By its id, or the beginning of one that no other has."""
        opened = _opened(store)
        self._sight = follow.Sight(opened, runs_store.named(opened, run_id))
        self.refresh()

    @classmethod
    def _read(cls, store: Store, loaded: runs_store.Loaded) -> Run:
        """One whose journal was read already."""
        run = object.__new__(cls)
        run._sight = follow.Sight.of(store, loaded.run_id, loaded.state, loaded.commits)
        return run

    def __repr__(self) -> str:
        words = self.outcome or (f"leg {self._leg}, " if self._leg else "") + (self.phase or "new")
        far = f", {self.step:,.0f} of {self.work:,.0f}" if self.step and not self.outcome else ""
        return f"<Run {self.id}: {words}{far}>"

    @property
    def id(self) -> str:
        return self._sight.run_id

    @property
    def store(self) -> Store:
        return self._sight.store

    @property
    def state(self) -> RunState:
        """All that the journal says of it. Not to be changed."""
        return self._sight.state

    @property
    def spec(self) -> Spec | None:
        """What was asked for; None while it is being submitted, or where it never was."""
        return self.state.spec

    @property
    def name(self) -> str:
        return self.spec.name if self.spec else ""

    @property
    def phase(self) -> str:
        """waiting, active, ended (machines are given back), closed; "" before it is submitted."""
        return self.state.phase

    @property
    def outcome(self) -> str:
        """succeeded, failed, cancelled, out_of_budget, too_late, too_long, idle, abandoned; ""
        while it goes on."""
        return self._sight.outcome

    @property
    def step(self) -> float:
        """How far it is: what its machines said when it was last read, or what was recorded."""
        return self._sight.step

    @property
    def work(self) -> float:
        """How far it has to go."""
        return self.spec.work if self.spec else 0.0

    @property
    def cost(self) -> int:
        """So far, micro-dollars."""
        return self._sight.cost

    @property
    def legs(self) -> list[LegView]:
        return legs_of(self._sight.commits)

    @property
    def events(self) -> list[tuple[datetime, Event]]:
        """When each was recorded, and what."""
        return [(commit.at, event) for commit in self._sight.commits for event in commit.events]

    def refresh(self) -> Run:
        self._sight.look()
        self._sight.feel()
        return self

    def wait(
        self,
        timeout: float | None = None,
        *,
        on_progress: Callable[[Run], None] | None = None,
    ) -> str:
        """Looks after the run until it is over, and returns its outcome; "" after so many seconds.

        Others may look after it at the same time. What goes wrong on the way is tried again, until
        the run is over or the time is: then, if nothing has succeeded since, it is raised."""
        met: list[TradewindError] = []

        def tell(_: object, troubles: list[tuple[str, TradewindError]]) -> None:
            met[:] = [error for who, error in troubles if who in ("", self.id)]
            self.trouble = met[-1].message if met else ""
            if on_progress:
                on_progress(self)

        outcome = follow.watch(self._sight, tell=tell, timeout_s=timeout)
        if not outcome and met:
            raise met[-1]
        return outcome

    def stop(self, timeout: float | None = None) -> str:
        """Asks it to save and stop, and waits for that; `timeout=0` only asks."""
        orders.stop(self.store, self.id)
        return self.wait(timeout) if timeout != 0 else self.refresh().outcome

    def resume(self, *, budget: int | None = None, within_s: float | None = None) -> Run:
        """Lets a run that ended badly go on; `wait` or `detach` looks after it. `budget` is for
        everything since it began, in micro-dollars; `within_s` a new deadline, from now."""
        orders.resume(self.store, self.id, budget=budget, within_s=within_s)
        return self.refresh()

    def detach(self) -> Path:
        """Leaves it to a process in the background; the file that this writes to."""
        return follow.leave(self.store, self.id)

    def logs(self, leg: int | None = None, rank: int | None = None) -> Iterator[Line]:
        """What its job has printed so far, leg after leg and machine after machine."""
        from tradewind.api.logs import Reader, check_leg

        self._sight.look()
        check_leg(self.id, self.state, leg)
        reader = Reader(self.store, self.id, leg=leg, rank=rank)
        return reader.lines(self.state, last=True)

    def outputs(self) -> list[Output]:
        """The output files of its job that its machines have brought so far."""
        from tradewind.api import outputs

        self._sight.look()
        return outputs.listed(self.store, self.id, self.state)

    def fetch(self, to: str | Path, *paths: str, rank: int = 0, force: bool = False) -> list[Path]:
        """Output files of one machine into a folder: those that the globs name, or all."""
        from tradewind.api import outputs

        wanted = outputs.chosen(self.outputs(), paths, rank)
        done = outputs.fetch(self.store, self.id, wanted, Path(to), force=force)
        return [each.path for each in done]

    def report(self) -> Report:
        """All that there is to say of it, in figures; `tradewind.web.report_page` makes a page of
        them."""
        from tradewind.api.reporting import report_of

        self._sight.look()
        return report_of(self._sight)

    @property
    def _leg(self) -> int:
        return self.state.leg.number if self.state.leg else 0


def run(
    what: str | Path | Workload | Plans | Saved,
    *,
    local: bool | None = None,
    on: str | Sequence[str] | None = None,
    regions: Sequence[str] = (),
    nodes: int | None = None,
    folder: str | Path | None = None,
    project: str = "",
    tags: Mapping[str, str] | None = None,
    store: Where = None,
    chaos: str | float | None = None,
    trace: str | None = None,
    trace_speed: float = 1.0,
    detach: bool = False,
    attended: bool = False,
    not_before: str | None = None,
    windows: Sequence[str] = (),
    on_progress: Callable[[Run], None] | None = None,
) -> Run:
    """Carries out a plan, and returns the run when it is over; with `detach`, at once.

    `what` is a workload, the path of a workload file or of a saved plan, or what `tradewind.plan`
    answers. `folder` is what the job needs; without one, the file's own, or the present one.
    `on` names clouds to rent from, `regions` where in them, and `local` among them this computer
    too; without one it is this computer alone.
    `attended` says, with `detach`, that a controller looks in any case: without one a budget is
    refused on clouds that bill a machine until a controller ends it.
    `not_before` and `windows` say when its machines may be up, as `--not-before` and `--window`.
    `on_progress` is called with the run about every second. Interrupted by Ctrl-C, the run is left
    to a process in the background."""
    from tradewind.api import attended as unended
    from tradewind.api import rented, scheduled, submit, wishes
    from tradewind.base import clock
    from tradewind.base.units import parse_duration
    from tradewind.providers import registry

    opened = _opened(store)
    speed = 1.0 if trace is None else trace_speed
    named = registry.chosen([on] if isinstance(on, str) else on or ())
    rents = named and named != (registry.LOCAL,)
    cloud = rented.On(opened, named, regions) if rents else None
    when = None
    if windows or not_before is not None:
        when = scheduled.schedule(windows, not_before, clock.now())
    spec = submit.spec_of(
        submit.wanted(what, cloud, when),
        local=cloud is None if local is None else local,
        on=cloud,
        nodes=nodes,
        project=project,
        tags=tags,
        speed=speed,
        when=when,
    )
    spec, _ = submit.as_begun(spec)
    if detach:
        unended.check(spec, attended=attended)
    wish: wishes.Wish | None = None
    if chaos is not None:
        wish = wishes.chaos(parse_duration(chaos) if isinstance(chaos, str) else chaos, spec)
    elif trace is not None:
        wish = wishes.traced(trace, spec)
    if folder is None:
        folder = Path(what).absolute().parent if isinstance(what, str | Path) else Path.cwd()
    kept_back = submit.not_sent(Path(folder), spec.job.get("include"), spec.job.get("outputs"))
    if kept_back is not None:
        warnings.warn(
            f"not sent, because git ignores them: {kept_back[0]}; {kept_back[1]}", stacklevel=2
        )
    started = Run(submit.submit(opened, spec, Path(folder), wish), opened)
    if detach:
        started.detach()
        return started
    try:
        started.wait(on_progress=on_progress)
    except KeyboardInterrupt:
        started.detach()
        raise
    return started


def runs(store: Where = None, *, live: bool = False) -> list[Run]:
    """All runs of a store, the oldest first; `live`: those that go on. BadFile where a journal is
    damaged."""
    opened = _opened(store)
    ids = runs_store.live_ids(opened) if live else runs_store.run_ids(opened)
    loaded, troubles = runs_store.load_all(opened, runs_store.by_age(ids))
    if troubles:
        raise troubles[0][1]
    return [Run._read(opened, each) for each in loaded if each.state.spec]


def _opened(store: Where) -> Store:
    return stores.open(store) if store is None or isinstance(store, str | Path) else store
