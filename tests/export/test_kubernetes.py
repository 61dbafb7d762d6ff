"""Manifests by the published schemas, and taken by our Kubernetes equipment."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.cloud.faces.kubernetes.control import Control
from tests.cloud.faces.kubernetes.server import running
from tests.eventually import eventually
from tests.export import asking
from tradewind.export import making
from tradewind.export.exported import Refused
from tradewind.model import Job

VERSIONS = ("1.29", "1.36")
OTHERS = ("kustomize.config.k8s.io/", "jobset.x-k8s.io/", "kueue.x-k8s.io/", "keda.sh/")
"""Not Kubernetes' own: the equipment has the schemas of the last two."""
PLACES = {
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets",
    "LocalQueue": "/apis/kueue.x-k8s.io/v1beta1/namespaces/{}/localqueues",
    "Service": "/api/v1/namespaces/{}/services",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "Secret": "/api/v1/namespaces/{}/secrets",
}


def objects(name: str, **settings: str) -> list[dict[str, Any]]:
    return of(making.made("kubernetes", asking.example(name), settings).files)


def of(files: Any) -> list[dict[str, Any]]:
    texts = [file.text for path, file in files.items() if path != "kustomization.yaml"]
    return [each for text in texts for each in yaml.safe_load_all(text)]


