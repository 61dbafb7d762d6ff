"""What happens to nodes, and to the pods on them."""

from __future__ import annotations

from tests.cloud.faces.kubernetes.asking import (
    get,
    job,
    jobs_at,
    names,
    pod,
    pods_at,
    pods_of,
    told,
    wait_pods,
)
from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually

IGNORE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


def test_pods_of_a_node_that_vanished_are_found_later(
    cluster: Control, space: str, node: str
) -> None:
    cluster.dials(quarantine_s=3600)
    cluster.make(jobs_at(space), job("one", node=node))
    (one,) = wait_pods(cluster, space, "Running")
    cluster.vanish(node)
    assert names(pods_of(cluster, space, "Running")) == names([one])
    cluster.dials(quarantine_s=0.05)
    eventually(lambda: not pods_of(cluster, space))
    eventually(lambda: get(cluster, jobs_at(space, "one"))["status"].get("failedIndexes") == "0")


def test_a_silent_node_keeps_its_pods_terminating(cluster: Control, space: str, node: str) -> None:
    cluster.dials(toleration_s=0)
    try:
        cluster.make(jobs_at(space), job("one", node=node, podFailurePolicy=IGNORE))
        (one,) = wait_pods(cluster, space, "Running")
    finally:
        cluster.dials(toleration_s=3)
    cluster.silent(node)
    ready = eventually(
        lambda: (
            found
            if (found := told(get(cluster, f"/api/v1/nodes/{node}"), "Ready"))["status"] != "True"
            else {}
        )
    )
    assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusUnknown")
    leaving = eventually(
        lambda: (
            found
            if told(
                found := get(cluster, pods_at(space, one["metadata"]["name"])), "DisruptionTarget"
            )
            else {}
        )
    )
    assert told(leaving, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    assert leaving["metadata"]["deletionTimestamp"]
    assert leaving["status"]["phase"] == "Running"
    cluster.vanish(node)
    eventually(lambda: one["metadata"]["name"] not in cluster.names("pods", space))


def test_a_notice(cluster: Control, space: str, node: str) -> None:
    cluster.make(jobs_at(space), job("one", node=node))
    wait_pods(cluster, space, "Running")
    cluster.notice(node, grace_s=0.05)
    (ended,) = wait_pods(cluster, space, "Failed")
    assert ended["status"]["reason"] == "Terminated"
    assert told(ended, "DisruptionTarget")["reason"] == "TerminationByKubelet"
    eventually(lambda: node not in cluster.names("nodes"))


def test_a_drain_evicts_unless_a_budget_says_no(cluster: Control, space: str, node: str) -> None:
    made = pod("one", node=node)
    made["metadata"]["labels"] = {"app": "one"}
    cluster.make(pods_at(space), made)
    wait_pods(cluster, space, "Running")
    budget = {
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "one"}}},
    }
    path = f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"
    cluster.make(path, budget)
    asked = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
    status, answer, _ = cluster.ask("POST", f"{pods_at(space, 'one')}/eviction", asked)
    assert (status, answer["reason"]) == (429, "TooManyRequests")
    assert answer["message"] == "Cannot evict pod as it would violate the pod's disruption budget."
    cluster.ask("DELETE", f"{path}/all")
    cluster.drain(node)
    eventually(lambda: cluster.names("pods", space) == [])
    assert get(cluster, f"/api/v1/nodes/{node}")["spec"]["unschedulable"] is True


def test_pressure_evicts(cluster: Control, space: str, node: str) -> None:
    cluster.make(pods_at(space), pod("one", node=node))
    wait_pods(cluster, space, "Running")
    cluster.evict(space, "one", by_api=False)
    (ended,) = wait_pods(cluster, space, "Failed")
    assert ended["status"]["reason"] == "Evicted"
    assert "low on resource" in ended["status"]["message"]


def test_out_of_memory(cluster: Control, space: str) -> None:
    cluster.make(pods_at(space), pod("one"))
    wait_pods(cluster, space, "Running")
    cluster.oom(space, "one")
    (ended,) = wait_pods(cluster, space, "Failed")
    (state,) = [each["state"]["terminated"] for each in ended["status"]["containerStatuses"]]
    assert (state["reason"], state["exitCode"]) == ("OOMKilled", 137)
    assert state["startedAt"] <= state["finishedAt"]


def test_an_image_that_is_missing(cluster: Control, space: str) -> None:
    def waits(name: str) -> str:
        (state,) = [
            each["state"].get("waiting", {}).get("reason", "")
            for each in get(cluster, pods_at(space, name))["status"].get(
                "containerStatuses", [{"state": {}}]
            )
        ]
        return str(state)

    cluster.dials(pull_retry_s=0.05)
    for name, image in (("one", "registry.example/missing:1"), ("two", "Not An Image")):
        made = pod(name)
        made["spec"]["containers"][0]["image"] = image
        cluster.make(pods_at(space), made)
    eventually(lambda: waits("one") == "ErrImagePull")
    eventually(lambda: waits("one") == "ImagePullBackOff")
    eventually(lambda: waits("two") == "InvalidImageName")
    assert get(cluster, pods_at(space, "one"))["status"]["phase"] == "Pending"


def test_what_a_container_lacks(cluster: Control, space: str) -> None:
    made = pod("one")
    source = {"secretKeyRef": {"name": "later", "key": "a"}}
    made["spec"]["containers"][0]["env"] = [{"name": "A", "valueFrom": source}]
    cluster.make(pods_at(space), made)

    def waiting() -> dict[str, str]:
        told = get(cluster, pods_at(space, "one"))["status"].get("containerStatuses") or [{}]
        return dict(told[0].get("state", {}).get("waiting") or {})

    eventually(lambda: waiting().get("reason") == "CreateContainerConfigError")
    assert waiting()["message"] == 'secret "later" not found'
    cluster.make(
        f"/api/v1/namespaces/{space}/secrets",
        {"metadata": {"name": "later"}, "stringData": {"a": "b"}},
    )
    wait_pods(cluster, space, "Running")
    root = pod("two", securityContext={"runAsNonRoot": True})
    cluster.make(pods_at(space), root)
    eventually(
        lambda: (
            "image will run as root"
            in str(get(cluster, pods_at(space, "two"))["status"].get("containerStatuses"))
        )
    )
