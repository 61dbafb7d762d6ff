"""Pods that are processes."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.faces.kubernetes.asking import (
    container,
    get,
    job,
    jobs_at,
    names,
    pod,
    pods_at,
    pods_of,
    told,
    true,
    wait_job,
    wait_pods,
)
from tests.cloud.faces.kubernetes.control import Control
from tests.eventually import eventually

_numbers = itertools.count()
TRAP = 'trap "echo told; exit 3" TERM; echo up; while :; do sleep 0.05; done'
IGNORE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}


@pytest.fixture
def own(bodies: Control) -> str:
    return bodies.namespace(f"team-{next(_numbers)}")


def log(bodies: Control, space: str, name: str) -> str:
    status, text, _ = bodies.ask("GET", f"{pods_at(space, name)}/log")
    return str(text) if status == 200 else ""


def ended(bodies: Control, space: str, name: str) -> dict[str, Any]:
    def look() -> Any:
        states = get(bodies, pods_at(space, name))["status"].get("containerStatuses") or []
        return states[0]["state"].get("terminated") if states else None

    return dict(eventually(look))


def alive(pids: list[int]) -> list[int]:
    return [each for each in pids if Path(f"/proc/{each}").exists()]


def needs_roots(bodies: Control) -> None:
    if bodies.status()["bodies"] != "namespace":
        pytest.skip("containers have no root of their own here: that needs root and overlayfs")


def test_a_command_runs_and_its_end_is_told(bodies: Control, own: str) -> None:
    script = "echo hello $NAME $(NODE); exit 5"
    one = container("sh", "-c", script)
    one["env"] = [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]
    made = pod("one")
    made["spec"]["containers"] = [one]
    bodies.make(pods_at(own), made)
    state = ended(bodies, own, "one")
    assert (state["exitCode"], state["reason"]) == (5, "Error")
    found = get(bodies, pods_at(own, "one"))
    assert found["status"]["phase"] == "Failed"
    assert log(bodies, own, "one").strip() == f"hello one {found['spec']['nodeName']}"


def test_a_program_that_is_not_there(bodies: Control, own: str) -> None:
    bodies.make(pods_at(own), pod("one", "/no/such/program"))
    state = ended(bodies, own, "one")
    assert (state["exitCode"], state["reason"]) == (128, "StartError")
    assert "executable file not found" in state["message"]


def test_init_containers_first(bodies: Control, own: str) -> None:
    mount = [{"name": "kept", "mountPath": "/kept"}]
    here = 'cd "${POD_ROOT:-}/kept"; '
    made = pod("one", volumes=[{"name": "kept", "emptyDir": {}}])
    made["spec"]["initContainers"] = [
        container("sh", "-c", f"{here} echo a > a", volumeMounts=mount) | {"name": "first"},
        container("sh", "-c", f"{here} cp a b", volumeMounts=mount) | {"name": "second"},
    ]
    made["spec"]["containers"] = [container("sh", "-c", f"{here} cat b", volumeMounts=mount)]
    bodies.make(pods_at(own), made)
    wait_pods(bodies, own, "Succeeded")
    assert log(bodies, own, "one") == "a\n"
    bad = pod("two")
    bad["spec"]["initContainers"] = [container("false") | {"name": "first"}]
    bodies.make(pods_at(own), bad)
    (failed,) = wait_pods(bodies, own, "Failed")
    assert "terminated" in failed["status"]["initContainerStatuses"][0]["state"]


def test_secrets_maps_and_fields_are_files_and_variables(bodies: Control, own: str) -> None:
    base = f"/api/v1/namespaces/{own}"
    bodies.make(f"{base}/secrets", {"metadata": {"name": "s"}, "stringData": {"KEY": "secret"}})
    bodies.make(f"{base}/configmaps", {"metadata": {"name": "m"}, "data": {"conf": "mapped"}})
    item = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    volumes = [
        {"name": "s", "secret": {"secretName": "s", "items": [{"key": "KEY", "path": "in/key"}]}},
        {"name": "m", "configMap": {"name": "m"}},
        {"name": "d", "downwardAPI": {"items": [item]}},
    ]
    read = 'R="${POD_ROOT:-}"; cat $R/s/in/key $R/m/conf $R/d/labels; echo " $KEY"'
    one = container("sh", "-c", read, envFrom=[{"secretRef": {"name": "s"}}])
    one["volumeMounts"] = [{"name": each, "mountPath": f"/{each}"} for each in "smd"]
    made = pod("one", volumes=volumes)
    made["metadata"]["labels"] = {"app": "x"}
    made["spec"]["containers"] = [one]
    bodies.make(pods_at(own), made)
    wait_pods(bodies, own, "Succeeded")
    assert log(bodies, own, "one") == 'secretmappedapp="x" secret\n'


def test_a_claim_is_a_folder_that_stays(bodies: Control, own: str) -> None:
    claim = {
        "metadata": {"name": "store"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    bodies.make(f"/api/v1/namespaces/{own}/persistentvolumeclaims", claim)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "store"}}
    made = pod("one", volumes=[volume])
    one = container("sh", "-c", 'echo kept > "${POD_ROOT:-}/store/file"')
    one["volumeMounts"] = [{"name": "v", "mountPath": "/store"}]
    made["spec"]["containers"] = [one]
    bodies.make(pods_at(own), made)
    wait_pods(bodies, own, "Succeeded")
    bodies.ask("DELETE", pods_at(own, "one"))
    assert (bodies.claim(own, "store") / "file").read_text() == "kept\n"


def test_sigterm_and_grace(bodies: Control, own: str) -> None:
    bodies.make(pods_at(own), pod("kind", "sh", "-c", TRAP, terminationGracePeriodSeconds=30))
    deaf = 'trap "" TERM; echo up; while :; do sleep 0.05; done'
    bodies.make(pods_at(own), pod("deaf", "sh", "-c", deaf, terminationGracePeriodSeconds=1))
    eventually(lambda: all("up" in log(bodies, own, each) for each in ("kind", "deaf")))
    for name in ("kind", "deaf"):
        keep = {"metadata": {"finalizers": ["example.com/look"]}}
        merge = "application/merge-patch+json"
        bodies.ask("PATCH", pods_at(own, name), keep, sort=merge)
        assert bodies.ask("DELETE", pods_at(own, name))[0] == 200
    assert (ended(bodies, own, "kind")["exitCode"], ended(bodies, own, "deaf")["exitCode"]) == (
        3,
        137,
    )
    assert "told" in log(bodies, own, "kind")
    assert bodies.pids(own, "deaf") == []
    for name in ("kind", "deaf"):
        gone = {"metadata": {"finalizers": None}}
        bodies.ask("PATCH", pods_at(own, name), gone, sort="application/merge-patch+json")
    eventually(lambda: bodies.names("pods", own) == [])


def test_a_node_that_vanishes_takes_its_processes(bodies: Control, own: str) -> None:
    bodies.add(f"n-{own}", {}, {"own": own})
    made = pod("one", "sh", "-c", "sleep 1000 & sleep 1000", node=own)
    bodies.make(pods_at(own), made)
    wait_pods(bodies, own, "Running")
    pids = eventually(lambda: found if len(found := bodies.pids(own, "one")) >= 2 else [])
    bodies.dials(quarantine_s=3600)  # its pod stays: nothing else ends them
    try:
        bodies.vanish(f"n-{own}")
        assert eventually(lambda: not alive(pids)), "processes of the node"
        assert bodies.names("pods", own) == ["one"]
    finally:
        bodies.dials(quarantine_s=0.05)
    assert eventually(lambda: bodies.names("pods", own) == []), "its pod"


def test_a_notice_gives_time_to_save(bodies: Control, own: str) -> None:
    bodies.add(f"n-{own}", {}, {"own": own})
    save = 'trap "echo saved; exit 0" TERM; echo up; while :; do sleep 0.05; done'
    bodies.make(jobs_at(own), job("one", "sh", "-c", save, node=own, podFailurePolicy=IGNORE))
    (one,) = names(wait_pods(bodies, own, "Running"))
    eventually(lambda: "up" in log(bodies, own, one))
    bodies.notice(f"n-{own}", grace_s=20)
    (failed,) = wait_pods(bodies, own, "Failed")
    assert (failed["status"]["reason"], log(bodies, own, one)) == ("Terminated", "up\nsaved\n")
    assert told(failed, "DisruptionTarget")["reason"] == "TerminationByKubelet"


def test_out_of_memory(bodies: Control, own: str) -> None:
    bodies.make(pods_at(own), pod("one", "sleep", "1000"))
    wait_pods(bodies, own, "Running")
    pids = eventually(lambda: bodies.pids(own, "one"))
    bodies.oom(own, "one")
    assert ended(bodies, own, "one")["reason"] == "OOMKilled"
    assert eventually(lambda: not alive(pids)), "processes of the container"


def test_a_container_is_started_again(bodies: Control, own: str) -> None:
    made = pod("one", "sh", "-c", "echo again; exit 1", restartPolicy="OnFailure")
    bodies.dials(crash_backoff_s=0.05)
    bodies.make(pods_at(own), made)

    def count() -> int:
        states = get(bodies, pods_at(own, "one"))["status"].get("containerStatuses") or [{}]
        return int(states[0].get("restartCount", 0))

    assert eventually(lambda: found if (found := count()) >= 2 else 0) >= 2
    assert eventually(lambda: "BackOff" in {each for each, _ in bodies.reasons(own)})


def test_ranks_find_each_other_by_name(bodies: Control, own: str) -> None:
    needs_roots(bodies)
    service = {
        "metadata": {"name": "ranks"},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": "one"},
        },
    }
    bodies.make(f"/api/v1/namespaces/{own}/services", service)
    talk = f"""
