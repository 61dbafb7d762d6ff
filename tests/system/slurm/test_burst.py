"""A run that begins on the cluster, which costs nothing, and rents from AWS when the queue would
make it late. The store is a bucket: nodes of Slurm are lent passes, EC2's machines have a role."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.providers.aws import machines
from tests.slurm.cluster import NAME, Slurm
from tests.store.servers import ROLE
from tests.system.gated import Gated, tradewind, undisturbed
from tests.system.rented import HOME, ROOT, STORE, Rented, a_world, variables
from tests.system.slurm.runs import occupy
from tests.torch.test_tiny_gpt import weights
from tradewind.api import rented, submit
from tradewind.model import places
from tradewind.model.event import LegOver, LegRequested, LegUp
from tradewind.providers.slurm.footprint import KEY, Cluster, Footprint

pytestmark = pytest.mark.system
STEPS, EACH = 60, 10
WORK = f"""
name: tiny-gpt
work: {{on: 1xA10G, step: 10s, steps: {STEPS}, memory: 2GB}}
checkpoint: {{every: 5s, size: 3MB}}
limits: {{deadline: 110m, accelerators: [A10G], max_accelerators: 1}}
run:
  command: python train.py --steps {STEPS}
  env: {{PATH: "BIN:/usr/bin:/bin", GATE: GATE}}
"""


class World(Gated):
    runs: Rented

    def submit(self, folder: Path) -> None:
        """As `tradewind run work.yaml --on slurm,aws` does it."""
        job = self.job(folder, WORK, EACH)
        on = rented.On(self.runs.store, ["slurm", "aws"])
        spec = submit.spec_of(submit.wanted(str(job / "work.yaml"), on), local=False, on=on)
        assert {way.provider for way in spec.ways} == {"slurm", "aws"}
        assert {way.provider for way in spec.ways if way.pass_s} == {"slurm"}
        # The equipment tells at once what there is.
        ways = [
            replace(w, facts=replace(w.facts, listing_lag_s=min(w.facts.listing_lag_s, 5)))
            for w in spec.ways
        ]
        self.run_id = submit.submit(self.runs.store, replace(spec, ways=tuple(ways)), job)


@pytest.fixture
def world(slurm: Slurm, tmp_path: Path) -> Iterator[World]:
    (ROOT / "build").mkdir(exist_ok=True)
    for name in ("jobs", "scratch"):
        (tmp_path / name).mkdir()
    with (
        a_world(tmp_path, lends=True) as aws,
        variables({"TRADEWIND_PLAIN_HTTP": aws.cloud.host}),
        tempfile.TemporaryDirectory(dir=ROOT / "build") as shared,  # machines have their own /tmp
    ):
        made = machines.footprint(aws.cloud, HOME[1], store_url=STORE)
        made = replace(made, account=ROLE.split(":")[4], lending_role=ROLE)
        aws.store.replace(places.footprint("aws"), made.encoded())
        cluster = Cluster(
            user="root",
            folder=str(tmp_path / "jobs"),
            scratch=str(tmp_path / "scratch"),
            partitions=("scavenge",),
            accelerators={"scavenge": "A10G"},
            prepare=(f"PATH={Path(sys.executable).parent}:$PATH",),
        )
        record = Footprint(clusters={NAME: cluster}, bucket_provider=HOME[0], bucket_region=HOME[1])
        aws.store.replace(KEY, record.encoded())
        yield World(aws, Path(shared) / "gate")


@pytest.mark.long
def test_it_rents_before_its_deadline_when_the_queue_would_be_too_long(
    world: World, slurm: Slurm, tmp_path: Path
) -> None:
    world.go_to(0)
    world.submit(tmp_path)
    assert world.next(25).startswith("slurm-")
    occupy(slurm, seconds=3600, minutes=120)  # behind which a job would begin too late
    world.attend(lambda: world.events(LegOver))
    assert world.next(45).startswith("aws-"), world.runs.told(world.run_id)
    world.go_to(STEPS + 1)
    world.attend(lambda: world.runs.closed(world.run_id))
    state = world.runs.loaded(world.run_id).state
    assert state.outcome == "succeeded", world.runs.told(world.run_id)
    assert not state.announced_late

    asked = {event.request.leg: event.request.way for event in world.events(LegRequested)}
    up = [asked[event.leg].provider for event in world.events(LegUp)]
    assert up == ["slurm", "aws"]
    log = tradewind("logs", world.run_id, "--store", STORE)
    (found,) = map(int, re.findall(r"resuming from step (\d+)", log))
    assert found >= 25, log  # all that was done
    assert weights(log) == undisturbed(tmp_path, STEPS)
    world.loop.tick()
    names = slurm.said("squeue", "-h", "-a", "-o", "%j").split()
    assert [each for each in names if each.startswith("tw-")] == []
    assert list((tmp_path / "scratch").iterdir()) == []
    assert list((tmp_path / "jobs").iterdir()) == []
    assert world.runs.cloud.left() == []
    assert world.runs.store.list_after("passes/") == []
