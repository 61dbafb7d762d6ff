"""Who may do what."""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.kubernetes.asking import job, jobs_at, pods_at
from tests.cloud.faces.kubernetes.control import Control

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUP = "rbac.authorization.k8s.io"


def role(name: str, *rules: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, kind: str, to: str, who: dict[str, str]) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": to},
        "subjects": [who],
    }


def rule(verbs: str, group: str, resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def test_nobody_and_somebody_unknown(cluster: Control, space: str) -> None:
    status, answer, _ = cluster.ask("GET", pods_at(space), token="wrong")
    assert (status, answer["message"], answer["reason"]) == (401, "Unauthorized", "Unauthorized")
    token = cluster.token("short", ["system:masters"])
    assert cluster.ask("GET", pods_at(space), token=token)[0] == 200
    cluster.expire("short")
    assert cluster.ask("GET", pods_at(space), token=token)[0] == 401


def test_rights_of_one_namespace(cluster: Control, space: str) -> None:
    token = cluster.token(f"ann-{space}")
    status, answer, _ = cluster.ask("GET", jobs_at(space), token=token)
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert answer["message"] == (
        f'jobs.batch is forbidden: User "ann-{space}" cannot list resource "jobs" in API group '
        f'"batch" in the namespace "{space}"'
    )
    base = f"{RBAC}/namespaces/{space}"
    cluster.make(f"{base}/roles", role("runner", rule("create get list", "batch", "jobs")))
    who = {"kind": "User", "name": f"ann-{space}", "apiGroup": GROUP}
    cluster.make(f"{base}/rolebindings", binding("ann", "Role", "runner", who))
    assert cluster.ask("POST", jobs_at(space), job("one"), token=token)[0] == 201
    status, answer, _ = cluster.ask("DELETE", jobs_at(space, "one"), token=token)
    assert status == 403
    assert 'jobs.batch "one" is forbidden' in answer["message"]
    assert cluster.ask("GET", jobs_at("default"), token=token)[0] == 403
    _, answer, _ = cluster.ask("GET", "/api/v1/nodes", token=token)
    assert answer["message"] == (
        f'nodes is forbidden: User "ann-{space}" cannot list resource "nodes" in API group "" at '
        "the cluster scope"
    )
    assert cluster.ask("GET", "/apis", token=token)[0] == 200


def test_asking_what_one_may(cluster: Control, space: str) -> None:
    token = cluster.token(f"bob-{space}")
    base = f"{RBAC}/namespaces/{space}"
    who = {"kind": "User", "name": f"bob-{space}", "apiGroup": GROUP}
    cluster.make(f"{base}/rolebindings", binding("bob", "ClusterRole", "view", who))

    def may(verb: str, resource: str, group: str = "") -> bool:
        asked = {"namespace": space, "verb": verb, "resource": resource, "group": group}
        body = {"spec": {"resourceAttributes": asked}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        status, answer, _ = cluster.ask("POST", path, body, token=token)
        assert status == 201
        return bool(answer["status"]["allowed"])

    assert may("list", "pods")
    assert not may("create", "jobs", "batch")
    assert not may("list", "secrets")
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    _, answer, _ = cluster.ask("POST", path, {"spec": {"namespace": space}}, token=token)
    told = answer["status"]["resourceRules"]
    assert any("pods" in each["resources"] for each in told)


def test_nobody_grants_what_they_have_not_got(cluster: Control, space: str) -> None:
    token = cluster.token(f"eve-{space}")
    base = f"{RBAC}/namespaces/{space}"
    own = [rule("create get", GROUP, "roles rolebindings"), rule("get list", "batch", "jobs")]
    cluster.make(f"{base}/roles", role("small", *own))
    who = {"kind": "User", "name": f"eve-{space}", "apiGroup": GROUP}
    cluster.make(f"{base}/rolebindings", binding("eve", "Role", "small", who))
    less = role("less", rule("get", "batch", "jobs"))
    assert cluster.ask("POST", f"{base}/roles", less, token=token)[0] == 201
    more = role("more", rule("get delete", "batch", "jobs"))
    status, answer, _ = cluster.ask("POST", f"{base}/roles", more, token=token)
    assert status == 403
    assert "is attempting to grant RBAC permissions not currently held:" in answer["message"]
    admin = binding("mine", "ClusterRole", "cluster-admin", who)
    assert cluster.ask("POST", f"{base}/rolebindings", admin, token=token)[0] == 403


def test_a_service_account_is_somebody(cluster: Control, space: str) -> None:
    made = {"metadata": {"name": "runner"}}
    cluster.make(f"/api/v1/namespaces/{space}/serviceaccounts", made)
    path = f"/api/v1/namespaces/{space}/serviceaccounts/runner/token"
    token = cluster.make(path, {"spec": {"expirationSeconds": 600}})["status"]["token"]
    assert cluster.ask("GET", jobs_at(space), token=token)[0] == 403
    who = {"kind": "ServiceAccount", "name": "runner", "namespace": space}
    base = f"{RBAC}/namespaces/{space}"
    cluster.make(f"{base}/rolebindings", binding("runner", "ClusterRole", "edit", who))
    assert cluster.ask("GET", jobs_at(space), token=token)[0] == 200
    cluster.ask("DELETE", f"/api/v1/namespaces/{space}/serviceaccounts/runner")
    assert cluster.ask("GET", jobs_at(space), token=token)[0] == 401


def test_calls_say_who_asked_for_what(cluster: Control, space: str) -> None:
    token = cluster.token(f"ida-{space}", ["system:masters"])
    cluster.ask("GET", jobs_at(space), token=token)
    cluster.ask("POST", jobs_at(space), job("one"), token=token)
    mine = [each["action"] for each in cluster.calls() if each["user"] == f"ida-{space}"]
    assert mine == ["list jobs", "create jobs"]
