"""What the API server does not take, in its words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud.faces.kubernetes.asking import job, jobs_at, pod, pods_at
from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually

SECURE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def at(value: Any, path: str, new: Any) -> Any:
    """With one field changed; None takes it away."""
    *parts, last = [int(each) if each.isdigit() else each for each in path.split(".")]
    inner = value
    for each in parts:
        inner = inner.setdefault(each, {}) if isinstance(inner, dict) else inner[each]
    if new is None:
        del inner[last]
    else:
        inner[last] = new
    return value


POD = "spec.template.spec"
MAIN = f"{POD}.containers.0"
RULES = "spec.podFailurePolicy"


@pytest.mark.parametrize(
    ("path", "new", "status", "words"),
    [
        ("spec.nothing", 1, 400, 'strict decoding error: unknown field "spec.nothing"'),
        (f"{MAIN}.comand", ["x"], 400, 'unknown field "spec.template.spec.containers[0].comand"'),
        ("spec.parallelism", "2", 400, "cannot unmarshal string into Go struct field Job.spec"),
        ("spec.template", None, 422, "spec.template: Required value"),
        ("metadata.name", "Upper_Case", 422, "a lowercase RFC 1123 subdomain must consist of"),
        ("metadata.name", "x" * 62, 422, "will not able to create pod with invalid DNS label"),
        ("metadata.labels", {"a": "x" * 64}, 422, "must be no more than 63 characters"),
        ("metadata.labels", {"a": "/"}, 422, "a valid label must be an empty string or consist"),
        (f"{POD}.restartPolicy", "Always", 422, "spec.template.spec.restartPolicy: Unsupported"),
        ("spec.maxFailedIndexes", 2, 422, "must be less than or equal to completions"),
        ("spec.completionMode", "NonIndexed", 422, "requires indexed completion mode"),
        ("spec.backoffLimitPerIndex", None, 422, "spec.backoffLimitPerIndex: Required value"),
        (f"{MAIN}.image", None, 422, "spec.template.spec.containers[0].image: Required value"),
        (f"{MAIN}.resources", {"limits": {"cpu": "1e"}}, 400, "quantities must match the regular"),
        (
            f"{MAIN}.resources",
            {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}},
            422,
            "must be less than or equal to cpu limit of 1",
        ),
        (
            f"{MAIN}.resources",
            {"requests": {"nvidia.com/gpu": "2"}},
            422,
            "Limit must be set for non overcommitable resources",
        ),
        (
            f"{MAIN}.volumeMounts",
            [{"name": "nothing", "mountPath": "/x"}],
            422,
            'volumeMounts[0].name: Not found: "nothing"',
        ),
        (
            f"{POD}.volumes",
            [{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}],
            422,
            'volumes[1].name: Duplicate value: "a"',
        ),
        (
            f"{POD}.tolerations",
            [{"key": "a", "operator": "Exists", "value": "b"}],
            422,
            "value must be empty when `operator` is 'Exists'",
        ),
        (
            RULES,
            {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]},
            422,
            "must not be 0 for the In operator",
        ),
        (
            RULES,
            {"rules": [{"action": "Nothing", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            422,
            'supported values: "Count", "FailIndex", "FailJob", "Ignore"',
        ),
    ],
)
def test_a_job_that_is_wrong(
    cluster: Control, space: str, path: str, new: Any, status: int, words: str
) -> None:
    found, answer, _ = cluster.ask("POST", jobs_at(space), at(job("one"), path, new))
    assert (found, answer["kind"], answer["code"]) == (status, "Status", status), answer
    assert answer["reason"] == {400: "BadRequest", 422: "Invalid"}[status]
    assert words in answer["message"]
    assert cluster.names("jobs.batch", space) == []


def test_a_failure_policy_wants_pods_that_never_restart(cluster: Control, space: str) -> None:
    bad = at(job("one", podFailurePolicy={"rules": []}), f"{POD}.restartPolicy", "OnFailure")
    _, answer, _ = cluster.ask("POST", jobs_at(space), bad)
    assert 'only "Never" is supported when podFailurePolicy is specified' in answer["message"]
    causes = answer["details"]["causes"]
    assert causes[0]["field"] == "spec.template.spec.restartPolicy"


def test_a_jobs_template_does_not_change(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one"))
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "b:1"}]
    sort = "application/json-patch+json"
    status, answer, _ = cluster.ask("PATCH", jobs_at(space, "one"), patch, sort=sort)
    assert status == 422
    assert "spec.template: Invalid value" in answer["message"]
    assert "field is immutable" in answer["message"]
    deadline = {"spec": {"activeDeadlineSeconds": 100}}
    merge = "application/merge-patch+json"
    assert cluster.ask("PATCH", jobs_at(space, "one"), deadline, sort=merge)[0] == 200


def test_the_wrong_kind_or_version(cluster: Control, space: str) -> None:
    _, answer, _ = cluster.ask("POST", jobs_at(space), job("one") | {"apiVersion": "batch/v2"})
    assert answer["message"] == (
        "the API version in the data (batch/v2) does not match the expected API version (batch/v1)"
    )
    assert cluster.ask("POST", jobs_at(space), pod("one") | {"apiVersion": "batch/v1"})[0] == 400
    moved = at(job("one"), "metadata.namespace", "default")
    _, answer, _ = cluster.ask("POST", jobs_at(space), moved)
    assert "does not match the namespace sent on the request" in answer["message"]
    assert cluster.ask("POST", "/apis/batch/v3/namespaces/default/jobs", job("x"))[0] == 404


def test_quotas(cluster: Control, space: str) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "most"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "4", "count/jobs.batch": "1"}},
    }
    cluster.make(f"/api/v1/namespaces/{space}/resourcequotas", quota)
    status, answer, _ = cluster.ask("POST", pods_at(space), pod("one", gpus=8))
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        'pods "one" is forbidden: exceeded quota: most, requested: requests.nvidia.com/gpu=8, '
        "used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=4"
    )
    cluster.make(jobs_at(space), job("one", gpus=3, count=2))
    eventually(
        lambda: any(
            reason == "FailedCreate"
            and words.startswith('Error creating: pods "one-1-')
            and "exceeded quota: most, requested: requests.nvidia.com/gpu=3" in words
            for reason, words in cluster.reasons(space)
        )
    )
    assert len(cluster.names("pods", space)) == 1
    _, answer, _ = cluster.ask("POST", jobs_at(space), job("two"))
    assert answer["message"].startswith('jobs.batch "two" is forbidden: exceeded quota: most, ')
    (kept,) = cluster.objects("resourcequotas", space)
    assert kept["status"]["used"]["requests.nvidia.com/gpu"] == "3"


def test_the_restricted_level(cluster: Control, space: str) -> None:
    strict = cluster.namespace(
        f"{space}-strict", {"pod-security.kubernetes.io/enforce": "restricted"}
    )
    status, answer, _ = cluster.ask("POST", pods_at(strict), pod("one"))
    assert status == 403
    assert answer["message"].startswith(
        'pods "one" is forbidden: violates PodSecurity "restricted:latest": '
        'allowPrivilegeEscalation != false (container "main" must set '
        "securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "
        '"main" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true'
    )
    good = at(pod("one"), "spec.containers.0.securityContext", SECURE)
    cluster.make(pods_at(strict), good)
    host = at(at(pod("two"), "spec.containers.0.securityContext", SECURE), "spec.hostNetwork", True)
    _, answer, _ = cluster.ask("POST", pods_at(strict), host)
    assert "host namespaces (hostNetwork=true)" in answer["message"]
    cluster.make(jobs_at(strict), job("bad"))
    eventually(lambda: [one for one, _ in cluster.reasons(strict) if one == "FailedCreate"])


def test_a_service_account_must_be_there(cluster: Control, space: str) -> None:
    bad = at(pod("one"), "spec.serviceAccountName", "nobody")
    _, answer, _ = cluster.ask("POST", pods_at(space), bad)
    assert answer["message"] == (
        f'pods "one" is forbidden: error looking up service account {space}/nobody: '
        'serviceaccount "nobody" not found'
    )


def test_extensions_are_held_to_their_fields(cluster: Control, space: str) -> None:
    cluster.dials(jobset=True)
    try:
        path = f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{space}/jobsets"
        part = {"name": "workers", "template": {"spec": job("x")["spec"]}}
        made = {"metadata": {"name": "set"}, "spec": {"replicatedJobs": [part], "suspended": True}}
        status, answer, _ = cluster.ask("POST", path, made)
        assert (status, "spec.suspended" in answer["message"]) == (400, True)
        made["spec"] = {"replicatedJobs": [part | {"replicas": 2, "size": 3}]}
        _, answer, _ = cluster.ask("POST", path, made)
        assert 'unknown field "spec.replicatedJobs[0].size"' in answer["message"]
    finally:
        cluster.dials(jobset=False)
