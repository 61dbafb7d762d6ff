"""Runs in a cluster whose pods are real processes: refused, queued, killed for their memory,
finished, and nothing of them left in the namespace."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.clusters import Cluster, Equipment
from tests.eventually import eventually
from tests.system.gated import tradewind
from tests.system.kubernetes.runs import NODES, InCluster, cordoned
from tradewind.model.event import Ended, LegOver
from tradewind.model.run import Spec

pytestmark = pytest.mark.system
Opened = Callable[..., InCluster]


SMALL = """
name: small
work: {on: 1xH100-SXM, step: 1s, steps: 60, memory: 2GB}
limits: {deadline: 60m, budget: $400, accelerators: [H100-SXM], max_accelerators: 1}
run:
  command: COMMAND
"""
# On one machine it would be too late; two are planned.
GANG = """
name: gang
work: {on: 1xH100-SXM, step: 240s, steps: 80, memory: 2GB, scales: true}
limits: {deadline: 400m, budget: $400, accelerators: [H100-SXM], max_accelerators: 2}
run:
  command: echo together
"""


def small(world: InCluster, folder: Path, command: str, more: str = "", **changes: Any) -> str:
    """A job that tells nothing of its steps."""

    def changed(spec: Spec) -> Spec:
        return replace(spec, steps=False, **changes)

    folder.mkdir(exist_ok=True)
    text = SMALL.replace("COMMAND", command) + more
    return world.submitted(folder / "job", text, changed=changed)


def test_an_image_that_does_not_exist_ends_the_run_with_what_to_do(
    opened: Opened, tmp_path: Path
) -> None:
    world = opened()
    run_id = small(world, tmp_path, "echo never", "  image: registry.example.com/none:missing\n")
    controller = world.watch(run_id)
    ended = world.ended(run_id)
    assert controller.wait(60) == 0
    assert ended.outcome == "failed", world.told(run_id)
    assert "its image cannot be pulled" in ended.reason
    assert "registry.example.com/none:missing" in ended.reason
    assert "run.image" in ended.reason  # what to do
    world.nothing_is_left()


def test_a_job_that_is_killed_for_its_memory_is_not_retried_for_ever(
    opened: Opened, cluster: Cluster, tmp_path: Path
) -> None:
    if not isinstance(cluster, Equipment):
        pytest.skip("whether memory is limited is the computer's affair")
    world = opened()
    run_id = small(world, tmp_path, "sleep 600", tries=2)
    controller = world.watch(run_id)
    killed: set[str] = set()

    def over() -> bool:
        for pod in world.pods():
            name = pod["metadata"]["name"]
            if pod["status"]["phase"] == "Running" and name not in killed:
                killed.add(name)
                cluster.control.oom(world.namespace, name)
        return world.closed(run_id)

    eventually(over, within_s=240)
    ended = world.ended(run_id)
    assert controller.wait(60) == 0
    assert (ended.outcome, len(killed)) == ("failed", 2), world.told(run_id)
    last = [event for event in world.events(run_id) if isinstance(event, LegOver)][-1]
    assert "more memory" in last.reason
    world.nothing_is_left()


def test_what_waits_says_why_and_is_withdrawn_when_it_is_stopped(
    opened: Opened, cluster: Cluster, tmp_path: Path
) -> None:
    world = opened()
    run_id = small(world, tmp_path, "echo never")
    with cordoned(cluster):
        controller = world.watch(run_id)
        eventually(lambda: "nodes are available" in world.waits(run_id), within_s=120)
        assert "unschedulable" in world.waits(run_id)
        assert world.pods()
        tradewind("stop", run_id, "--store", world.store.url, "--no-wait")
        ended = world.ended(run_id)
    assert ended.outcome == "cancelled"
    assert controller.wait(60) == 0
    assert world.legs_up(run_id) == []
    world.nothing_is_left()


def test_a_gang_that_does_not_fit_waits_until_it_does(
    opened: Opened, cluster: Cluster, tmp_path: Path
) -> None:
    """One of its two pods has a node long before the other, and nothing begins until both have."""
    world = opened("--network", "100Gbps")
    run_id = world.submitted(tmp_path / "job", GANG, changed=lambda s: replace(s, steps=False))
    with cordoned(cluster, but=NODES[0]):
        controller = world.watch(run_id)
        eventually(lambda: "1 of 2 pods have nodes" in world.waits(run_id), within_s=120)
        assert "nodes are available" in world.waits(run_id)
        assert world.legs_up(run_id) == []
    world.finished(run_id, within_s=240)
    assert controller.wait(60) == 0
    assert world.asked(run_id) == ["kubernetes"], world.told(run_id)
    assert "together" in world.output(run_id)
    world.nothing_is_left()


def test_a_queue_admits_later(opened: Opened, cluster: Cluster, tmp_path: Path) -> None:
    if not isinstance(cluster, Equipment):
        pytest.skip("a control plane alone has no Kueue that admits")
    cluster.control.dials(kueue=True)
    name = "queued"
    cluster.namespace(name)
    cluster.control.queue(namespace=name, quota={"nvidia.com/gpu": "0", "cpu": "0", "memory": "0"})
    world = opened("--queue", "queue", name=name)
    run_id = small(world, tmp_path, "echo admitted")
    controller = world.watch(run_id)
    eventually(lambda: "Kueue" in world.waits(run_id), within_s=120)
    assert world.pods() == []
    whole = {"nvidia.com/gpu": "8", "cpu": "1000", "memory": "4000Gi"}
    cluster.control.queue(namespace=name, quota=whole)
    world.finished(run_id, within_s=240)
    assert controller.wait(60) == 0
    assert "admitted" in world.output(run_id)
    world.nothing_is_left()


def test_with_the_rights_of_one_namespace(opened: Opened, cluster: Cluster, tmp_path: Path) -> None:
    """As the account that setup makes for controllers, who may not read nodes."""
    world = opened("--accelerator", "h100-1x=h100-sxm:1")
    token = cluster.account_token(world.namespace, "tradewind-controller")
    world.env["KUBECONFIG"] = os.environ["KUBECONFIG"] = str(cluster.kubeconfig(token))
    run_id = small(world, tmp_path, "echo done")
    controller = world.watch(run_id)
    world.finished(run_id, within_s=240)
    assert controller.wait(60) == 0
    world.nothing_is_left()


def test_a_namespace_is_deleted_under_a_run(
    opened: Opened, cluster: Cluster, tmp_path: Path
) -> None:
    world = opened()
    run_id = small(world, tmp_path, "sleep 600")
    controller = world.watch(run_id)
    eventually(lambda: world.legs_up(run_id), within_s=120)
    cluster.remove_namespace(world.namespace)
    # It is closed minutes later, when nobody can still list what was in it.
    eventually(lambda: world.loaded(run_id).state.phase in ("ended", "closed"), within_s=240)
    (ended,) = [event for event in world.events(run_id) if isinstance(event, Ended)]
    controller.kill()
    assert ended.outcome == "failed", world.told(run_id)
    assert world.namespace in ended.reason  # in our words, or in the API server's
    assert "tradewind setup kubernetes" in ended.reason  # what to do
