"""Trainings on machines of Compute Engine that are real hosts: launched, booted by their startup
script, fed from Cloud Storage, taken away, bought again elsewhere, finished, paid, and gone."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google.places import zones
from tests.eventually import eventually
from tests.system.google import REGION, OnGoogle, a_world
from tests.system.google_books import is_paid_and_gone
from tests.system.test_torchrun import torchrun
from tests.torch.test_tiny_gpt import EXAMPLE, weights
from tradewind.api import rented, submit
from tradewind.model.event import LaunchRefused, LegOver, LegRequested, LegUp
from tradewind.model.run import Machine

pytestmark = pytest.mark.system
STEPS = 200
# On one machine it would be too late; two are planned.
WORK = f"""
name: tiny-gpt
work: {{on: 8xH100-SXM, step: 48s, steps: {STEPS}, memory: 2GB, scales: true}}
checkpoint: {{every: 5s, size: 3MB}}
limits:
  {{deadline: 160m, confidence: 80%, budget: $400, accelerators: [H100-SXM], max_accelerators: 16}}
run:
  command: torchrun --nproc-per-node 1 train.py --steps {STEPS}
  env: {{PATH: "BIN:/usr/bin:/bin"}}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnGoogle]:
    with a_world(tmp_path_factory.mktemp("world")) as made:
        yield made


@pytest.fixture
def world(shared: OnGoogle) -> Iterator[OnGoogle]:
    """One for all of them, each with a run of its own."""
    yield shared
    shared.cloud.dials(storage_fails_every=0)
    for zone in zones(REGION):
        shared.cloud.capacity(None, zone=zone)
    shared.cloud.end_all()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of the same training by two processes of this computer, left alone."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("alone") / "job")
    assert torchrun(folder, "train.py", "--steps", str(STEPS)).wait(300) == 0
    return weights((folder / "log").read_text())


def submitted(world: OnGoogle, folder: Path) -> str:
    """As `tradewind run work.yaml --on gcp` does it."""
    path = folder / "work.yaml"
    path.write_text(WORK.replace("BIN", str(Path(sys.executable).parent)))
    on = rented.On(world.store, ["gcp"])
    wanted = submit.wanted(str(path), on)
    assert (wanted.plan.nodes, set(wanted.plan.markets)) == (2, {"spot", "on_demand"})
    spec = submit.spec_of(wanted, local=False, on=on)
    assert len({way.zone for way in spec.ways}) > 1
    # Flex-start is cheaper here, and nobody preempts it.
    spec = replace(spec, ways=tuple(way for way in spec.ways if not way.facts.queues))
    return submit.submit(world.store, world.bills(spec), EXAMPLE)


def test_preempted_and_resumed_in_another_zone(
    world: OnGoogle, tmp_path: Path, undisturbed: str
) -> None:
    run_id = submitted(world, tmp_path)
    controller = world.watch(run_id)
    eventually(lambda: world.saved(run_id), within_s=240)
    (zone,) = {each["zone"] for each in world.billed(run_id).values()}
    world.cloud.capacity(0, zone=zone)
    for name in world.machines(run_id):
        world.cloud.interrupt(name)
    loaded = world.finished(run_id)
    controller.wait(60)

    events = [event for commit in loaded.commits for event in commit.events]
    asked = {e.request.leg: e.request.way for e in events if isinstance(e, LegRequested)}
    up = [asked[e.leg] for e in events if isinstance(e, LegUp)]
    assert len(up) >= 2  # a slow computer may be taken for one that is lost
    assert {way.market for way in up} == {"spot"}
    assert up[0].zone == zone
    assert zone not in {way.zone for way in up[1:]}
    assert [e.cause for e in events if isinstance(e, LegOver)][-1] == "finished"
    assert "interrupted" in [e.cause for e in events if isinstance(e, LegOver)]
    if any(way.zone == zone for way in list(asked.values())[1:]):
        assert "no_capacity" in [e.kind for e in events if isinstance(e, LaunchRefused)]
    assert "resuming from step" in world.output(run_id)
    assert weights(world.output(run_id)) == undisturbed
    is_paid_and_gone(world, run_id)


def machines_of(world: OnGoogle, run_id: str) -> list[Machine]:
    return [each.machine for each in world.loaded(run_id).state.machines.values()]


def are_bought_once(world: OnGoogle, run_id: str) -> None:
    """Two for each leg, however often they were asked for."""
    each = Counter(machine.leg for machine in machines_of(world, run_id))
    assert set(each.values()) == {2}, world.told(run_id)


@pytest.mark.long
def test_controllers_are_killed_again_and_again(world: OnGoogle, undisturbed: str) -> None:
    run_id = world.submit(STEPS)
    world.kill_controllers(run_id)
    last = world.watch(run_id, pass_s=0.5)
    world.finished(run_id)
    last.wait(90)
    assert weights(world.output(run_id)) == undisturbed
    are_bought_once(world, run_id)
    is_paid_and_gone(world, run_id)


@pytest.mark.long
def test_two_controllers_lost_answers_and_a_store_that_fails_now_and_then(
    world: OnGoogle, undisturbed: str
) -> None:
    """Answers to the purchase, after it was carried out; and each twentieth request to the store,
    half of them after they were carried out."""
    world.cloud.dials(storage_fails_every=20)
    world.cloud.lose("compute.instances.bulkInsert", count=2)
    run_id = world.submit(STEPS)
    both = [world.watch(run_id, name) for name in ("one", "two")]
    eventually(lambda: world.saved(run_id), within_s=240)
    for name in world.machines(run_id):
        world.cloud.warn(name)  # of maintenance
    eventually(lambda: any(beat.at_risk for beat in world.beats(run_id)), within_s=60)
    world.finished(run_id)
    for controller in both:
        controller.wait(90)
    assert weights(world.output(run_id)) == undisturbed
    are_bought_once(world, run_id)
    is_paid_and_gone(world, run_id)
