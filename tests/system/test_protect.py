"""Limits that hold for real processes: doing nothing, taking too long, a project without money."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.test_run import home, over, printed, tradewind
from tests.eventually import eventually
from tradewind import store as stores
from tradewind.journal import runs_store
from tradewind.model.event import LegDraining, LegRequested, Warned

__all__ = ["home"]
pytestmark = pytest.mark.system
SAVES = """trap "echo saved; exit 0" TERM; while true; do sleep 0.2; done"""


def begun(place: Path, run: str, *options: str) -> str:
    place.mkdir()
    (place / "work.yaml").write_text(
        f"name: {place.name}\nwork: {{hours: 1, on: 1xA100-80GB}}\nrun:\n{run}"
    )
    told = tradewind(
        "run", str(place / "work.yaml"), "--local", "--yes", "--detach", "--json", *options
    )
    name: str = json.loads(told)["run"]
    return name


def outcome(run: str) -> str:
    return runs_store.load(stores.open(), run).state.outcome


@pytest.mark.long
def test_a_job_that_does_nothing_is_stopped_if_asked(home: Path, tmp_path: Path) -> None:
    sleeps = begun(tmp_path / "sleeps", "  {command: sleep 1000, idle: 20s, on_idle: stop}\n")
    told = begun(tmp_path / "told", "  {command: sleep 60, idle: 20s}\n")
    busy = begun(
        tmp_path / "busy",
        "  idle: 20s\n  on_idle: stop\n  command: timeout 45 sh -c 'while :; do :; done' || true\n",
    )
    eventually(lambda: all(over(run) for run in (sleeps, told, busy)), within_s=150)
    assert [outcome(run) for run in (sleeps, told, busy)] == ["idle", "succeeded", "succeeded"]
    events = list(runs_store.load(stores.open(), told).events)
    assert [e.about for e in events if isinstance(e, Warned)] == ["idle"]
    assert "did nothing" in tradewind("show", sleeps)


@pytest.mark.long
def test_a_run_ends_when_its_machines_were_up_long_enough(home: Path, tmp_path: Path) -> None:
    run = begun(tmp_path / "long", f"  max_duration: 1m15s\n  command: |\n    {SAVES}\n")
    eventually(lambda: over(run), within_s=150)
    assert outcome(run) == "too_long"
    loaded = runs_store.load(stores.open(), run)
    # A controller that comes late finds that the machine has seen to it by itself.
    assert {e.cause for e in loaded.events if isinstance(e, LegDraining)} <= {"too_long"}
    assert "saved" in printed(run)
    (rented,) = loaded.state.machines.values()
    assert rented.machine.ended_s is not None


def test_a_project_without_money_waits_for_it(home: Path, tmp_path: Path) -> None:
    """And goes on by itself when its budget is raised."""
    home.mkdir(parents=True)
    (home / "budgets.yaml").write_text("projects: {nlp: {month: $0.10}}\n")
    run = begun(tmp_path / "poor", "  {command: echo done}\n", "--project", "nlp")
    other = begun(tmp_path / "rich", "  {command: echo done}\n", "--project", "vision")
    eventually(lambda: over(other), within_s=60)
    eventually(lambda: "waiting for the project's budget" in tradewind("show", run))
    events = runs_store.load(stores.open(), run).events
    assert not any(isinstance(event, LegRequested) for event in events)
    assert outcome(run) == ""
    (home / "budgets.yaml").write_text("projects: {nlp: {month: $100}}\n")
    eventually(lambda: over(run), within_s=60)
    assert outcome(run) == "succeeded"
