"""The API server: objects, versions, pages, patches, deletion, watches, errors in real words."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes
import pytest
import urllib3

from tests.cloud.faces.kubernetes.asking import get, job, jobs_at, pod, pods_at
from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually

official: Any = kubernetes
MERGE = "application/merge-patch+json"


def settings(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def maps(space: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{space}/configmaps" + (f"/{name}" if name else "")


def test_the_official_client_is_led_here_by_a_kubeconfig(cluster: Control, space: str) -> None:
    with official.config.new_client_from_config(str(cluster.kubeconfig(namespace=space))) as client:
        core, batch = official.client.CoreV1Api(client), official.client.BatchV1Api(client)
        assert official.client.VersionApi(client).get_code().git_version.startswith("v1.36")
        batch.create_namespaced_job(space, job("one"))
        (made,) = eventually(lambda: core.list_namespaced_pod(space).items)
        assert made.metadata.labels["batch.kubernetes.io/job-name"] == "one"
        assert {each.metadata.name for each in core.list_node().items} >= {"cpu-0", "gpu-0"}


def test_a_certificate_is_somebody(cluster: Control, space: str) -> None:
    user = cluster.certificate("cert-user", ["system:masters"])
    path = cluster.kubeconfig(namespace=space, user=user)
    with official.config.new_client_from_config(str(path)) as client:
        made = official.client.AuthenticationV1Api(client).create_self_subject_review(
            {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        )
    assert made.status.user_info.username == "cert-user"
    assert "system:masters" in made.status.user_info.groups


def test_discovery_tells_what_is_installed(cluster: Control) -> None:
    def groups() -> set[str]:
        return {each["name"] for each in get(cluster, "/apis")["groups"]}

    assert {"batch", "policy"} <= groups()
    assert "kueue.x-k8s.io" not in groups()
    assert cluster.ask("GET", "/apis/kueue.x-k8s.io/v1beta1")[0] == 404
    cluster.dials(kueue=True)
    try:
        found = get(cluster, "/apis/kueue.x-k8s.io/v1beta1")["resources"]
        assert "localqueues" in {each["name"] for each in found}
    finally:
        cluster.dials(kueue=False)
    core = {each["name"] for each in get(cluster, "/api/v1")["resources"]}
    assert {"pods", "pods/log", "nodes", "secrets"} <= core


def test_a_name_is_given_once(cluster: Control, space: str) -> None:
    first = cluster.make(jobs_at(space), job("one"))
    status, answer, _ = cluster.ask("POST", jobs_at(space), job("one"))
    assert (status, answer["reason"]) == (409, "AlreadyExists")
    assert answer["message"] == 'jobs.batch "one" already exists'
    assert answer["details"] == {"name": "one", "group": "batch", "kind": "jobs"}
    assert get(cluster, jobs_at(space, "one"))["metadata"]["uid"] == first["metadata"]["uid"]


def test_versions_keep_changes_apart(cluster: Control, space: str) -> None:
    old = cluster.make(maps(space), settings("one", a="1"))
    new = {**old, "data": {"a": "2"}}
    status, changed, _ = cluster.ask("PUT", maps(space, "one"), new)
    assert status == 200
    assert int(changed["metadata"]["resourceVersion"]) > int(old["metadata"]["resourceVersion"])
    status, answer, _ = cluster.ask("PUT", maps(space, "one"), new)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "the object has been modified" in answer["message"]
    _, same, _ = cluster.ask("PUT", maps(space, "one"), changed)
    assert same["metadata"]["resourceVersion"] == changed["metadata"]["resourceVersion"]


def test_a_listing_comes_in_pages_of_one_moment(cluster: Control, space: str) -> None:
    for at in range(7):
        made = settings(f"m{at}")
        made["metadata"]["labels"] = {"odd": str(at % 2), "own": "yes"}
        cluster.make(maps(space), made)
    query = "?labelSelector=own%3Dyes&limit=3"
    first = get(cluster, maps(space) + query)
    assert [each["metadata"]["name"] for each in first["items"]] == ["m0", "m1", "m2"]
    cluster.ask("DELETE", maps(space, "m4"))
    more = first["metadata"]["continue"]
    second = get(cluster, f"{maps(space)}{query}&continue={more}")
    assert [each["metadata"]["name"] for each in second["items"]] == ["m3", "m4", "m5"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    cluster.compact()
    more = second["metadata"]["continue"]
    status, answer, _ = cluster.ask("GET", f"{maps(space)}{query}&continue={more}")
    assert (status, answer["reason"], answer["code"]) == (410, "Expired", 410)
    chosen = get(cluster, f"{maps(space)}?labelSelector=odd%20in%20(0),own")["items"]
    assert [each["metadata"]["name"] for each in chosen] == ["m0", "m2", "m6"]
    whole = get(cluster, f"{maps(space)}?limit=2")["metadata"]
    assert whole["remainingItemCount"] == 5


def test_fields_choose_too(cluster: Control, space: str) -> None:
    cluster.make(pods_at(space), pod("one"))
    cluster.make(pods_at(space), pod("two", gpus=999))
    eventually(lambda: get(cluster, pods_at(space, "one"))["spec"].get("nodeName"))
    found = get(cluster, f"{pods_at(space)}?fieldSelector=spec.nodeName%3D")["items"]
    assert [each["metadata"]["name"] for each in found] == ["two"]
    status, answer, _ = cluster.ask("GET", f"{pods_at(space)}?fieldSelector=spec.nothing%3D1")
    assert status == 400
    assert "field label not supported: spec.nothing" in answer["message"]


PATCHES: list[tuple[str, Any]] = [
    (MERGE, {"data": {"a": None, "b": "2"}}),
    ("application/strategic-merge-patch+json", {"data": {"a": None, "b": "2"}}),
    (
        "application/json-patch+json",
        [
            {"op": "test", "path": "/data/a", "value": "1"},
            {"op": "remove", "path": "/data/a"},
            {"op": "add", "path": "/data/b", "value": "2"},
        ],
    ),
]


@pytest.mark.parametrize(("sort", "patch"), PATCHES)
def test_patches(cluster: Control, space: str, sort: str, patch: Any) -> None:
    cluster.make(maps(space), settings("one", a="1"))
    status, answer, _ = cluster.ask("PATCH", maps(space, "one"), patch, sort=sort)
    assert (status, answer["data"]) == (200, {"b": "2"})


def test_a_strategic_merge_knows_containers_by_name(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", suspend=True))
    status, answer, _ = cluster.ask(
        "PATCH",
        pods_at(space, cluster.make(pods_at(space), pod("p"))["metadata"]["name"]),
        {"spec": {"containers": [{"name": "main", "image": "registry.example/other:1"}]}},
        sort="application/strategic-merge-patch+json",
    )
    assert status == 200, answer
    assert [each["command"] for each in answer["spec"]["containers"]] == [["true"]]
    assert answer["spec"]["containers"][0]["image"] == "registry.example/other:1"


def test_a_dry_run_changes_nothing(cluster: Control, space: str) -> None:
    status, answer, _ = cluster.ask("POST", f"{jobs_at(space)}?dryRun=All", job("one"))
    assert status == 201
    assert answer["spec"]["podReplacementPolicy"] == "Failed"
    assert cluster.ask("GET", jobs_at(space, "one"))[0] == 404
    bad = job("one")
    bad["spec"]["nothing"] = 1
    assert cluster.ask("POST", f"{jobs_at(space)}?dryRun=All", bad)[0] == 400


def test_what_keeps_an_object_keeps_it(cluster: Control, space: str) -> None:
    made = settings("one")
    made["metadata"]["finalizers"] = ["example.com/wait"]
    cluster.make(maps(space), made)
    status, answer, _ = cluster.ask("DELETE", maps(space, "one"))
    assert status == 200
    assert answer["metadata"]["deletionTimestamp"]
    patch: dict[str, Any] = {"metadata": {"finalizers": []}}
    assert cluster.ask("PATCH", maps(space, "one"), patch, sort=MERGE)[0] == 200
    status, answer, _ = cluster.ask("GET", maps(space, "one"))
    assert (status, answer["message"]) == (404, 'configmaps "one" not found')


def test_a_precondition_protects_a_name_that_was_given_again(cluster: Control, space: str) -> None:
    old = cluster.make(maps(space), settings("one"))
    cluster.ask("DELETE", maps(space, "one"))
    cluster.make(maps(space), settings("one"))
    asked = {"preconditions": {"uid": old["metadata"]["uid"]}}
    status, answer, _ = cluster.ask("DELETE", maps(space, "one"), asked)
    assert (status, answer["reason"]) == (409, "Conflict")
    assert "UID in precondition" in answer["message"]


def test_what_is_owned_goes_with_its_owner(cluster: Control, space: str) -> None:
    owner = cluster.make(maps(space), settings("owner"))
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    ref["uid"] = owner["metadata"]["uid"]
    for name, owners in (("mine", [ref]), ("nobodys", [ref | {"uid": "not-there"}]), ("free", [])):
        made = settings(name)
        made["metadata"]["ownerReferences"] = owners
        cluster.make(maps(space), made)
    eventually(lambda: "nobodys" not in cluster.names("configmaps", space))
    assert "mine" in cluster.names("configmaps", space)
    cluster.ask("DELETE", maps(space, "owner"))
    eventually(lambda: "mine" not in cluster.names("configmaps", space))
    assert "free" in cluster.names("configmaps", space)


@pytest.mark.parametrize("policy", ["", "Background"])
def test_a_job_leaves_its_pods_unless_it_is_told_not_to(
    cluster: Control, space: str, policy: str
) -> None:
    cluster.make(jobs_at(space), job("one"))
    eventually(lambda: cluster.names("pods", space))
    query = f"?propagationPolicy={policy}" if policy else ""
    status, _, headers = cluster.ask("DELETE", jobs_at(space, "one") + query)
    assert status == 200
    assert ("child pods are preserved" in (headers["Warning"] or "")) is (not policy)
    eventually(lambda: cluster.names("jobs.batch", space) == [])
    if policy:
        eventually(lambda: cluster.names("pods", space) == [])
    else:
        eventually(lambda: "ownerReferences" not in cluster.objects("pods", space)[0]["metadata"])


def test_foreground_waits_for_what_is_owned(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one"))
    eventually(lambda: cluster.names("pods", space))
    status, answer, _ = cluster.ask(
        "DELETE", f"{jobs_at(space, 'one')}?propagationPolicy=Foreground"
    )
    assert status == 200
    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually(lambda: cluster.left(space) == [])


def test_a_namespace_takes_everything_with_it(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one"))
    cluster.make(maps(space), settings("held") | {})
    held = {"metadata": {"finalizers": ["example.com/wait"]}}
    cluster.ask("PATCH", maps(space, "held"), held, sort=MERGE)
    cluster.ask("DELETE", f"/api/v1/namespaces/{space}")
    eventually(lambda: cluster.left(space) == ["configmaps/held"])
    assert get(cluster, f"/api/v1/namespaces/{space}")["status"]["phase"] == "Terminating"
    status, answer, _ = cluster.ask("POST", maps(space), settings("two"))
    assert (status, answer["reason"]) == (403, "Forbidden")
    assert "because it is being terminated" in answer["message"]
    assert answer["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    cluster.ask("PATCH", maps(space, "held"), {"metadata": {"finalizers": None}}, sort=MERGE)
    eventually(lambda: space not in cluster.names("namespaces"))
    status, answer, _ = cluster.ask("POST", maps(space), settings("two"))
    assert (status, answer["message"]) == (404, f'namespaces "{space}" not found')


def test_a_status_is_changed_by_itself(cluster: Control, space: str) -> None:
    cluster.make(jobs_at(space), job("one", suspend=True))
    patch = {"spec": {"suspend": False}, "status": {"ready": 7}}
    path = jobs_at(space, "one")
    _, answer, _ = cluster.ask("PATCH", f"{path}/status", patch, sort=MERGE)
    assert (answer["spec"]["suspend"], answer["status"]["ready"]) == (True, 7)
    _, answer, _ = cluster.ask("PATCH", path, {"status": {"ready": 8}}, sort=MERGE)
    assert answer["status"].get("ready") != 8


def test_a_watch_tells_what_happens(cluster: Control, space: str) -> None:
    since = get(cluster, maps(space))["metadata"]["resourceVersion"]
    pool = urllib3.PoolManager(cert_reqs="CERT_NONE")
    urllib3.disable_warnings()
    query = f"?watch=1&resourceVersion={since}&labelSelector=own&timeoutSeconds=30"
    headers = {"Authorization": f"Bearer {cluster.admin}"}
    with pool.request(
        "GET", cluster.url + maps(space) + query, headers=headers, preload_content=False
    ) as stream:
        made = settings("one")
        cluster.make(maps(space), made)
        cluster.ask("PATCH", maps(space, "one"), {"metadata": {"labels": {"own": "1"}}}, sort=MERGE)
        cluster.ask("PATCH", maps(space, "one"), {"data": {"a": "1"}}, sort=MERGE)
        cluster.ask("DELETE", maps(space, "one"))
        found = []
        for line in stream:
            found.append(json.loads(line)["type"])
            if found[-1] == "DELETED":
                break
    assert found == ["ADDED", "MODIFIED", "DELETED"]
    cluster.compact()
    cluster.make(maps(space), settings("two"))
    _, text, _ = cluster.ask("GET", f"{maps(space)}?watch=1&resourceVersion={since}")
    error = text if isinstance(text, dict) else json.loads(text)
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)


def test_the_servers_clock_is_in_every_answer(cluster: Control, space: str) -> None:
    from email.utils import parsedate_to_datetime

    _, _, headers = cluster.ask("GET", pods_at(space))
    assert abs(parsedate_to_datetime(headers["Date"]).timestamp() - cluster.now()) < 60


def test_faults(cluster: Control, space: str) -> None:
    cluster.fail("create jobs", "ServiceUnavailable", status=503)
    assert cluster.ask("POST", jobs_at(space), job("one"))[0] == 503
    assert cluster.ask("GET", jobs_at(space, "one"))[0] == 404
    cluster.fail("create jobs", status=500, after=True)
    assert cluster.ask("POST", jobs_at(space), job("one"))[0] == 500
    assert cluster.ask("GET", jobs_at(space, "one"))[0] == 200
    cluster.lose("create jobs")
    with pytest.raises(OSError, match=r"."):
        cluster.ask("POST", jobs_at(space), job("two"))
    assert cluster.ask("GET", jobs_at(space, "two"))[0] == 200
    cluster.fail("list pods", "TooManyRequests", status=429)
    status, _, headers = cluster.ask("GET", pods_at(space))
    assert (status, headers["Retry-After"]) == (429, "1")


def test_a_server_that_restarts_forgets_nothing(tmp_path: Path, cluster: Control) -> None:
    from tests.cloud.faces.kubernetes.server import running

    with running(tmp_path, bodies="none") as own:
        made = own.make(jobs_at("default"), job("one"))
        with socket.create_connection(("127.0.0.1", urlsplit(own.url).port or 0)) as held:
            own.restart(0.05)
            assert held.recv(1) == b""  # every connection is cut: it is away

        def back() -> Any:
            try:
                status, answer, _ = own.ask("GET", jobs_at("default", "one"))
            except OSError:
                return None
            return status, answer

        status, found = eventually(back)
        assert status == 200, found
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert found["spec"] == made["spec"]


def test_several_ask_at_once(cluster: Control, space: str) -> None:
    results: list[int] = []

    def create() -> None:
        results.append(cluster.ask("POST", jobs_at(space), job("one"))[0])

    threads = [threading.Thread(target=create) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(results) == [201] + [409] * 7
