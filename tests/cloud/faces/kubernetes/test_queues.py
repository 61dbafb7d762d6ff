"""JobSets, and queues as Kueue has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cloud.faces.kubernetes.asking import (
    get,
    job,
    jobs_at,
    names,
    pods_of,
    told,
    true,
    wait_job,
    wait_pods,
)
from tests.cloud.faces.kubernetes.control import Control, Obj
from tests.eventually import eventually

QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.fixture(autouse=True)
def _installed(cluster: Control) -> Iterator[None]:
    cluster.dials(jobset=True, kueue=True)
    yield
    cluster.dials(jobset=False, kueue=False)


def jobset(name: str, count: int, **more: object) -> Obj:
    part = {"name": "w", "replicas": 1, "template": {"spec": job("x", count=count)["spec"]}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [part], **more},
    }


def jobsets(space: str, name: str = "") -> str:
    base = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{space}/jobsets"
    return f"{base}/{name}" if name else base


def queued(name: str, queue: str = "queue", **more: object) -> Obj:
    made = job(name, **more)  # type: ignore[arg-type]
    made["metadata"]["labels"] = {QUEUE: queue}
    return made


def test_a_jobset_is_jobs_and_a_service(cluster: Control, space: str) -> None:
    cluster.make(jobsets(space), jobset("set", 2))
    found = wait_pods(cluster, space, "Running", 2)
    assert cluster.names("jobs.batch", space) == ["set-w-0"]
    assert {each["spec"]["hostname"] for each in found} == {"set-w-0-0", "set-w-0-1"}
    assert {each["spec"]["subdomain"] for each in found} == {"set"}
    assert found[0]["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == "set"
    (service,) = cluster.objects("services", space)
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    for each in names(found):
        cluster.finish(space, each, 0)
    over = eventually(
        lambda: set_ if true(set_ := get(cluster, jobsets(space, "set")), "Completed") else {}
    )
    assert over["status"]["terminalState"] == "Completed"
    assert told(over, "Completed")["reason"] == "AllJobsCompleted"
    cluster.ask("DELETE", f"{jobsets(space, 'set')}?propagationPolicy=Background")
    eventually(lambda: cluster.left(space) == [])


def test_a_jobset_fails_with_its_job_or_tries_again(cluster: Control, space: str) -> None:
    cluster.make(jobsets(space), jobset("set", 1, failurePolicy={"maxRestarts": 1}))
    (first,) = names(wait_pods(cluster, space, "Running"))
    cluster.finish(space, first, 1)
    eventually(lambda: get(cluster, jobsets(space, "set"))["status"].get("restarts") == 1)
    (second,) = eventually(
        lambda: [each for each in names(pods_of(cluster, space, "Running")) if each != first]
    )
    cluster.finish(space, second, 1)
    over = eventually(
        lambda: found if true(found := get(cluster, jobsets(space, "set")), "Failed") else {}
    )
    assert told(over, "Failed")["reason"] == "ReachedMaxRestarts"


def test_a_job_waits_for_quota_and_is_then_admitted(cluster: Control, space: str) -> None:
    cluster.queue(f"cq-{space}", namespace=space, quota={"nvidia.com/gpu": "4"})
    cluster.make(jobs_at(space), queued("one", gpus=3))
    wait_pods(cluster, space, "Running")
    cluster.make(jobs_at(space), queued("two", gpus=2, backoffLimitPerIndex=1))

    def work(name: str) -> Obj:
        for each in cluster.objects("workloads.kueue.x-k8s.io", space):
            if each["metadata"]["ownerReferences"][0]["name"] == name:
                return each
        return {"status": {}}

    why = eventually(lambda: told(work("two"), "QuotaReserved"))
    assert (why["status"], why["reason"]) == ("False", "Pending")
    assert why["message"] == (
        "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in "
        "flavor default-flavor, 1 more needed"
    )
    assert get(cluster, jobs_at(space, "two"))["spec"]["suspend"] is True
    (running,) = names(pods_of(cluster, space))
    cluster.finish(space, running, 0)
    wait_job(cluster, space, "one", "Complete")
    eventually(lambda: true(work("one"), "Finished"))
    eventually(lambda: true(work("two"), "Admitted"))
    assert work("two")["status"]["admission"]["clusterQueue"] == f"cq-{space}"
    wait_pods(cluster, space, "Running")
    path = f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{space}/workloads"
    assert get(cluster, path)["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    cluster.dials(requeue_s=0.05)
    cluster.evict_workload(space, "two")
    eventually(lambda: told(work("two"), "Evicted"))
    assert told(work("two"), "Evicted")["reason"] == "Preempted"
    eventually(lambda: true(work("two"), "Admitted"))
    wait_pods(cluster, space, "Running")
    cluster.ask("DELETE", f"{jobs_at(space, 'two')}?propagationPolicy=Background")
    eventually(lambda: [work("two")] == [{"status": {}}])


def test_whoever_is_evicted_has_failed_ranks_where_none_is_tried_again(
    cluster: Control, space: str
) -> None:
    """As the real Job controller counts pods that it ended itself to suspend a Job."""
    cluster.queue(f"cq-{space}", namespace=space, quota={"nvidia.com/gpu": "4"})
    cluster.make(jobs_at(space), queued("one", gpus=3))
    wait_pods(cluster, space, "Running")
    cluster.evict_workload(space, "one")
    over = wait_job(cluster, space, "one", "Failed")
    assert told(over, "Failed")["reason"] == "FailedIndexes"


def test_what_can_never_be_admitted_says_why(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), queued("none", "nothing"))
    cluster.queue(f"cq-{space}", namespace=space, quota={"nvidia.com/gpu": "4"})
    cluster.make(jobs_at(space), queued("much", gpus=8))

    def words() -> set[str]:
        found = cluster.objects("workloads.kueue.x-k8s.io", space)
        return {told(each, "QuotaReserved").get("message", "") for each in found}

    expected = {
        "LocalQueue nothing doesn't exist",
        "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor "
        "default-flavor, previously considered podsets requests (0) + current podset request (8) > "
        "maximum capacity (4)",
    }
    assert eventually(lambda: found if (found := words()) == expected else set()) == expected


def test_a_jobset_goes_through_a_queue(cluster: Control, space: str) -> None:
    cluster.queue(f"cq-{space}", namespace=space, quota={"pods": "1"})
    made = jobset("set", 2)
    made["metadata"]["labels"] = {QUEUE: "queue"}
    cluster.make(jobsets(space), made)
    eventually(lambda: cluster.objects("workloads.kueue.x-k8s.io", space))
    assert get(cluster, jobsets(space, "set"))["spec"]["suspend"] is True
    cluster.queue(f"cq-{space}", namespace=space, quota={"pods": "2"})
    wait_pods(cluster, space, "Running", 2)


def test_without_kueue_a_queues_name_means_nothing(cluster: Control, space: str) -> None:
    cluster.dials(kueue=False)
    cluster.make(jobs_at(space), queued("one"))
    wait_pods(cluster, space, "Running")
