"""Every object of ours satisfies the published schemas to the letter, and the strictest level of
pod security."""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
from msgspec.structs import replace

from tests.providers.kubernetes.builders import GPU, OWNER, PLACE, a_cluster, an_order
from tradewind.providers.base import Refused
from tradewind.providers.boot import told
from tradewind.providers.boot.luggage import Luggage
from tradewind.providers.kubernetes import labels
from tradewind.providers.kubernetes.footprint import Cluster
from tradewind.providers.kubernetes.manifests import beside, leg
from tradewind.providers.kubernetes.manifests.order import Order
from tradewind.providers.kubernetes.manifests.pod import grace_s

VERSIONS = ("1.29", "1.36", "1.37")
CLUSTERS = {
    "plain": a_cluster(),
    "kueue": a_cluster(queue="research", priority="high"),
    "volcano": a_cluster(volcano=True, priority="high"),
    "keys": a_cluster(identity="secret", store_secret="minio"),
    "shared": a_cluster(identity="volume", volume="runs", volume_path="/runs"),
    "injected": a_cluster(python_image="python:3.12"),
    "azure": a_cluster(kind="aks", identity="workload", identity_of="aks"),
    "topology": a_cluster(queue="research", topology="example.com/rack"),
    "gated": a_cluster(gates=True, nodes=True),
    "rdma": a_cluster(rdma="rdma/ib", interfaces="eth0"),
}
HOSTED = a_cluster(host_network=True)


def spec_of(order: Order) -> dict[str, Any]:
    made: dict[str, Any] = leg.made(order)["spec"]
    if order.cluster.jobset:
        made = made["replicatedJobs"][0]["template"]["spec"]
    found: dict[str, Any] = made["template"]["spec"]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("name", [*CLUSTERS, "hosted"])
def test_every_object_is_as_the_schemas_have_it(name: str, nodes: int, version: str) -> None:
    cluster = HOSTED if name == "hosted" else CLUSTERS[name]
    layout = {**GPU, "secrets": ["hf-token"], "image": "registry.example.com/a/b:1"}
    order = an_order(nodes, cluster, layout=layout)
    made = [leg.made(order), *(body for _, body in beside.made(order, "uid", {"a": "b"}))]
    for body in made:
        if body["kind"] != "PodGroup":  # Volcano's, which no schema of Kubernetes has
            kubernetes_validate.validate(body, version, strict=True)


def violations(spec: dict[str, Any]) -> list[str]:
    """Of the level "restricted" of the pod security standards."""
    found = [name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name)]
    pod = spec.get("securityContext", {})
    for each in (*spec["containers"], *spec.get("initContainers", ())):
        own = each.get("securityContext", {})
        wanted = {
            "privileged": own.get("privileged", False) is False,
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "capabilities": own.get("capabilities", {}).get("drop") == ["ALL"]
            and not own["capabilities"].get("add"),
            "runAsNonRoot": own.get("runAsNonRoot", pod.get("runAsNonRoot")) is True,
            "runAsUser": own.get("runAsUser", pod.get("runAsUser")) != 0,
            "seccompProfile": own.get("seccompProfile", pod.get("seccompProfile"))
            == {"type": "RuntimeDefault"},
            "hostPort": not any("hostPort" in port for port in each.get("ports", ())),
            "readOnlyRootFilesystem": own.get("readOnlyRootFilesystem") is True,
        }
        found += [name for name, fine in wanted.items() if not fine]
    kinds = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "projected", "secret"}
    for volume in spec["volumes"]:
        found += sorted(volume.keys() - {"name", "persistentVolumeClaim"} - kinds)
    return found


@pytest.mark.parametrize("name", CLUSTERS)
def test_pods_are_of_the_restricted_level(name: str) -> None:
    assert violations(spec_of(an_order(2, CLUSTERS[name]))) == []
    assert violations(spec_of(an_order(2, HOSTED))) == ["hostNetwork"], "where it is asked for"


def test_a_leg_is_begun_by_a_patch_alone() -> None:
    order = an_order(2)
    assert leg.made(order)["spec"]["suspend"] is True
    assert labels.READY not in leg.made(order)["metadata"]["annotations"]
    assert leg.let_go(order.cluster)["spec"] == {"suspend": False}
    queued = leg.let_go(CLUSTERS["kueue"])
    assert "spec" not in queued, "Kueue lets it go"
    assert queued["metadata"]["labels"][leg.QUEUE] == "research"
    assert leg.QUEUE not in leg.made(an_order(2, CLUSTERS["kueue"]))["metadata"]["labels"]


def test_the_hard_stop_counts_from_when_a_pod_has_a_node() -> None:
    order = an_order(2)
    job = leg.made(order)["spec"]
    assert spec_of(order)["activeDeadlineSeconds"] == 3600 + told.SPARE_S
    assert job["activeDeadlineSeconds"] == 3600 + told.SPARE_S + leg.WAITS_S
    queued = leg.made(an_order(2, CLUSTERS["kueue"]))["spec"]
    assert queued["activeDeadlineSeconds"] == 3600 + told.SPARE_S


def test_no_rank_is_made_again_and_the_others_stay() -> None:
    job = leg.made(an_order(3))["spec"]
    assert (job["completions"], job["parallelism"], job["maxFailedIndexes"]) == (3, 3, 3)
    assert job["backoffLimitPerIndex"] == 0
    assert job["podReplacementPolicy"] == "Failed"
    actions = {rule["action"] for rule in job["podFailurePolicy"]["rules"]}
    assert actions == {"FailIndex"}, "Ignore would make it again, FailJob would end the others"


