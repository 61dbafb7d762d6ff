"""Which node a pod gets, and what is said when it gets none."""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.kubernetes.asking import get, job, jobs_at, pod, pods_at, told, wait_pods
from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually


def scheduled(cluster: Control, space: str, name: str) -> str:
    return str(eventually(lambda: get(cluster, pods_at(space, name))["spec"].get("nodeName")))


def refused(cluster: Control, space: str, name: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        found = told(get(cluster, pods_at(space, name)), "PodScheduled")
        return found if found.get("status") == "False" else {}

    return eventually(look)


def test_room_is_booked_and_given_back(cluster: Control, space: str, node: str) -> None:
    cluster.make(pods_at(space), pod("one", node=node, gpus=2))
    assert scheduled(cluster, space, "one") == node
    cluster.make(pods_at(space), pod("two", node=node, gpus=1))
    why = refused(cluster, space, "two")
    count = len(cluster.names("nodes"))
    assert why["reason"] == "Unschedulable"
    assert why["message"].startswith(
        f"0/{count} nodes are available: 1 Insufficient nvidia.com/gpu, "
    )
    assert f"{count - 1} node(s) didn't match Pod's node affinity/selector" in why["message"]
    assert ("FailedScheduling", why["message"]) in cluster.reasons(space)
    cluster.finish(space, "one", 0)
    assert scheduled(cluster, space, "two") == node


def test_pods_that_come_at_once_do_not_share_room(cluster: Control, space: str, node: str) -> None:
    cluster.make(jobs_at(space), job("one", node=node, gpus=1, count=4))
    wait_pods(cluster, space, "Running", 2)
    eventually(
        lambda: (
            len([one for one in cluster.objects("pods", space) if told(one, "PodScheduled")]) == 4
        )
    )
    bound = [one for one in cluster.objects("pods", space) if one["spec"].get("nodeName")]
    assert len(bound) == 2


def test_taints_keep_pods_away(cluster: Control, space: str, node: str) -> None:
    bad = pod("one", node=node)
    del bad["spec"]["tolerations"]
    cluster.make(pods_at(space), bad)
    words = f"1 node(s) had untolerated taint(s) {{own: {node}}}"
    assert words in refused(cluster, space, "one")["message"]
    cluster.make(pods_at(space), pod("two", node=node))
    assert scheduled(cluster, space, "two") == node


def test_a_cordon(cluster: Control, space: str, node: str) -> None:
    cluster.cordon(node)
    cluster.make(pods_at(space), pod("one", node=node))
    assert "1 node(s) were unschedulable" in refused(cluster, space, "one")["message"]
    cluster.cordon(node, on=False)
    assert scheduled(cluster, space, "one") == node


def test_required_affinity(cluster: Control, space: str, node: str) -> None:
    def one(name: str, operator: str, *values: str) -> None:
        rule = {"key": "own", "operator": operator, "values": list(values)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        made = pod(name, node=node, affinity={"nodeAffinity": affinity})
        cluster.make(pods_at(space), made)

    one("good", "In", node, "other")
    one("bad", "NotIn", node)
    assert scheduled(cluster, space, "good") == node
    assert refused(cluster, space, "bad")


def test_a_gate_holds_a_pod_until_it_is_taken_away(cluster: Control, space: str) -> None:
    cluster.make(pods_at(space), pod("one", schedulingGates=[{"name": "example.com/gang"}]))
    assert refused(cluster, space, "one")["reason"] == "SchedulingGated"
    patch = {"spec": {"schedulingGates": None}}
    merge = "application/merge-patch+json"
    assert cluster.ask("PATCH", pods_at(space, "one"), patch, sort=merge)[0] == 200
    assert scheduled(cluster, space, "one")


def test_a_node_that_joins_is_used(cluster: Control, space: str) -> None:
    name = f"late-{space}"
    cluster.make(pods_at(space), pod("one", node=name))
    assert refused(cluster, space, "one")
    cluster.add(name, {}, {"own": name})
    assert scheduled(cluster, space, "one") == name
    cluster.vanish(name)


def test_a_higher_priority_takes_the_room(cluster: Control, space: str, node: str) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    cluster.make(path, {"metadata": {"name": f"high-{space}"}, "value": 1000})
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    low = job("low", node=node, gpus=2, podFailurePolicy={"rules": rules})
    cluster.make(jobs_at(space), low)
    wait_pods(cluster, space, "Running")
    cluster.dials(end_s=0.3)
    try:
        cluster.make(
            pods_at(space), pod("high", node=node, gpus=2, priorityClassName=f"high-{space}")
        )
        (victim,) = eventually(
            lambda: [
                each
                for each in cluster.objects("pods", space)
                if told(each, "DisruptionTarget").get("reason") == "PreemptionByScheduler"
            ]
        )
        assert victim["metadata"]["deletionTimestamp"]
        assert scheduled(cluster, space, "high") == node
    finally:
        cluster.dials(end_s=0.0)


def test_volcano_places_all_or_none(cluster: Control, space: str, node: str) -> None:
    cluster.dials(volcano=True)
    try:
        path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{space}/podgroups"
        cluster.make(path, {"metadata": {"name": "gang"}, "spec": {"minMember": 2}})

        def one(name: str) -> None:
            made = pod(name, node=node, gpus=2, schedulerName="volcano")
            made["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "gang"}
            cluster.make(pods_at(space), made)

        one("a")
        one("b")
        words = refused(cluster, space, "a")["message"]
        assert "pod group is not ready, 2 minAvailable" in words
        assert not get(cluster, pods_at(space, "b"))["spec"].get("nodeName")
        other = f"{node}-b"
        cluster.add(other, {"nvidia.com/gpu": "2"}, {"own": node})
        assert {scheduled(cluster, space, each) for each in ("a", "b")} == {node, other}
        cluster.vanish(other)
    finally:
        cluster.dials(volcano=False)


def test_a_scheduler_that_is_not_there_says_nothing(cluster: Control, space: str) -> None:
    cluster.make(pods_at(space), pod("one", schedulerName="volcano"))
    cluster.make(pods_at(space), pod("two"))
    scheduled(cluster, space, "two")
    assert "conditions" not in get(cluster, pods_at(space, "one"))["status"]