def one(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (only,) = [each for each in found if each["kind"] == kind]
    return only


def pod_of(found: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    spec: dict[str, Any] = one(found, kind)["spec"]["template"]["spec"]
    return spec


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("labels", ["plain", "gke", "eks", "aks"])
@pytest.mark.parametrize("name", [name for name in asking.NAMES if name != "jax-tpu"])
def test_every_object_is_as_the_schemas_have_it(name: str, labels: str, version: str) -> None:
    found = objects(name, labels=labels, metrics="dcgm", storage="fast", zone="a-1")
    if name == "serve-chat":
        found += objects(name, labels=labels, disks="own")
    assert len(found) > 3
    for each in found:
        if not each["apiVersion"].startswith(OTHERS):
            kubernetes_validate.validate(each, version, strict=True)


def test_the_strictest_level_of_pod_security_is_kept() -> None:
    for found, kind in ((objects("pretrain-1.3b"), "Job"), (objects("serve-chat"), "Deployment")):
        pod = pod_of(found, kind)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            inner = container["securityContext"]
            assert inner["capabilities"] == {"drop": ["ALL"]}
            assert inner["allowPrivilegeEscalation"] is False


def test_kustomize_names_every_file() -> None:
    files = making.made("kubernetes", asking.example("serve-chat")).files
    kustomization = yaml.safe_load(files["kustomization.yaml"].text)
    assert sorted(kustomization["resources"]) == sorted(set(files) - {"kustomization.yaml"})


def test_machines_are_chosen_by_the_labels_of_their_cluster() -> None:
    def required(labels: str) -> dict[str, Any]:
        pod = pod_of(objects("serve-chat", labels=labels), "Deployment")
        node = pod["affinity"]["nodeAffinity"]
        terms = node["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        return {each["key"]: each["values"] for each in terms[0]["matchExpressions"]}

    assert required("plain")["nvidia.com/gpu.product"] == ["NVIDIA-L40S"]
    eks = required("eks")
    assert eks["karpenter.k8s.aws/instance-gpu-name"] == ["l40s"]
    assert eks["karpenter.sh/capacity-type"] == ["spot"]
    aks = pod_of(objects("serve-chat", labels="aks"), "Deployment")["tolerations"]
    assert "kubernetes.azure.com/scalesetpriority" in {each.get("key") for each in aks}


def test_keda_asks_for_what_a_replica_does_within_the_targets() -> None:
    found = objects("serve-chat", scaler="keda", prometheus="http://prom:9090")
    assert "HorizontalPodAutoscaler" not in {each["kind"] for each in found}
    spec = one(found, "ScaledObject")["spec"]
    assert spec["scaleTargetRef"]["name"] == one(found, "Deployment")["metadata"]["name"]
    (trigger,) = spec["triggers"]
    assert trigger["metadata"]["serverAddress"] == "http://prom:9090"
    assert "vllm:request_success_total" in trigger["metadata"]["query"]
    hpa = one(objects("serve-chat"), "HorizontalPodAutoscaler")["spec"]
    counts = (spec["minReplicaCount"], spec["maxReplicaCount"])
    assert counts == (hpa["minReplicas"], hpa["maxReplicas"])
    assert hpa["behavior"] == spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    milli = hpa["metrics"][0]["pods"]["target"]["averageValue"].removesuffix("m")
    assert float(trigger["metadata"]["threshold"]) == pytest.approx(int(milli) / 1000, abs=0.01)


def test_a_fraction_is_asked_for_in_place_of_the_whole() -> None:
    pod = pod_of(objects("serve-chat", resource="nvidia.com/mig-3g.40gb"), "Deployment")
    limits = pod["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/mig-3g.40gb"] == "1"
    assert "nvidia.com/gpu" not in limits


def test_the_scaler_has_the_plans_own_figures() -> None:
    asked = asking.example("serve-chat")
    assert asked.serving is not None
    pool = asked.serving.pools[0]
    scaler = one(objects("serve-chat"), "HorizontalPodAutoscaler")["spec"]
    counts = [(hour.on_demand + hour.spot) * pool.replicas for hour in pool.hours]
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (min(counts), max(counts))
    target = scaler["metrics"][0]["pods"]["target"]["averageValue"]
    assert target == f"{int(1000 * pool.rate_per_machine / pool.replicas)}m"


def test_replicas_with_disks_of_their_own_are_a_stateful_set() -> None:
    found = objects("serve-chat", disks="own")
    spec = one(found, "StatefulSet")["spec"]
    assert spec["volumeClaimTemplates"][0]["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert "PersistentVolumeClaim" not in {each["kind"] for each in found}


def test_an_accelerator_that_no_pod_can_ask_for_is_refused() -> None:
    with pytest.raises(Refused, match="TPU-v5p"):
        objects("jax-tpu")
    assert objects("jax-tpu", resource="example.com/tpu")


def test_secrets_are_references() -> None:
    asked = asking.example("pretrain-1.3b")
    job = Job(
        command="python a.py",
        secrets={"A": "kubernetes-secret:mine#token", "B": "aws-ssm:/x/y"},
    )
    made = making.made("kubernetes", replace(asked, workload=replace(asked.workload, run=job)))
    env = pod_of(of(made.files), "Job")["containers"][0]["env"]
    refs = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in env if "valueFrom" in each}
    assert refs == {
        "A": {"name": "mine", "key": "token"},
        "B": {"name": "pretrain-1-3b-secrets", "key": "B"},
    }
    assert any("B (aws-ssm:/x/y)" in note for note in made.notes)


# -- in a cluster --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("kubernetes"), bodies="none") as control:
        capacity = {"cpu": "128", "memory": "2000Gi", "nvidia.com/gpu": "8"}
        for number, product in enumerate(("NVIDIA-L40S", "NVIDIA-H200", "NVIDIA-H200")):
            control.add(f"node-{number}", capacity, {"nvidia.com/gpu.product": product})
        yield control
        assert control.status()["troubles"] == []


def applied(cluster: Control, space: str, found: list[dict[str, Any]]) -> None:
    """As kubectl does: what others need comes first."""
    order = list(PLACES)[::-1]
    for each in sorted(found, key=lambda each: order.index(each["kind"])):
        each["metadata"].setdefault("namespace", space)
        if each["kind"] == "PriorityClass":
            del each["metadata"]["namespace"]
        cluster.make(PLACES[each["kind"]].format(space), each)


def running_pods(cluster: Control, space: str) -> list[dict[str, Any]]:
    return [e for e in cluster.objects("pods", space) if e["status"].get("phase") == "Running"]


def over(cluster: Control, space: str, pods: list[dict[str, Any]]) -> None:
    for pod in pods:
        cluster.finish(space, pod["metadata"]["name"], 0)


def test_a_training_is_taken_and_ends(cluster: Control) -> None:
    space = cluster.namespace("single", {"pod-security.kubernetes.io/enforce": "restricted"})
    applied(cluster, space, objects("pretrain-1.3b"))
    (pod,) = eventually(lambda: running_pods(cluster, space))
    assert pod["spec"]["nodeName"] == "node-0"
    over(cluster, space, [pod])
    eventually(lambda: "Complete" in conditions(cluster.objects("jobs.batch", space)[0]))


def test_a_node_that_is_lost_does_not_count(cluster: Control) -> None:
    space = cluster.namespace("lost")
    found = objects("pretrain-1.3b")
    for each in found:
        if each["kind"] == "PriorityClass":
            each["metadata"]["name"] += "-lost"
    pod_of(found, "Job")["priorityClassName"] += "-lost"
    applied(cluster, space, found)
    (pod,) = eventually(lambda: running_pods(cluster, space))
    cluster.evict(space, pod["metadata"]["name"])

    def replaced() -> list[dict[str, Any]]:
        return [e for e in running_pods(cluster, space) if e["metadata"]["uid"] != uid]

    uid = pod["metadata"]["uid"]
    (again,) = eventually(replaced)
    over(cluster, space, [again])
    eventually(lambda: "Complete" in conditions(cluster.objects("jobs.batch", space)[0]))


@pytest.mark.parametrize("group", ["job", "jobset"])
def test_several_nodes_know_their_ranks_and_the_first(cluster: Control, group: str) -> None:
    cluster.dials(jobset=True)
    space = cluster.namespace(f"gang-{group}")
    found = objects("continue-70b-eu", group=group)
    node = "nodeAffinity"
    for each in found:  # the cluster's are no spot nodes: a preference, and no condition
        if each["kind"] == "PriorityClass":
            each["metadata"]["name"] += f"-{group}"
    spec = one(found, "Job" if group == "job" else "JobSet")["spec"]
    if group == "jobset":
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    pod = spec["template"]["spec"]
    pod["priorityClassName"] += f"-{group}"
    assert "preferredDuringSchedulingIgnoredDuringExecution" in pod["affinity"][node]
    applied(cluster, space, found)
    eventually(lambda: len(running_pods(cluster, space)) == 2)
    pods = running_pods(cluster, space)
    hosts = {p["spec"]["hostname"] + "." + p["spec"]["subdomain"] for p in pods}
    told = {e["name"]: e.get("value") for e in pods[0]["spec"]["containers"][0]["env"]}
    assert told["MASTER_ADDR"] in hosts
    assert '--node-rank="$JOB_COMPLETION_INDEX"' in pods[0]["spec"]["containers"][0]["command"][2]
    over(cluster, space, pods)
    eventually(lambda: "Complete" in conditions(cluster.objects("jobs.batch", space)[0]))


def test_through_kueue_it_waits_until_it_is_let_go(cluster: Control) -> None:
    cluster.dials(kueue=True)
    space = cluster.namespace("queued")
    found = objects("pretrain-1.3b", queue="gpus")
    for each in found:
        if each["kind"] == "PriorityClass":
            each["metadata"]["name"] += "-queued"
    pod_of(found, "Job")["priorityClassName"] += "-queued"
    assert one(found, "Job")["spec"]["suspend"] is True
    assert one(found, "LocalQueue")["spec"] == {"clusterQueue": "gpus"}
    applied(cluster, space, found)


def conditions(body: dict[str, Any]) -> set[str]:
    told = body.get("status", {}).get("conditions", [])
    return {each["type"] for each in told if each["status"] == "True"}
