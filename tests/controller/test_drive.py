"""A pass with real threads: many runs at once, and one that fails leaves the others alone."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from msgspec import json

from tradewind.base import clock, steps
from tradewind.base.errors import BadFile, SourceFailed, TradewindError
from tradewind.controller import Controller, drive
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import LaunchRefused, LegRequested, LegUp, MachinesFound
from tradewind.model.run import Facts, Heartbeat, Listing, Machine, Request, Spec, Way
from tradewind.providers.base import Refused
from tradewind.store.base import MOST_READ
from tradewind.store.memory import MemoryStore

RUNS = [f"run-{number:03d}" for number in range(200)]


class FakeCloud:
    """Sells to everybody but those in `broke`, by idempotency token."""

    def __init__(self, broke: Sequence[str] = ()) -> None:
        self._broke = broke
        self._lock = threading.Lock()
        self.machines: dict[str, Machine] = {}
        self.terminated: list[str] = []

    def list_machines(self) -> Listing:
        with self._lock:
            return Listing(at_s=100, machines=tuple(self.machines.values()))

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        if request.run_id in self._broke:
            raise Refused("no_quota", "nothing for you")
        name = f"m-{request.launch_id}"
        machine = Machine(
            machine_id=name, launch_id=request.launch_id, run_id=request.run_id, leg=request.leg,
            rank=0, launched_s=100,
        )  # fmt: skip
        with self._lock:
            return [self.machines.setdefault(name, machine)]

    def terminate(self, machine_ids: Sequence[str]) -> None:
        with self._lock:
            self.terminated += machine_ids
            for name in machine_ids:
                self.machines.pop(name, None)


class Brittle(MemoryStore):
    """Fails for a run on request, in the way that is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: dict[str, Exception] = {}

    def get(self, key: str, *, most: int = MOST_READ) -> bytes:
        for run_id, error in self.errors.items():
            if key.startswith(f"runs/{run_id}/"):
                raise error
        return super().get(key, most=most)


def controller(store: MemoryStore, cloud: FakeCloud, runs: Sequence[str] = RUNS) -> Controller:
    """With all runs submitted."""
    made = Controller("ctl-1", ("cloud",), clock=lambda: 1e9, watch=clock.stopwatch)
    way = Way(
        provider="cloud", region="r1", zone="r1-a", instance_type="small", market="on_demand",
        nodes=1, price=1_000_000, rate=1.0, start_s=60.0, facts=Facts(tokens=True),
    )  # fmt: skip
    for run_id in runs:
        spec = Spec(name=run_id, work=1000.0, ways=(way,))
        assert steps.run(made.submit(run_id, spec), drive.performer(store, {"cloud": cloud}))
    return made


def kinds(store: MemoryStore, run_id: str) -> list[type]:
    return [type(event) for commit in journal.read(store, run_id) for event in commit.events]


def report(store: MemoryStore, cloud: FakeCloud) -> None:
    for machine in cloud.machines.values():
        beat = Heartbeat(
            machine_id=machine.machine_id, leg=1, beat=1, uptime_s=60.0, doing="working"
        )
        store.replace(places.heartbeat(machine.run_id, machine.machine_id), json.encode(beat))


@pytest.mark.parametrize("workers", [1, 3, 64, 1000])
def test_many_runs_come_up_at_once(workers: int) -> None:
    store, cloud = MemoryStore(), FakeCloud()
    made = controller(store, cloud)
    perform = drive.performer(store, {"cloud": cloud})
    assert drive.whole_pass(made, perform, workers=workers) == []
    assert {machine.run_id for machine in cloud.machines.values()} == set(RUNS)
    assert len(cloud.machines) == len(RUNS)
    report(store, cloud)
    assert drive.whole_pass(made, perform, workers=workers) == []
    for run_id in RUNS:
        assert kinds(store, run_id)[1:] == [LegRequested, MachinesFound, LegUp]
    before = store.list_after("")
    assert drive.whole_pass(made, perform, workers=workers) == []
    assert store.list_after("") == before
    assert len(made.memory.runs) == len(RUNS)