import os, socket, time
rank = int(os.environ["JOB_COMPLETION_INDEX"])
name = "one-0.ranks.{own}.svc.cluster.local"
if rank == 0:
    door = socket.create_server((socket.gethostbyname(socket.gethostname()), 29500))
    print(door.accept()[0].recv(99).decode())
else:
    while True:
        try:
            line = socket.create_connection((name, 29500), 1)
            line.sendall(b"from " + socket.gethostname().encode())
            break
        except OSError:
            time.sleep(0.05)
"""
    made = job("one", "python3", "-c", talk, count=2, pods={"subdomain": "ranks"})
    bodies.make(jobs_at(own), made)
    wait_job(bodies, own, "one", "Complete")
    told = {log(bodies, own, each).strip() for each in bodies.names("pods", own)}
    assert told == {"from one-1", ""}


def test_the_restricted_level_holds_inside(bodies: Control, own: str) -> None:
    needs_roots(bodies)
    look = """
import os, pathlib
print(os.getuid(), os.getgid(), os.getpid())
for each in ("/file", "/usr/file", "/tmp/file", "/etc/secret/new"):
    try:
        pathlib.Path(each).write_text("x")
        print("wrote", each)
    except OSError as error:
        print(error.strerror, each)
print(pathlib.Path("/etc/secret/key").read_text())
pathlib.Path("/dev/termination-log").write_text("last words")
print(pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount").exists())
"""
    bodies.make(
        f"/api/v1/namespaces/{own}/secrets", {"metadata": {"name": "s"}, "stringData": {"key": "k"}}
    )
    one = container("python3", "-c", look)
    one["securityContext"] = {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    one["volumeMounts"] = [
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "s", "mountPath": "/etc/secret"},
    ]
    context = {
        "runAsNonRoot": True,
        "runAsUser": 4242,
        "runAsGroup": 4343,
        "fsGroup": 4343,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    made = pod("one", securityContext=context, automountServiceAccountToken=False)
    made["spec"]["volumes"] = [
        {"name": "tmp", "emptyDir": {"medium": "Memory"}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
    ]
    made["spec"]["containers"] = [one]
    bodies.make(pods_at(own), made)
    state = ended(bodies, own, "one")
    assert log(bodies, own, "one").splitlines() == [
        "4242 4343 1",
        "Read-only file system /file",
        "Read-only file system /usr/file",
        "wrote /tmp/file",
        "Read-only file system /etc/secret/new",
        "k",
        "False",
    ]
    assert state["message"] == "last words"
    assert not Path("/file").exists()


def test_a_pod_reaches_the_api_as_its_service_account(bodies: Control, own: str) -> None:
    ask = """
import json, os, ssl, urllib.error, urllib.request
at = os.environ.get("POD_ROOT", "") + "/var/run/secrets/kubernetes.io/serviceaccount/"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
space = open(at + "namespace").read()
url = f"https://{host}:{port}/api/v1/namespaces/{space}/pods"
head = {"Authorization": "Bearer " + open(at + "token").read()}
trust = ssl.create_default_context(cafile=at + "ca.crt")
try:
    urllib.request.urlopen(urllib.request.Request(url, headers=head), context=trust)
except urllib.error.HTTPError as error:
    print(json.load(error)["message"])
"""
    bodies.make(pods_at(own), pod("one", "python3", "-c", ask))
    wait_pods(bodies, own, "Succeeded")
    assert f'User "system:serviceaccount:{own}:default" cannot list' in log(bodies, own, "one")


def test_nothing_runs_on_when_a_job_is_deleted(bodies: Control, own: str) -> None:
    bodies.make(
        jobs_at(own),
        job("one", "sleep", "1000", count=2, pods={"terminationGracePeriodSeconds": 0}),
    )
    found = names(wait_pods(bodies, own, "Running", 2))
    eventually(lambda: all(bodies.pids(own, each) for each in found))
    pids = [pid for each in found for pid in bodies.pids(own, each)]
    bodies.ask("DELETE", f"{jobs_at(own, 'one')}?propagationPolicy=Background")
    eventually(lambda: bodies.left(own) == [])
    eventually(lambda: not [each for each in pids if Path(f"/proc/{each}").exists()])
    assert pods_of(bodies, own) == []


def test_without_roots_of_their_own(tmp_path: Path) -> None:
    """As on a computer where nobody is root."""
    from tests.cloud.faces.kubernetes.server import running

    with running(tmp_path, bodies="process") as plain:
        made = pod("one", "sh", "-c", 'echo "$(cat $POD_ROOT/etc/s/key)"; pwd')
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "s", "mountPath": "/etc/s"}]
        made["spec"]["volumes"] = [{"name": "s", "secret": {"secretName": "s"}}]
        secret = {"metadata": {"name": "s"}, "stringData": {"key": "k"}}
        plain.make("/api/v1/namespaces/default/secrets", secret)
        plain.make(pods_at("default"), made)
        (done,) = wait_pods(plain, "default", "Succeeded")
        assert log(plain, "default", "one").startswith("k\n")
        assert not true(done, "Ready")
