"""Sweeping ends what nobody claims, and touches nothing that lives."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.lifecycle.builders import SPEC, WAY, a_request, requested
from tests.providers.local_machines import a_home, command, pids
from tradewind import store as stores
from tradewind.api import wishes
from tradewind.base import clock, steps
from tradewind.controller.controller import Controller
from tradewind.controller.drive import performer
from tradewind.journal import journal, runs_store
from tradewind.model import places
from tradewind.model.event import Closed, Ended, Event, LegOver, MachinesFound, Submitted
from tradewind.model.run import Machine
from tradewind.model.timing import GRACE_S
from tradewind.providers.local import processes
from tradewind.providers.local.provider import FACTS, LISTED_S, LocalProvider
from tradewind.store.base import Store
from tradewind.upkeep import sweep
from tradewind.upkeep.sweep import Found

OLD = "count-019000000000-abcdef"
HERE = replace(WAY, provider="local", facts=FACTS)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRADEWIND_NOW", raising=False)
    with a_home(tmp_path / "home") as path:
        yield path


def provider_in(home: Path, later_s: float = 0.0) -> LocalProvider:
    """One that has its clock so far ahead."""
    url = stores.open().url
    return LocalProvider(
        home, url, command=command(), own_only=True, clock=lambda: clock.epoch() + later_s
    )


def found_in(home: Path, later_s: float = 0.0) -> Found:
    store = stores.open()
    providers = {"local": provider_in(home, later_s)}
    controller = Controller("w", ("local",), clock=clock.epoch, watch=clock.epoch)
    return sweep.find(store, providers, controller, performer(store, providers))


def swept(home: Path, later_s: float = 0.0) -> list[tuple[str, str]]:
    return [(item.kind, item.name) for item in found_in(home, later_s).items if item.act()]


def record(store: Store, run_id: str, *events: Event, days_ago: int = 0) -> None:
    at = clock.now() - timedelta(days=days_ago)
    number = len(journal.read(store, run_id)) + 1
    assert journal.append(store, run_id, number, writer="w", at=at, events=events)


def closed(
    store: Store, run_id: str, *machines: Machine, outcome: str = "succeeded", days_ago: int = 0
) -> None:
    """A run on one leg that is over and closed."""
    spec = replace(SPEC, ways=(HERE,))
    ask = requested(way=HERE)
    ask = replace(ask, request=replace(ask.request, run_id=run_id, launch_id=f"{run_id}-1"))
    record(store, run_id, Submitted(run_id=run_id, spec=spec), ask, days_ago=days_ago)
    if machines:
        record(store, run_id, MachinesFound(machines=machines, reason="r"), days_ago=days_ago)
    record(store, run_id, LegOver(leg=1, cause="gone", reason="r"), days_ago=days_ago)
    ends: list[Event] = [Ended(outcome=outcome, reason="r"), Closed(reason="r")]
    record(store, run_id, *ends, days_ago=days_ago)


def test_a_machine_of_no_run_goes_after_the_grace_time(home: Path) -> None:
    [machine] = provider_in(home).launch(a_request(), 1)
    young = found_in(home)
    assert young.items == []
    assert [stray.machine.machine_id for stray in young.waiting] == [machine.machine_id]
    assert swept(home, GRACE_S + 1) == [("machine", machine.machine_id)]
    [seen] = provider_in(home).list_machines().machines
    assert seen.ended_s is not None
    assert found_in(home, GRACE_S + 1).items == []


def test_machines_of_live_runs_are_left_alone(home: Path) -> None:
    store, run_id = stores.open(), clock.new_id("count")
    store.create(places.live(run_id), b"{}")
    ask = a_request(way=HERE, run_id=run_id)
    record(
        store,
        run_id,
        Submitted(run_id=run_id, spec=SPEC),
        replace(requested(way=HERE), request=ask),
    )
    [machine] = provider_in(home).launch(ask, 1)
    wishes.keep(run_id, wishes.ChaosWish(mean_life_s=1))
    found = found_in(home, GRACE_S + 1)
    assert (found.items, found.waiting) == ([], [])
    assert machine.ended_s is None


def test_machines_of_a_run_that_is_over_are_ended_and_accounted_for(home: Path) -> None:
    store, run_id = stores.open(), clock.new_id("count")
    ask = replace(a_request(way=HERE, run_id=run_id), launch_id=f"{run_id}-1")
    closed(store, run_id)
    [machine] = provider_in(home).launch(ask, 1)
    assert swept(home) == [("machine", machine.machine_id)]
    assert [m.ended_s is None for m in provider_in(home).list_machines().machines] == [False]
    assert machine.machine_id in runs_store.load(store, run_id).state.machines


def test_whoever_is_late_with_submitting_is_told(home: Path) -> None:
    """And what they had sent is gone."""
    store = stores.open()
    store.create(places.bundle(OLD), b"x")
    store.create(places.live(OLD), b"{}")
    new = clock.new_id("count")
    store.create(places.bundle(new), b"x")
    assert swept(home) == [("submission", OLD)]
    assert runs_store.load(store, OLD).state.outcome == "abandoned"
    controller = Controller("late", (), clock=clock.epoch, watch=clock.epoch)
    assert not steps.run(controller.submit(OLD, SPEC), performer(store, {}))
    assert steps.run(controller.submit(new, SPEC), performer(store, {}))
    assert store.list_after(places.run(OLD) + "job/") == []
    assert swept(home) == []


def test_whoever_submits_first_keeps_the_run(home: Path) -> None:
    store = stores.open()
    store.create(places.bundle(OLD), b"x")
    [item] = found_in(home).items
    controller = Controller("quick", (), clock=clock.epoch, watch=clock.epoch)
    assert steps.run(controller.submit(OLD, SPEC), performer(store, {}))
    assert not item.act()
    assert store.get(places.bundle(OLD)) == b"x"
    assert runs_store.load(store, OLD).state.phase == "waiting"


def test_tokens_go_once_their_run_is_over(home: Path) -> None:
    store, run_id = stores.open(), clock.new_id("count")
    ask = replace(a_request(way=HERE, run_id=run_id), launch_id=f"{run_id}-1")
    provider = provider_in(home)
    [machine] = provider.launch(ask, 1)
    provider.terminate([machine.machine_id])
    provider_in(home, LISTED_S + 60).list_machines()  # which forgets it
    assert not list((home / "local" / "machines").iterdir())
    token = home / "local" / "tokens" / f"{run_id}-1"
    assert swept(home) == []
    assert token.exists()
    closed(store, run_id)
    assert swept(home) == [("token", f"{run_id}-1")]
    assert not token.exists()


def test_processes_that_outlived_their_machine(home: Path) -> None:
    provider = provider_in(home)
    [machine] = provider.launch(a_request(), 1)
    folder = home.resolve() / "local" / "machines" / machine.machine_id
    provider.terminate([machine.machine_id])
    eventually(lambda: pids(folder) == [])
    hidden = subprocess.Popen(
        [sys.executable, "-S", "-E", "-c", "import signal; signal.pause()"],
        env=processes.marked(os.environ, folder),
    )
    assert found_in(home).items == []  # a leaving host would look like this
    assert swept(home, 120) == [("process", machine.machine_id)]
    assert hidden.wait(60) == -9


def test_wishes_and_logs_stay_while_a_run_can_be_resumed(home: Path) -> None:
    store = stores.open()
    runs = {name: clock.new_id(name) for name in ("good", "bad", "long-bad", "elsewhere")}
    closed(store, runs["good"])
    closed(store, runs["bad"], outcome="failed")
    closed(store, runs["long-bad"], outcome="failed", days_ago=30)
    for run_id in runs.values():
        wishes.keep(run_id, wishes.ChaosWish(mean_life_s=1))
    assert swept(home) == [("wish", runs["good"]), ("wish", runs["long-bad"])]
    assert wishes.wish_of(runs["bad"])
    assert wishes.wish_of(runs["elsewhere"])
