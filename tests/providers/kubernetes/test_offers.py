"""What nodes of a cluster are offered as: by the labels of each vendor, free or in use, whole or in
parts, up or not yet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.providers.kubernetes.nodes import EKS_SPOT, REGION, TYPE, h100, node, pod
from tradewind.providers.kubernetes.offers import scaling
from tradewind.providers.kubernetes.offers.nodes import Node, read, requested
from tradewind.providers.kubernetes.offers.quantities import amount, cores, mebibytes
from tradewind.providers.kubernetes.offers.shapes import Shape, shapes
from tradewind.providers.offered import Type


def of(*nodes: dict[str, Any], pods: tuple[dict[str, Any], ...] = (), **more: Any) -> list[Shape]:
    daemons = [each for each in pods if each["metadata"]["ownerReferences"]]
    return shapes([read(each) for each in nodes], requested(pods), requested(daemons), **more)


def whole(found: list[Shape]) -> list[Shape]:
    return [each for each in found if each.asked == each.chip.number]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("96", 96.0), ("7910m", 7.91), ("1000Gi", 1000 * 2**30), ("1e3", 1000.0), ("64k", 64_000.0),
        ("2.5", 2.5), (".5", 0.5), ("3M", 3e6), ("1Ei", 2.0**60), ("100u", 1e-4),
        ("many", 0.0), ("", 0.0), ("5Gb", 0.0),
    ],
)  # fmt: skip
def test_quantities(text: str, number: float) -> None:
    assert amount(text) == pytest.approx(number)


def test_quantities_are_written_so_that_they_fit() -> None:
    assert [cores(each) for each in (86.4, 1.0, 0.9, 0.0004)] == ["86", "1", "900m", "1m"]
    assert mebibytes(2.5 * 2**20) == "2Mi"


T4, L4 = {"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "4"}
TPU = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"}
VENDORS = [
    ("gke", T4, {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "nvidia-tesla-t4", "gcp"),
    ("gke-id", L4, {"nvidia.com/gpu.product": "NVIDIA-L4"}, "NVIDIA-L4", "gcp"),
    ("karpenter", L4, {"karpenter.k8s.aws/instance-gpu-name": "l4"}, "l4", "aws"),
    ("eks", L4, {"k8s.amazonaws.com/accelerator": "nvidia-l4"}, "nvidia-l4", "aws"),
    ("coreweave", L4, {"gpu.nvidia.com/class": "H100_NVLINK_80GB"}, "H100_SXM_80GB", "coreweave"),
    ("nebius", L4, {"nebius.com/gpu-name": "H100"}, "H100", "nebius"),
    ("aks", L4, {"kubernetes.azure.com/accelerator": "nvidia"}, "", "azure"),
    ("shared", L4, {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}, "NVIDIA-L4", ""),
    ("amd", {"amd.com/gpu": "8"}, {"beta.amd.com/gpu.device-id.74a1": "8"}, "MI300X", ""),
    (
        "amd-named",
        {"amd.com/gpu": "8"},
        {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
        "AMD_Instinct_MI300X_OAM",
        "",
    ),
    (
        "neuron",
        {"aws.amazon.com/neuron": "16"},
        {TYPE: "trn1.32xlarge", "karpenter.k8s.aws/instance-accelerator-name": "trainium"},
        "Trainium1",
        "aws",
    ),
    ("tpu", {"google.com/tpu": "4"}, TPU, "tpu-v5-lite-podslice", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "has", "labels", "name", "provider"), VENDORS, ids=[each[0] for each in VENDORS]
)
def test_each_vendor_names_its_accelerators(
    case: str, has: dict[str, str], labels: dict[str, str], name: str, provider: str
) -> None:
    pool = {"cloud.google.com/gke-nodepool": "a"} if case == "gke" else {}
    ids = {"gke-id": "gce://p/us-central1-a/n"}
    found = read(node("n", has, labels | pool, provider_id=ids.get(case, "")))
    (chip,) = found.chips
    assert (chip.name, chip.resource) == (name, next(iter(has)))
    assert chip.number == int(next(iter(has.values())))
    assert found.provider == provider


@pytest.mark.parametrize(
    "label",
    [
        ("cloud.google.com/gke-spot", "true"),
        ("cloud.google.com/gke-provisioning", "spot"),
        ("karpenter.sh/capacity-type", "spot"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
    ],
)
def test_spot_nodes_are_known_and_chosen_by_their_label(label: tuple[str, str]) -> None:
    (shape,) = whole(of(h100("a", dict([label]))))
    assert (shape.market, shape.selector[label[0]]) == ("spot", label[1])
    assert shape.absent == ()


def test_a_pod_that_is_not_to_be_taken_keeps_off_spot_nodes_of_the_same_type() -> None:
    steady, spot = whole(of(h100("a"), h100("b", EKS_SPOT)))
    assert (steady.market, spot.market) == ("on_demand", "spot")
    assert steady.absent == ("karpenter.sh/capacity-type",)
    assert spot.selector["karpenter.sh/capacity-type"] == "spot"
    named = {"karpenter.sh/capacity-type": "on-demand"}
    (said, _) = whole(of(h100("a", named), h100("b", EKS_SPOT)))
    assert said.selector["karpenter.sh/capacity-type"] == "on-demand"
    assert said.absent == ()  # the selector does it


def test_a_node_is_offered_whole_and_in_parts_with_its_share_of_the_rest() -> None:
    found = of(h100("a"), h100("b"))
    assert [(each.name, each.machines, each.free) for each in found] == [
        ("p5.48xlarge-1of8", 16, 16),
        ("p5.48xlarge-2of8", 8, 8),
        ("p5.48xlarge-4of8", 4, 4),
        ("p5.48xlarge", 2, 2),
    ]
    quarter = found[1].placement
    assert quarter["resources"] == {"nvidia.com/gpu": "2", "cpu": "21", "memory": "230400Mi"}
    assert quarter["selector"] == {
        TYPE: "p5.48xlarge",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "kubernetes.io/arch": "amd64",
    }
    assert found[1].share == 0.25
    texts = [*quarter["resources"].values(), *quarter["selector"].values()]
    assert all(isinstance(each, str) for each in texts)


def test_what_others_ask_for_is_not_free() -> None:
    busy = pod("a", {"nvidia.com/gpu": "5", "cpu": "10"})
    over = pod("a", {"nvidia.com/gpu": "8"}, phase="Succeeded")
    init = pod("b", {"cpu": "1"}, before={"nvidia.com/gpu": "8"})
    found = of(h100("a"), h100("b"), pods=(busy, over, init))
    assert [each.free for each in found] == [3, 1, 0, 0]
    assert [each.machines for each in found] == [16, 8, 4, 2]
    assert found[0].sure == "3 of 16 free now"
    full = pod("a", {"cpu": "95"})  # all GPUs are free, and no processor
    assert [each.free for each in of(h100("a"), pods=(full,))] == [0, 0, 0, 0]


def test_daemons_are_left_their_share_of_every_node() -> None:
    agent = pod("a", {"cpu": "6", "memory": "100Gi"}, daemon=True)
    (shape,) = whole(of(h100("a"), pods=(agent,)))
    assert shape.resources["cpu"] == "81"  # (96 - 6) * 0.9
    assert (shape.machines, shape.free) == (1, 1)
    unseen = whole(shapes([read(h100("a"))], None, None))[0]
    assert (unseen.free, unseen.resources["cpu"]) == (None, "72")
    assert "not known" in unseen.sure


def test_nodes_that_are_down_cordoned_or_others_are_left_out() -> None:
    gpu = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    theirs = {"key": "team", "value": "vision", "effect": "NoSchedule"}
    lost = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    soft = {"key": "team", "value": "vision", "effect": "PreferNoSchedule"}
    several = (
        h100("down", ready=False),
        h100("cordoned", cordoned=True),
        h100("lost", taints=(lost,)),
        h100("theirs", taints=(theirs,)),
        h100("ours", taints=(gpu, soft)),
    )
    (shape,) = whole(of(*several))
    assert (shape.nodes, shape.machines) == (1, 1)
    assert shape.tolerations == (
        {"key": "nvidia.com/gpu", "effect": "NoSchedule", "operator": "Equal", "value": "present"},
    )
    (shape,) = whole(of(*several, tolerated=("team",)))
    assert shape.nodes == 2
    assert {each["key"] for each in shape.tolerations} == {"nvidia.com/gpu", "team"}


def test_slices_of_a_gpu_are_machines_of_their_own() -> None:
    label = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "mixed"}
    mixed = node("a", {"nvidia.com/mig-1g.5gb": "7", "nvidia.com/mig-3g.20gb": "2"}, label)
    small, large = of(mixed)
    assert (small.resources["nvidia.com/mig-1g.5gb"], small.machines) == ("1", 7)
    assert (round(7 * small.chip.part), small.chip.memory_gb) == (1, 5)
    assert (round(7 * large.chip.part), large.machines) == (3, 2)
    assert small.name != large.name
    single = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}
    (shape,) = of(node("b", {"nvidia.com/gpu": "7"}, single))
    assert (shape.chip.name, round(7 * shape.chip.part)) == ("NVIDIA-A100-SXM4-40GB", 1)
    assert shape.selector["nvidia.com/gpu.product"].endswith("-MIG-1g.5gb")


def test_a_tpu_slice_is_one_machine_of_all_its_nodes() -> None:
    topology = TPU | {"cloud.google.com/gke-tpu-topology": "4x4", TYPE: "ct5lp-hightpu-4t"}
    nodes = [node(f"t{number}", {"google.com/tpu": "4"}, topology) for number in range(8)]
    (shape,) = of(*nodes)
    assert (shape.chip.hosts, shape.machines, shape.free) == (4, 2, 2)
    assert shape.selector["cloud.google.com/gke-tpu-topology"] == "4x4"
    assert shape.share == 4


def test_nodes_without_labels_are_called_by_what_they_have() -> None:
    (shape,) = whole(of(node("a", {"nvidia.com/gpu": "2"}, {})))
    assert (shape.name, shape.selector, shape.chip.name) == ("nvidia.com-gpu-2", {}, "")
    found = whole(of(h100("a"), h100("b", gpus="7")))  # one has lost a GPU
    assert [each.name for each in found] == ["p5.48xlarge", "p5.48xlarge-2"]
    assert read({}) == Node(
        name="", labels={}, allocatable={}, taints=(), up=False, chips=(), spot=False, kind="",
        provider="",
    )  # fmt: skip


# -- autoscalers -----------------------------------------------------------------------------------

OLDER = """Cluster-autoscaler status at 2026-11-01:
NodeGroups:
  Name:        eks-gpu-2cc1
  Health:      Healthy (ready=1 unready=0 registered=1 cloudProviderTarget=1 (minSize=0, maxSize=5))
  ScaleUp:     Backoff (ready=1 cloudProviderTarget=1)

  Name:        eks-empty-77aa
  Health:      Healthy (ready=0 registered=0 cloudProviderTarget=0 (minSize=0, maxSize=3))
  ScaleUp:     NoActivity (ready=0 cloudProviderTarget=0)
