"""A run of `local` starts where it was submitted, and nowhere else, whatever its store says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.cli.local_jobs import cleaned, job
from tests.lifecycle.builders import a_request
from tradewind import store as stores
from tradewind import workload
from tradewind.api import fleet, orders, owned, submit
from tradewind.api.follow import Sight
from tradewind.base import clock
from tradewind.journal import journal
from tradewind.model import places
from tradewind.model.event import Commit, LegRequested, Submitted
from tradewind.store.base import Store


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Path, Path]]:
    monkeypatch.delenv("TRADEWIND_NOW", raising=False)
    with cleaned(tmp_path / "mine") as mine, cleaned(tmp_path / "theirs") as theirs:
        yield mine, theirs


def submitted(store: Store, tmp_path: Path, command: str) -> str:
    work = workload.load(str(job(tmp_path / "job", command)))
    spec = submit.spec_of(submit.wanted(work), local=True)
    return submit.submit(store, spec, tmp_path / "job")


def looked_at(store: Store, run_id: str, times: int = 40) -> Sight:
    """Until it is over, or for some passes: each of them would have started it."""
    loop, sight = fleet.loop(store), Sight(store, run_id)
    for _ in range(times):
        assert loop.tick() == []
        sight.look()
        if sight.outcome:
            break
        clock.sleep(0.1)
    return sight


def test_a_run_that_others_submitted_starts_nothing_here(
    homes: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = homes
    proof = tmp_path / "proof"
    store = stores.open(str(tmp_path / "store"))
    monkeypatch.setenv("TRADEWIND_HOME", str(theirs))
    run_id = submitted(store, tmp_path, f"echo ran > {proof}")
    monkeypatch.setenv("TRADEWIND_HOME", str(mine))
    assert looked_at(store, run_id, 5).state.phase == "waiting"
    assert not proof.exists()
    assert list((mine / "local").rglob("*.json")) == []
    spec = looked_at(store, run_id, 1).state.spec
    assert "submitted from another home" in owned.elsewhere(run_id, spec)
    # Also where its purchase is recorded already, and anybody might make it.
    assert spec is not None
    asked = LegRequested(request=a_request(1, spec.ways[0], run_id), reason="it is the cheapest")
    journal.append(store, run_id, 2, writer="w", at=clock.now(), events=[asked])
    assert looked_at(store, run_id, 5).state.phase == "active"
    assert not proof.exists()
    # But whoever has the store may stop it, and its own home goes on with it.
    monkeypatch.setenv("TRADEWIND_HOME", str(theirs))
    assert owned.elsewhere(run_id, spec) == ""
    assert looked_at(store, run_id, 600).outcome == "succeeded"
    assert proof.read_text() == "ran\n"


def test_anyone_with_the_store_may_stop_it(
    homes: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, theirs = homes
    store = stores.open(str(tmp_path / "store"))
    monkeypatch.setenv("TRADEWIND_HOME", str(theirs))
    run_id = submitted(store, tmp_path, "sleep 300")
    monkeypatch.setenv("TRADEWIND_HOME", str(mine))
    assert orders.stop(store, run_id)
    assert looked_at(store, run_id).outcome == "cancelled"


def test_a_job_that_was_changed_in_the_store_is_not_run(
    homes: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, _ = homes
    proof = tmp_path / "proof"
    store = stores.open(str(tmp_path / "store"))
    monkeypatch.setenv("TRADEWIND_HOME", str(mine))
    run_id = submitted(store, tmp_path, "true")
    key = places.run(run_id) + "journal/" + "1".zfill(20) + ".json"
    commit = json.decode(store.get(key), type=Commit)
    (event,) = commit.events
    assert isinstance(event, Submitted)
    job = event.spec.job | {"command": f"echo ran > {proof}"}
    changed = replace(event, spec=replace(event.spec, job=job, tries=1))
    store.replace(key, json.encode(replace(commit, events=(changed,))))
    sight = looked_at(store, run_id, 600)
    assert sight.outcome == "failed"
    assert "not the one that was submitted from this computer" in sight.state.tail
    assert not proof.exists()


def test_a_name_that_leads_elsewhere_is_nobodys(homes: tuple[Path, Path]) -> None:
    assert owned.job_sha256("../../../etc/passwd") is None
    assert not owned.may_use("..", "local")
    assert owned.may_use("..", "aws")
