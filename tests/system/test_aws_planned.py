"""The whole way on AWS: planned from a workload file, rented, taken as a measured trace of spot
capacity tells, bought again where there is some, finished on time, paid, and gone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.eventually import eventually
from tests.system.books import DISK, is_paid_and_gone
from tests.system.rented import Rented, a_world
from tests.system.test_torchrun import torchrun
from tests.torch.test_tiny_gpt import EXAMPLE, weights
from tradewind.api import rented, submit
from tradewind.model.event import Ended, Forecast, LaunchRefused, LegOver, LegRequested
from tradewind.providers.aws.footprint import KEY, decoded

pytestmark = pytest.mark.system

# Slices of preemption series of skypilot-org/spot-traces (4-node, aws-08-03-2023, one V100 each):
# how many machines there were in us-east-1f, us-west-2c and us-east-2a from 02:15 on, every five
# minutes. Each is a zone of ours, with its price.
TRACES = {
    "use1-az1": ("0x7", 0.30),
    "use1-az2": ("4x1 0x6", 0.35),
    "use1-az4": ("4x7", 0.40),
}
TICK_S, SPEED = 300, 4
# On one accelerator it would be too late; two are planned.
WORK = """
name: tiny-gpt
work: {on: 1xA10G, step: 48s, steps: 200, memory: 2GB, scales: true}
checkpoint: {every: 5s, size: 3MB}
limits: {deadline: 160m, budget: $40, accelerators: [A10G], max_accelerators: 2}
run:
  command: torchrun --nproc-per-node 1 train.py --steps 200
  env: {PATH: "BIN:/usr/bin:/bin"}
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of the same training by two processes of this computer, left alone."""
    import shutil

    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("alone") / "job")
    assert torchrun(folder, "train.py", "--steps", "200").wait(300) == 0
    return weights((folder / "log").read_text())


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Rented]:
    with a_world(tmp_path) as made:
        whole = decoded(made.store.get(KEY))
        (region,) = whole.regions
        network = whole.regions[region]
        subnets = {zone: network.subnets[zone] for zone in TRACES}
        regions = {region: replace(network, subnets=subnets)}
        made.store.replace(KEY, replace(whole, regions=regions).encoded())
        yield made


def replay(world: Rented, ticks: slice) -> None:
    for zone, (rle, _) in TRACES.items():
        pieces = [piece.partition("x") for piece in rle.split()]
        values = [int(value) for value, _, count in pieces for _ in range(int(count))]
        trace = [(float(n * TICK_S), value) for n, value in enumerate(values[ticks])]
        world.cloud.trace(zone, trace, SPEED)


def submitted(world: Rented, folder: Path) -> str:
    """As `tradewind run work.yaml --on aws` does it."""
    path = folder / "work.yaml"
    path.write_text(WORK.replace("BIN", str(Path(sys.executable).parent)))
    on = rented.On(world.store, ["aws"])
    wanted = submit.wanted(str(path), on)
    assert (wanted.plan.nodes, set(wanted.plan.markets)) == (2, {"spot", "on_demand"})
    began, names = world.cloud.now(), world.cloud.zone_names()
    for zone, (_, price) in TRACES.items():
        kind = wanted.plan.instance_type
        world.cloud.spot_price(kind, names[zone], price, at=began - 7200)
    spec = submit.spec_of(wanted, local=False, on=on)
    assert {way.zone for way in spec.ways} == set(TRACES)
    ways = [replace(w, facts=replace(w.facts, listing_lag_s=5)) for w in spec.ways]
    return submit.submit(world.store, replace(spec, ways=tuple(ways)), EXAMPLE)


@pytest.mark.long
def test_a_planned_training_is_taken_and_goes_on_elsewhere(
    world: Rented, tmp_path: Path, undisturbed: str
) -> None:
    run_id = submitted(world, tmp_path)
    # The first tick lasts until something is saved, however slow this computer is.
    replay(world, slice(1))
    controller = world.watch(run_id)
    eventually(lambda: world.saved(run_id), within_s=180)
    replay(world, slice(1, None))
    loaded = world.finished(run_id)
    controller.wait(60)
    events = [event for commit in loaded.commits for event in commit.events]
    asked = [e.request.way.zone for e in events if isinstance(e, LegRequested)]
    refused = [e.kind for e in events if isinstance(e, LaunchRefused)]
    over = [e.cause for e in events if isinstance(e, LegOver)]
    # Nothing in the cheapest zone, the next one is taken, and then there is only the dearest.
    assert asked[:2] == ["use1-az1", "use1-az2"]
    assert asked[-1] == "use1-az4"
    assert "no_capacity" in refused
    assert "interrupted" in over
    taken = [each for each in world.cloud.bill()["machines"] if each["ended_by"] == "spot"]
    assert {each["zone"] for each in taken} <= {
        world.cloud.zone_names()["use1-az2"]
    }  # some leave before they are taken
    assert "resuming from step" in world.output(run_id)
    assert weights(world.output(run_id)) == undisturbed
    spec = loaded.state.spec
    assert spec is not None
    assert spec.deadline_s is not None
    (ended,) = [c for c in loaded.commits if any(isinstance(e, Ended) for e in c.events)]
    assert ended.at.timestamp() <= spec.deadline_s
    assert not [e for e in events if isinstance(e, Forecast) and e.late]
    is_paid_and_gone(world, run_id, disk=DISK)
