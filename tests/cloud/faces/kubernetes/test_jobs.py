"""The Job controller."""

from __future__ import annotations

from tests.cloud.faces.kubernetes.asking import (
    get,
    job,
    jobs_at,
    names,
    pods_at,
    pods_of,
    told,
    true,
    wait_job,
    wait_pods,
)
from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually

MERGE = "application/merge-patch+json"
IGNORE = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]


def rank(cluster: Control, space: str, index: int) -> str:
    """The name of the newest pod of an index that lives."""

    def look() -> str:
        for each in pods_of(cluster, space):
            own = each["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
            if own == str(index) and each["status"]["phase"] == "Running":
                return str(each["metadata"]["name"])
        return ""

    return eventually(look)


def test_ranks_know_who_they_are(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", count=2))
    found = wait_pods(cluster, space, "Running", 2)
    for index, each in enumerate(sorted(found, key=lambda one: str(one["spec"]["hostname"]))):
        meta, spec = each["metadata"], each["spec"]
        assert meta["labels"]["batch.kubernetes.io/job-completion-index"] == str(index)
        assert meta["labels"]["batch.kubernetes.io/job-name"] == "one"
        assert (spec["hostname"], meta["generateName"]) == (f"one-{index}", f"one-{index}-")
        env = spec["containers"][0]["env"]
        assert [one["name"] for one in env] == ["JOB_COMPLETION_INDEX"]
        assert meta["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    for index in (0, 1):
        cluster.finish(space, rank(cluster, space, index), 0)
    done = wait_job(cluster, space, "one", "Complete")
    assert done["status"]["completedIndexes"] == "0,1"
    assert done["status"]["succeeded"] == 2
    assert told(done, "Complete")["reason"] == "CompletionsReached"
    assert all("finalizers" not in each["metadata"] for each in pods_of(cluster, space))


def test_a_rank_that_fails_is_not_made_again_and_others_stay(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", count=3))
    wait_pods(cluster, space, "Running", 3)
    cluster.finish(space, rank(cluster, space, 1), 7)
    eventually(lambda: get(cluster, jobs_at(space, "one"))["status"].get("failedIndexes") == "1")
    assert get(cluster, jobs_at(space, "one"))["status"]["active"] == 2
    for index in (0, 2):
        cluster.finish(space, rank(cluster, space, index), 0)
    over = wait_job(cluster, space, "one", "Failed")
    assert told(over, "Failed")["reason"] == "FailedIndexes"
    assert over["status"]["completedIndexes"] == "0,2"
    assert len(pods_of(cluster, space)) == 3


def test_too_many_failed_indexes(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", count=3, maxFailedIndexes=0))
    wait_pods(cluster, space, "Running", 3)
    cluster.finish(space, rank(cluster, space, 0), 1)
    over = wait_job(cluster, space, "one", "Failed")
    assert told(over, "Failed")["reason"] == "MaxFailedIndexesExceeded"
    assert told(over, "FailureTarget")["reason"] == "MaxFailedIndexesExceeded"


def test_a_plain_job_tries_again_until_its_limit(cluster: Control, space: str) -> None:
    plain = job("one", backoffLimit=1, backoffLimitPerIndex=None, maxFailedIndexes=None)
    plain["spec"] |= {"completionMode": "NonIndexed"}
    cluster.make(jobs_at(space), plain)
    for count in (1, 2):
        (last,) = wait_pods(cluster, space, "Running")
        cluster.finish(space, last["metadata"]["name"], 1)
        wait_pods(cluster, space, "Failed", count)
    over = wait_job(cluster, space, "one", "Failed")
    assert told(over, "Failed")["message"] == "Job has reached the specified backoff limit"
    assert over["status"]["failed"] == 2


def test_what_a_failure_policy_does(cluster: Control, space: str) -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        *IGNORE,
    ]
    cluster.make(jobs_at(space), job("one", count=2, podFailurePolicy={"rules": rules}))
    wait_pods(cluster, space, "Running", 2)
    first = rank(cluster, space, 0)
    cluster.evict(space, first)
    eventually(lambda: first not in names(pods_of(cluster, space)))
    assert rank(cluster, space, 0) != first
    failing = rank(cluster, space, 1)
    cluster.finish(space, failing, 42)
    over = wait_job(cluster, space, "one", "Failed")
    assert told(over, "Failed")["reason"] == "PodFailurePolicy"
    assert told(over, "Failed")["message"] == (
        f"Container main for pod {space}/{failing} failed with exit code 42 matching FailJob rule "
        "at index 0"
    )


def test_the_deadline_ends_all_of_it(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", count=2, activeDeadlineSeconds=1))
    over = wait_job(cluster, space, "one", "Failed")
    assert told(over, "Failed")["reason"] == "DeadlineExceeded"
    assert over["status"].get("active", 0) == 0
    eventually(lambda: not pods_of(cluster, space, "Running"))


def test_suspended_and_resumed(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", suspend=True))
    wait_job(cluster, space, "one", "Suspended")
    assert pods_of(cluster, space) == []
    cluster.ask("PATCH", jobs_at(space, "one"), {"spec": {"suspend": False}}, sort=MERGE)
    wait_pods(cluster, space, "Running")
    resumed = get(cluster, jobs_at(space, "one"))
    assert told(resumed, "Suspended")["reason"] == "JobResumed"
    assert resumed["status"]["startTime"]
    cluster.ask("PATCH", jobs_at(space, "one"), {"spec": {"suspend": True}}, sort=MERGE)
    eventually(lambda: not pods_of(cluster, space))
    assert "startTime" not in get(cluster, jobs_at(space, "one"))["status"]


def test_a_pod_that_is_deleted_is_counted_when_it_has_ended(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", count=2))
    wait_pods(cluster, space, "Running", 2)
    cluster.dials(end_s=0.2)
    try:
        first = rank(cluster, space, 0)
        status, answer, _ = cluster.ask("DELETE", pods_at(space, first))
        assert (status, answer["metadata"]["deletionGracePeriodSeconds"]) == (200, 30)
        eventually(lambda: get(cluster, jobs_at(space, "one"))["status"]["terminating"] == 1)
        eventually(lambda: first not in names(pods_of(cluster, space)))
    finally:
        cluster.dials(end_s=0.0)
    eventually(lambda: get(cluster, jobs_at(space, "one"))["status"].get("failedIndexes") == "0")
    assert len(pods_of(cluster, space, "Running")) == 1


def test_a_job_that_is_over_goes_by_itself(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", ttlSecondsAfterFinished=0))
    first = rank(cluster, space, 0)
    assert first in names(pods_of(cluster, space))
    cluster.finish(space, first, 0)
    assert eventually(lambda: cluster.left(space) == []), "the Job and its pod go"


def test_everything_that_is_kept_passes_the_schemas(cluster: Control, space: str) -> None:
    import kubernetes_validate

    cluster.make(jobs_at(space), job("one", count=2, podFailurePolicy={"rules": IGNORE}))
    wait_pods(cluster, space, "Running", 2)
    cluster.finish(space, rank(cluster, space, 0), 0)
    cluster.finish(space, rank(cluster, space, 1), 1)
    wait_job(cluster, space, "one", "Failed")
    kinds = ("jobs.batch", "pods", "events", "serviceaccounts")
    found = [cluster.objects(kind, space)[0] for kind in kinds]
    for each in [*found, cluster.objects("nodes")[0], cluster.objects("namespaces")[0]]:
        kubernetes_validate.validate(each, "1.36", strict=True)
    assert true(get(cluster, jobs_at(space, "one")), "FailureTarget")
