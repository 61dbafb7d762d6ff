"""Trainings over two pods of a cluster that are real processes: taken away, told beforehand,
evicted, looked after by controllers that are killed. They end with the weights of a training that
was left alone, and nothing of them is left in the namespace."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.clusters import Cluster, Equipment
from tests.eventually import eventually
from tests.system.gated import Gated, shared
from tests.system.kubernetes.runs import InCluster
from tests.system.test_torchrun import torchrun
from tests.torch.test_tiny_gpt import EXAMPLE, weights

pytestmark = pytest.mark.system
STEPS = 80
STANDS_EACH = 10
"""It saves every so many steps."""
# On one machine it would be too late; two are planned.
TRAINING = f"""
name: tiny-gpt
work: {{on: 1xH100-SXM, step: 240s, steps: {STEPS}, memory: 2GB, scales: true}}
checkpoint: {{every: 2s, size: 3MB}}
limits: {{deadline: 400m, budget: $400, accelerators: [H100-SXM], max_accelerators: 2}}
run:
  command: torchrun --nproc-per-node 1 train.py --steps {STEPS}
  env: {{PATH: "BIN:/usr/bin:/bin", GATE: GATE}}
"""


@pytest.fixture
def world(opened: Callable[..., InCluster]) -> InCluster:
    return opened("--network", "100Gbps")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The weights of the same training by two processes of this computer, left alone."""
    folder = shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("alone") / "job")
    assert torchrun(folder, "train.py", "--steps", str(STEPS)).wait(300) == 0
    return weights((folder / "log").read_text())


@pytest.fixture
def run(world: InCluster, tmp_path: Path) -> Iterator[Gated]:
    """Submitted, and held before its first step."""
    with shared() as folder:
        made = Gated(world, folder / "gate")
        made.go_to(0)
        job = made.job(tmp_path, TRAINING, STANDS_EACH)
        made.run_id = world.submitted(job, (job / "work.yaml").read_text())
        yield made


def test_disturbed_in_every_way(
    world: InCluster, cluster: Cluster, run: Gated, undisturbed: str
) -> None:
    """Two controllers, one of which is killed each time; a node that tells beforehand that it goes,
    an eviction, a node that is only marked as one that goes, an API server that is away for a
    while."""
    world.watch(run.run_id, "steady")
    for step, disturb in ((15, _notice), (30, _evict), (45, _mark), (60, _restart)):
        other = world.watch(run.run_id, "killed", pass_s=0.5)
        run.stands(step)
        other.kill()
        other.wait()
        disturb(world, cluster)
    run.go_to(10**6)
    world.finished(run.run_id)
    ends = world.ends(run.run_id)
    assert ends[:3] == ["interrupted"] * 3, world.told(run.run_id)
    assert ends[-1] == "finished"
    assert weights(world.output(run.run_id)) == undisturbed
    world.nothing_is_left()


def _notice(world: InCluster, cluster: Cluster) -> None:
    node = world.node_of(1)
    cluster.notice(node, 10)
    eventually(lambda: cluster.ask("GET", f"/api/v1/nodes/{node}")[0] == 404)
    cluster.restore(node)


def _evict(world: InCluster, cluster: Cluster) -> None:
    cluster.evict(world.namespace, world.pod(0)["metadata"]["name"])


def _mark(world: InCluster, cluster: Cluster) -> None:
    """As Karpenter does it, and nobody evicts what is there."""
    node, pod = world.node_of(1), world.pod(1)["metadata"]["uid"]
    taint = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
    status, _ = cluster.ask("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [taint]}})
    assert status == 200
    eventually(lambda: pod not in [each["metadata"]["uid"] for each in world.pods()])
    cluster.ask("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": None}})


def _restart(world: InCluster, cluster: Cluster) -> None:
    if isinstance(cluster, Equipment):
        cluster.control.restart(5)


def test_two_pods_one_of_whose_nodes_vanishes(
    world: InCluster, cluster: Cluster, run: Gated, undisturbed: str
) -> None:
    run_id = run.run_id
    controller = world.watch(run_id)
    run.stands(15)
    gone = world.node_of(1)
    cluster.vanish(gone)
    run.go_to(10**6)
    world.finished(run_id)
    assert controller.wait(60) == 0
    assert world.ends(run_id)[-1] == "finished"
    assert "interrupted" in world.ends(run_id)
    assert "resuming from step" in world.output(run_id)
    assert weights(world.output(run_id)) == undisturbed
    world.nothing_is_left()
    cluster.restore(gone)
