"""Runs from Python, by real processes of this computer."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tradewind
from tests.cli.local_jobs import cleaned, job
from tradewind import store as stores
from tradewind import workload
from tradewind.base import clock, errors
from tradewind.model.event import Ended, Submitted


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TRADEWIND_NOW", raising=False)
    with cleaned(tmp_path / "home") as path:
        yield path


def test_a_run_from_its_file_to_its_end(
    home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """And nothing is printed."""
    path = job(tmp_path / "job")
    seen: list[tuple[str, float]] = []
    run = tradewind.run(
        path,
        project="p",
        tags={"team": "blue"},
        on_progress=lambda run: seen.append((run.phase, run.step)),
    )
    assert run.outcome == "succeeded"
    assert run.phase == "closed"
    assert run.name == "count"
    assert run.cost > 0
    assert {phase for phase, _ in seen} >= {"active", "closed"}
    assert [leg.cause for leg in run.legs] == ["finished"]
    events = [event for _, event in run.events]
    assert isinstance(events[0], Submitted)
    assert any(isinstance(event, Ended) for event in events)
    lines = list(run.logs())
    assert [line.text for line in lines] == ["one", "two", "three"]
    assert [line.offset for line in lines] == [0, 4, 8]
    assert {(line.leg, line.rank) for line in lines} == {(1, 0)}
    assert run.spec is not None
    assert run.spec.project == "p"
    assert run.spec.tags == {"team": "blue"}
    assert "succeeded" in repr(run)
    assert run.id in repr(run)
    [found] = tradewind.runs()
    assert found.id == run.id
    assert tradewind.runs(live=True) == []
    assert tradewind.Run(run.id[:10]).cost == run.cost
    assert run.stop() == "succeeded"
    with pytest.raises(errors.InvalidValue, match="cannot be resumed"):
        run.resume()
    with pytest.raises(errors.NotFound, match="no leg 7"):
        run.logs(leg=7)
    assert capfd.readouterr() == ("", "")


@pytest.mark.system
def test_stop_resume_and_waiting_for_a_while(home: Path, tmp_path: Path) -> None:
    work = workload.load(str(job(tmp_path / "job", "sleep 300")))
    spec_folder = tmp_path / "job"
    run = tradewind.run(work, folder=spec_folder, store=tmp_path / "elsewhere", detach=True)
    assert run.outcome == ""
    assert run.wait(timeout=0.01) == ""
    assert run.stop() == "cancelled"
    assert tradewind.runs() == []
    assert [each.outcome for each in tradewind.runs(tmp_path / "elsewhere")] == ["cancelled"]
    assert run.resume(within_s=3600).outcome == ""
    assert run.stop(timeout=0) == ""
    assert run.wait() == "cancelled"


@pytest.mark.system
def test_a_job_that_fails_is_no_exception(home: Path, tmp_path: Path) -> None:
    run = tradewind.run(job(tmp_path / "job", "echo no; exit 3"))
    assert run.outcome == "failed"


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nowhere.yaml", "no file nowhere.yaml"),
        (7, "int is nothing that can be run"),
    ],
)
def test_what_cannot_be_run(home: Path, what: object, words: str) -> None:
    with pytest.raises(errors.TradewindError, match=words):
        tradewind.run(what)  # type: ignore[arg-type]


def test_what_cannot_be_rented(home: Path, tmp_path: Path) -> None:
    path = job(tmp_path / "job")
    with pytest.raises(errors.InvalidValue, match="no target: add --on"):
        tradewind.run(path, local=False)
    with pytest.raises(errors.InvalidValue, match="machines of azure cannot be rented"):
        tradewind.run(path, on="azure")
    with pytest.raises(errors.InvalidValue, match="machines of AWS cannot reach the store file://"):
        tradewind.run(path, on="aws")
    with pytest.raises(errors.InvalidValue, match="too many"):
        tradewind.run(path, nodes=99)
    found = tradewind.plan(workload.load(str(path)))
    assert found.best is not None
    with pytest.raises(errors.InvalidValue, match="does not say what to run"):
        tradewind.run(found.best)  # type: ignore[arg-type]
    assert stores.open().folders("runs/") == []


def test_what_the_package_offers_are_plain_functions() -> None:
    """Whichever module was imported before: no package has one of their names."""
    names = ("run", "runs", "plan")
    code = (
        "import tradewind.lifecycle, tradewind.planning.planner, tradewind.journal.runs_store\n"
        "import types, tradewind\n"
        f"assert all(type(getattr(tradewind, n)) is types.FunctionType for n in {names})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "live" in inspect.signature(tradewind.runs).parameters


def test_more_machines_than_the_plan_has_are_predicted_to_cost_more(tmp_path: Path) -> None:
    from tradewind.api import submit

    wanted = submit.wanted(job(tmp_path / "job"))
    one, three = (submit.spec_of(wanted, local=True, nodes=nodes) for nodes in (1, 3))
    assert one.predicted_cost
    assert three.predicted_cost == 3 * one.predicted_cost


def test_every_way_is_there_once() -> None:
    from tradewind.api import submit
    from tradewind.planning import ways

    example = Path(__file__).parents[2] / "examples" / "pretrain-1.3b" / "work.yaml"
    wanted = submit.wanted(example)
    assert wanted.others
    spec = ways.spec(wanted.plan, wanted.workload, clock.now(), others=wanted.others)
    assert len({(way.what, way.nodes) for way in spec.ways}) == len(spec.ways)