def test_the_same_comes_of_it_as_in_turn() -> None:
    together, apart = MemoryStore(), MemoryStore()
    for store in (together, apart):
        cloud = FakeCloud(broke=RUNS[::7])
        made = controller(store, cloud)
        perform = drive.performer(store, {"cloud": cloud})
        if store is together:
            drive.whole_pass(made, perform)
        else:
            steps.run(made.whole_pass(), perform)
    keys = together.list_after("")
    assert keys == apart.list_after("")
    assert together.get_many(keys) == apart.get_many(keys)
    assert LaunchRefused in kinds(together, RUNS[7])


def test_failing_runs_leave_the_others_alone() -> None:
    store, cloud = Brittle(), FakeCloud()
    made = controller(store, cloud)
    perform = drive.performer(store, {"cloud": cloud})
    assert drive.whole_pass(made, perform) == []
    report(store, cloud)
    store.errors = {
        RUNS[150]: SourceFailed("no answer"),
        RUNS[3]: BadFile("damaged"),
        RUNS[77]: KeyError("a bug"),
    }
    troubles = drive.whole_pass(made, perform)
    assert [run_id for run_id, _ in troubles] == [RUNS[3], RUNS[77], RUNS[150]]
    assert [type(error) for _, error in troubles] == [BadFile, TradewindError, SourceFailed]
    assert isinstance(troubles[1][1].__cause__, KeyError)
    assert RUNS[77] in troubles[1][1].message
    failed, store.errors = set(store.errors), {}
    for run_id in RUNS:
        assert (LegUp in kinds(store, run_id)) == (run_id not in failed)
    assert drive.whole_pass(made, perform) == []
    assert all(LegUp in kinds(store, run_id) for run_id in RUNS)


def test_a_look_that_fails_touches_no_run() -> None:
    class Unlisted(MemoryStore):
        def list_after(self, prefix: str, after: str = "") -> list[str]:
            if prefix == places.LIVE:
                raise SourceFailed("no answer")
            return super().list_after(prefix, after)

    store, cloud = Unlisted(), FakeCloud()
    made = controller(store, cloud, RUNS[:3])
    with pytest.raises(SourceFailed):
        drive.whole_pass(made, drive.performer(store, {"cloud": cloud}))
    assert not cloud.machines


def test_nothing_to_do() -> None:
    store, cloud = MemoryStore(), FakeCloud()
    made = controller(store, cloud, [])
    assert drive.whole_pass(made, drive.performer(store, {"cloud": cloud})) == []


def test_an_interruption_begins_no_more_ticks() -> None:
    """As Ctrl-C does it: it is raised while the pass waits."""

    class Interrupted(MemoryStore):
        asked = 0
        patience = 0

        def get(self, key: str, *, most: int = MOST_READ) -> bytes:
            self.asked += 1
            if self.asked == self.patience:
                raise KeyboardInterrupt
            return super().get(key, most=most)

    store, cloud = Interrupted(), FakeCloud()
    made = controller(store, cloud)
    perform = drive.performer(store, {"cloud": cloud})
    drive.whole_pass(made, perform)
    store.asked, store.patience = 0, 20
    with pytest.raises(KeyboardInterrupt):
        drive.whole_pass(made, perform, workers=1)
    assert store.asked == 20


def test_machines_are_terminated_at_their_provider() -> None:
    store, cloud = MemoryStore(), FakeCloud()
    made = controller(store, cloud, RUNS[:5])
    perform = drive.performer(store, {"cloud": cloud})
    drive.whole_pass(made, perform)
    bought = sorted(cloud.machines)
    for run_id in RUNS[:5]:
        assert steps.run(made.cancel(run_id, "no longer wanted"), perform)
    assert drive.whole_pass(made, perform) == []
    assert sorted(cloud.terminated) == bought