"""
NEWER = """time: 2026-11-01
nodeGroups:
- name: https://www.googleapis.com/compute/v1/projects/p/zones/z/instanceGroups/gke-c-gpu-1-grp
  health:
    status: Healthy
    cloudProviderTarget: 1
    minSize: 0
    maxSize: 3
  scaleUp: {status: NoActivity}
"""


def test_the_cluster_autoscaler_tells_how_far_its_groups_grow() -> None:
    first, second = scaling.groups(OLDER)
    assert (first.size, first.most, first.backoff) == (1, 5, True)
    (newer,) = scaling.groups(NEWER)
    assert (newer.size, newer.most, newer.backoff) == (1, 3, False)
    assert (second.most, scaling.groups("what?"), scaling.groups("nodeGroups: [")) == (3, [], [])
    nodes = [read(h100("a", {"eks.amazonaws.com/nodegroup": "gpu"}))]
    found, empty = scaling.grown(shapes(nodes, {}, {}), nodes, [first, second])
    assert [(each.name, each.machines, each.added) for each in whole(found)] == [
        ("p5.48xlarge", 5, 4)
    ]
    assert "may add 4, though it has failed to of late" in whole(found)[0].sure
    assert empty == ["eks-empty-77aa"]


TYPES = {
    "g5.xlarge": Type(name="g5.xlarge", accelerator="A10G", count=1),
    "g5.12xlarge": Type(name="g5.12xlarge", accelerator="A10G", count=4),
    "p5.48xlarge": Type(name="p5.48xlarge", accelerator="H100-SXM", count=8),
    "trn1.32xlarge": Type(name="trn1.32xlarge", accelerator="Trainium1", count=16),
}


def pool(*requirements: tuple[str, str, list[str]], **more: Any) -> dict[str, Any]:
    wants = [{"key": k, "operator": o, "values": v} for k, o, v in requirements]
    taints = [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    template = {"spec": {"requirements": wants, "taints": taints}}
    return {"metadata": {"name": "gpus"}, "spec": {"template": template, **more}}


def pooled(*pools: dict[str, Any]) -> list[Shape]:
    return scaling.pooled(pools, lambda provider: TYPES, "aws", "us-east-1")


def test_karpenter_may_buy_what_its_pools_require() -> None:
    family = "karpenter.k8s.aws/instance-family"
    both = ("karpenter.sh/capacity-type", "In", ["spot", "on-demand"])
    found = pooled(pool((family, "In", ["g5"]), both, limits={"nvidia.com/gpu": "8"}))
    names = {(each.name, each.market, each.machines) for each in found}
    assert ("g5.12xlarge-4of4", "spot", 2) in names
    assert ("g5.12xlarge-4of4", "on_demand", 2) in names
    assert ("g5.xlarge-1of1", "on_demand", 8) in names
    assert not any(name.startswith("p5") for name, _, _ in names)
    one = next(each for each in found if each.name == "g5.12xlarge-2of4" and each.spot)
    assert one.selector == {TYPE: "g5.12xlarge", "karpenter.sh/capacity-type": "spot"}
    assert one.tolerations[0]["key"] == "nvidia.com/gpu"
    assert one.free is None
    assert "NodePool gpus may add them" in one.sure


@pytest.mark.parametrize(
    ("requirement", "types"),
    [
        ((TYPE, "In", ["p5.48xlarge"]), {"p5.48xlarge"}),
        ((TYPE, "NotIn", ["p5.48xlarge"]), {"g5.xlarge", "g5.12xlarge", "trn1.32xlarge"}),
        (("karpenter.k8s.aws/instance-category", "In", ["p"]), {"p5.48xlarge"}),
        (("karpenter.k8s.aws/instance-gpu-count", "Gt", ["1"]),
         {"g5.12xlarge", "p5.48xlarge", "trn1.32xlarge"}),
        (("karpenter.k8s.aws/instance-gpu-name", "In", ["h100"]), {"p5.48xlarge"}),
        (("karpenter.k8s.aws/instance-accelerator-name", "In", ["trainium"]), {"trn1.32xlarge"}),
        (("topology.kubernetes.io/zone", "In", ["us-east-1a"]), set()),  # of whatever comes
    ],
)  # fmt: skip
def test_requirements_of_a_pool(requirement: tuple[str, str, list[str]], types: set[str]) -> None:
    assert {each.node_type for each in pooled(pool(requirement))} == types


def test_a_saved_plan_of_nodes_that_are_not_up_says_what_pods_ask_for() -> None:
    pools = [pool((TYPE, "In", ["g5.12xlarge", "trn1.32xlarge"]))]
    for each in pooled(*pools):
        again = scaling.bought(each.name, each.market, pools)
        assert again is not None
        assert (again.resources, again.selector) == (each.resources, each.selector)
        assert again.tolerations == each.tolerations
    assert scaling.bought("p5.48xlarge", "spot", pools) is None


def test_what_setup_was_told_stands_in_for_nodes_that_may_not_be_read() -> None:
    found = scaling.told("h100:8")
    assert [each.name for each in found] == ["h100-8-1of8", "h100-8-2of8", "h100-8-4of8", "h100-8"]
    assert found[-1].resources == {"nvidia.com/gpu": "8"}
    (one,) = scaling.told("g5.xlarge=a10g:1:spot")
    assert (one.name, one.market, one.selector) == ("g5.xlarge", "spot", {TYPE: "g5.xlarge"})
    assert scaling.told("tpu-v5e:4")[0].resources == {"google.com/tpu": "4"}
    assert scaling.told("mi300x:8")[0].resources == {"amd.com/gpu": "1"}
    assert REGION not in one.selector