def test_what_pods_are_told_is_in_no_spec() -> None:
    luggage = Luggage(kit="https://b/kit?signature", sha256="0" * 64, tell=("https://b/t?sig",))
    order = an_order(2)
    boot = told.boot(order.request, "s3://b/store", 3, "the-key", "kubernetes")
    files = told.files(boot, luggage, "tradewind.providers.kubernetes")
    made = dict(beside.made(order, "uid-1", files))
    assert "the-key" in str(made["secrets"])
    for body in (leg.made(order), made["services"]):
        assert not any(word in str(body) for word in ("the-key", "signature", "sig'"))
    for body in made.values():
        (owner,) = body["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("Job", "uid-1")


def test_one_machine_needs_no_service() -> None:
    assert [kind for kind, _ in beside.made(an_order(1), "u", {})] == ["secrets"]
    kinds = [kind for kind, _ in beside.made(an_order(2, CLUSTERS["volcano"]), "u", {})]
    assert kinds == ["secrets", "services", "podgroups"]
    jobset = a_cluster(jobset=True)
    assert [kind for kind, _ in beside.made(an_order(2, jobset), "u", {})] == ["secrets"]


def test_nodes_are_chosen_as_the_offer_says() -> None:
    spec = spec_of(an_order(1))
    assert spec["nodeSelector"] == GPU["selector"]
    assert spec["tolerations"] == GPU["tolerations"]
    (container,) = spec["containers"]
    assert container["resources"] == {"requests": GPU["resources"], "limits": GPU["resources"]}
    (with_rdma,) = spec_of(an_order(2, CLUSTERS["rdma"]))["containers"]
    assert with_rdma["resources"]["limits"]["rdma/ib"] == "1"
    (alone,) = spec_of(an_order(1, CLUSTERS["rdma"]))["containers"]
    assert "rdma/ib" not in alone["resources"]["limits"]


@pytest.mark.parametrize("layout", [{"selector": "a=b"}, {"resources": {"cpu": 4}}, 7])
def test_a_way_that_cannot_be_placed_is_refused(layout: Any) -> None:
    with pytest.raises(Refused, match="cannot be placed"):
        leg.made(an_order(layout=layout))


@pytest.mark.parametrize(
    ("cluster", "market", "wanted"),
    [
        (a_cluster(kind="gke", grace_s=60), "spot", 15),
        (a_cluster(kind="gke", grace_s=60), "on_demand", 60),
        (a_cluster(kind="gke", grace_s=10), "spot", 10),
        (a_cluster(kind="eks", grace_s=60), "spot", 60),
        (a_cluster(kind="eks", grace_s=600), "spot", 120),
        (a_cluster(kind="eks", grace_s=600), "on_demand", 600),
        (a_cluster(kind="aks", grace_s=60), "spot", 30),
        (a_cluster(grace_s=600), "spot", 600),
    ],
)
def test_a_pod_counts_on_the_grace_that_it_is_given(
    cluster: Cluster, market: str, wanted: int
) -> None:
    assert grace_s(cluster, market) == wanted


def test_names_are_labels_of_dns_however_long_the_run_s() -> None:
    order = an_order(4, run_id="Run_With.A-Very-Long-Name-" + "x" * 200)
    assert len(f"{order.name}-w-0-99999-abcde") <= 63
    assert order.name == order.name.lower()
    for value in order.labels.values():
        assert labels._VALUE.fullmatch(value)
    assert labels.launch_of(order.labels, order.stamps) == labels.Launch(
        order.request.run_id, order.request.launch_id, 1, 4
    )


def test_a_launch_has_one_name_and_another_has_another() -> None:
    one = labels.name_of(OWNER, an_order().request)
    assert one == labels.name_of(OWNER, an_order().request)
    assert one != labels.name_of("f" * 16, an_order().request)
    assert one != labels.name_of(OWNER, an_order(leg=2).request)


@pytest.mark.parametrize("place", ["home", "a-b", "arn:aws:eks:us-east-1:1:cluster/Prod", "ü"])
def test_ids_of_machines_lead_back(place: str) -> None:
    clusters = {place: 1, "other": 2}
    name = an_order().name
    assert labels.parted(labels.machine_id(place, name, 7), clusters) == (place, name, 7)
    for odd in ("", "-", "kubernetes-home-x-0", f"kubernetes-{PLACE}-{name}-x", f"aws-{name}-1"):
        assert labels.parted(odd, clusters) is None


def test_pods_of_a_leg_are_kept_together_and_not_moved_about() -> None:
    def stamps(nodes: int, cluster: Cluster) -> dict[str, str]:
        found: dict[str, str] = leg.made(an_order(nodes, cluster))["spec"]["template"]["metadata"][
            "annotations"
        ]
        return found

    topology = "kueue.x-k8s.io/podset-preferred-topology"
    assert stamps(2, CLUSTERS["topology"])[topology] == "example.com/rack"
    assert topology not in stamps(1, CLUSTERS["topology"])
    assert topology not in stamps(2, CLUSTERS["plain"])
    assert stamps(1, CLUSTERS["plain"])["karpenter.sh/do-not-disrupt"] == "true"


@pytest.mark.parametrize(
    ("market", "reads_nodes", "stays"),
    [("spot", True, True), ("spot", False, False), ("on_demand", False, True)],
)
def test_a_spot_pod_whose_node_s_mark_cannot_be_read_may_be_evicted(
    market: str, reads_nodes: bool, stays: bool
) -> None:
    """Else Karpenter would leave it there until its machine is gone."""
    order = an_order(cluster=a_cluster(nodes=reads_nodes))
    order.request = replace(order.request, way=replace(order.request.way, market=market))
    notes = leg.made(order)["spec"]["template"]["metadata"]["annotations"]
    assert ("karpenter.sh/do-not-disrupt" in notes) == stays
    assert notes["cluster-autoscaler.kubernetes.io/safe-to-evict"] == "false"
