"""A JAX training on a TPU slice of two workers, which are real hosts without TPUs: planned, rented
as a spot slice, met by `jax.distributed`, taken with notice, resumed on another slice in another
zone, and ended with the weights of a training that nothing happened to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.system.google import REGION, OnGoogle, a_world
from tests.system.rented import ROOT
from tests.torch.test_tiny_gpt import weights
from tradewind.api import rented, submit
from tradewind.ledger.postings import MACHINE
from tradewind.model.event import LegOver, LegRequested, LegUp
from tradewind.model.run import Spec, Way
from tradewind.supervisor.meeting import free_port

pytestmark = pytest.mark.system
EXAMPLE = ROOT / "examples" / "jax-tpu"
STEPS, KIND = 300, "tpu-v5p-16"
WORK = f"""
name: jax-tpu
work: {{on: 8xTPU-v5p, step: 20s, steps: {STEPS}, memory: 2GB}}
checkpoint: {{every: 5s, size: 1MB}}
limits: {{deadline: 12h, budget: $400, accelerators: [TPU-v5p], max_accelerators: 8}}
run:
  command: python train.py --steps {STEPS}
  env: {{PATH: "BIN:/usr/bin:/bin", JAX_PLATFORMS: cpu}}
"""
TOLD = "'slice', *(os.environ[f'TPU_WORKER_{each}'] for each in ('ID', 'HOSTNAMES'))"
LATE_S = 60
"""When a slice was taken, Google does not say: it is paid for until that was seen."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[OnGoogle]:
    with a_world(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of the same training by two processes of this computer, left alone."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("alone") / "job")
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "JAX_PLATFORMS": "cpu",
        "TRADEWIND_NODES": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    command = [sys.executable, "train.py", "--steps", str(STEPS)]
    both = [
        subprocess.Popen(
            command,
            cwd=folder,
            env=env | {"TRADEWIND_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    told = [each.communicate(timeout=600)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0], told
    return weights(told[0])


def slow(folder: Path) -> Path:
    """The same training, with time for somebody to take its machines; it tells what JAX and
    PyTorch/XLA would find."""
    job = shutil.copytree(EXAMPLE, folder)
    text = (job / "train.py").read_text()
    for line, more in (
        ("        saves, stops = run.decided()\n", "        time.sleep(0.1)\n"),
        ("    first, kept = run.begun()\n", f"    print({TOLD})\n"),
    ):
        assert line in text
        text = text.replace(line, more + line)
    (job / "train.py").write_text(text)
    return job


def submitted(world: OnGoogle, folder: Path) -> str:
    """As `tradewind run work.yaml --on gcp` does it."""
    path = folder / "work.yaml"
    path.write_text(WORK.replace("BIN", str(Path(sys.executable).parent)))
    on = rented.On(world.store, ["gcp"])
    wanted = submit.wanted(str(path), on)
    assert (wanted.plan.nodes, wanted.plan.instance_type) == (1, KIND)
    spec = world.bills(submit.spec_of(wanted, local=False, on=on))
    assert {(way.nodes, way.units, way.facts.ends) for way in spec.ways} == {(2, 1, "never")}
    assert len({way.zone for way in spec.ways if way.market == "spot"}) > 1
    assert any("deletes them" in each for each in on.warnings)
    asked(world, spec)
    return submit.submit(world.store, spec, slow(folder / "job"))


def asked(world: OnGoogle, spec: Spec) -> None:
    """The equipment's prices are of slices."""
    for way in spec.ways:
        usd = worker(way) * way.workers / 1e6
        if way.market == "spot":
            world.cloud.spot_price(way.instance_type, way.zone, usd, at=world.cloud.now() - 7200)
        else:
            world.cloud.on_demand_price(way.instance_type, usd)


def worker(way: Way) -> int:
    return way.price - way.address_price


def test_a_jax_training_survives_its_slice(
    world: OnGoogle, tmp_path: Path, undisturbed: str
) -> None:
    run_id = submitted(world, tmp_path)
    controller = world.watch(run_id)
    eventually(lambda: world.saved(run_id), within_s=300)
    rows = world.cloud.bill()["machines"]
    assert len(rows) == 2
    (zone,) = {each["zone"] for each in rows}
    world.cloud.capacity(0, zone=zone, kind=KIND)
    world.cloud.interrupt(rows[1]["id"])  # one of its workers, and the whole slice
    loaded = world.finished(run_id)
    controller.wait(60)

    assert weights(world.output(run_id)) == undisturbed
    assert "worker 1 of 2, 2 devices in all" in world.output(run_id)
    addresses = ",".join(each["address"] for each in rows)
    assert f"slice 0 {addresses}\n" in world.output(run_id)
    assert f"slice 1 {addresses}\n" in world.output(run_id)
    events = [event for commit in loaded.commits for event in commit.events]
    ways = {e.request.leg: e.request.way for e in events if isinstance(e, LegRequested)}
    up = [ways[e.leg] for e in events if isinstance(e, LegUp)]
    assert [way.market for way in up] == ["spot", "spot"]
    assert up[0].zone == zone != up[1].zone
    causes = [e.cause for e in events if isinstance(e, LegOver)]
    assert "interrupted" in causes
    assert causes[-1] == "finished"
    is_paid_and_gone(world, run_id, ways)


def is_paid_and_gone(world: OnGoogle, run_id: str, ways: dict[int, Way]) -> None:
    """By the micro-dollar, but for what nobody can know."""
    assert world.cloud.left() == []
    bill = {each["name"]: each for each in world.cloud.bill()["machines"]}
    postings = [
        each
        for each in world.cost(run_id).postings
        if each.kind == MACHINE and each.provider == "gcp"
    ]
    names = [each.machine_id.rpartition(f"gcp-tpu-{REGION}-")[2][2:] for each in postings]
    assert {name.replace("-w", "-w-") for name in names} == set(bill)
    for name, posting in zip(names, postings, strict=True):
        row, way = bill[name.replace("-w", "-w-")], ways[posting.leg]
        seconds = max(int(row["to"]) - int(row["from"]), 60)
        taken = row["ended_by"] == "spot"

        def due(seconds: int, way: Way = way) -> int:
            return sum(-(-each * seconds // 3600) for each in (worker(way), way.address_price))

        assert due(seconds) <= posting.micros <= due(seconds + (LATE_S if taken else 0)), row
