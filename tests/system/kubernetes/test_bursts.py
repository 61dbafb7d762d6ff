"""A run that may use a cluster and EC2: the cluster's nodes cost nothing and are taken by others,
so it waits there for as long as its deadline lets it, and is then done on rented machines. What
waited in the cluster is taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.clusters import Cluster, Shape, a_cluster
from tests.eventually import eventually
from tests.providers.aws import machines
from tests.store.servers import ROLE
from tests.system.kubernetes.runs import LAG_S, InCluster, a_namespace, cordoned
from tests.system.rented import STORE, Rented, a_world
from tradewind.base import clock
from tradewind.model import places
from tradewind.model.event import LegQueued, LegRequested
from tradewind.model.run import Spec, Way

pytestmark = pytest.mark.system
A10G_NODE = Shape(
    {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "1"},
    {
        "node.kubernetes.io/instance-type": "a10g-1x",
        "nvidia.com/gpu.product": "NVIDIA-A10G",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": "23028",
    },
)
WORK = """
name: short
work: {on: 1xA10G, step: 1s, steps: 60, memory: 2GB}
limits: {deadline: 60m, budget: $40, accelerators: [A10G], max_accelerators: 1}
run: {command: echo done}
"""
START_S, LATE_S = 20.0, 240.0


@pytest.fixture
def world(tmp_path: Path) -> Iterator[tuple[Rented, InCluster]]:
    with (
        a_world(tmp_path, lends=True) as aws,
        a_cluster(tmp_path / "cluster") as cluster,
    ):
        cluster.add("full", A10G_NODE)
        made = machines.footprint(aws.cloud, "us-east-1", store_url=STORE)
        made = replace(made, account=ROLE.split(":")[4], lending_role=ROLE)
        aws.store.replace(places.footprint("aws"), made.encoded())
        with a_namespace(cluster, "shared", tmp_path, aws.env, url=STORE) as inside:
            yield aws, inside


def quick(spec: Spec) -> Spec:
    """Minutes instead of hours, and the equipment tells at once what there is."""

    def changed(way: Way) -> Way:
        return replace(way, start_s=START_S, facts=replace(way.facts, listing_lag_s=LAG_S))

    assert {way.provider for way in spec.ways} == {"kubernetes", "aws"}
    late_s = clock.now().timestamp() + LATE_S
    ways = tuple(changed(way) for way in spec.ways if way.market == "on_demand")
    return replace(spec, steps=False, deadline_s=late_s, ways=ways)


@pytest.mark.long
def test_a_queue_that_would_make_it_late(world: tuple[Rented, InCluster], tmp_path: Path) -> None:
    aws, inside = world
    cluster: Cluster = inside.cloud
    run_id = inside.submitted(tmp_path / "job", WORK, on=("kubernetes", "aws"), changed=quick)
    with cordoned(cluster):
        inside.watch(run_id)
        eventually(lambda: "nodes are available" in inside.waits(run_id), within_s=120)
        assert inside.asked(run_id) == ["kubernetes"]
        inside.finished(run_id, within_s=600)
    assert inside.asked(run_id) == ["kubernetes", "aws"]
    assert any(isinstance(event, LegQueued) for event in inside.events(run_id))
    *_, last = (e for e in inside.events(run_id) if isinstance(e, LegRequested))
    assert last.request.way.provider == "aws"
    assert "done" in inside.output(run_id)
    assert not inside.legs_up(run_id)[1:]
    inside.nothing_is_left()
    assert all(row["ended"] is not None for row in aws.cloud.bill()["machines"])
