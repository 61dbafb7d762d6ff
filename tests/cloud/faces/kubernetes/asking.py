"""What tests of a cluster ask for."""

from __future__ import annotations

from typing import Any

from tests.cloud.faces.kubernetes.control import Control, Obj
from tests.eventually import eventually


def container(*command: str, **more: Any) -> Obj:
    return {
        "name": "main",
        "image": "registry.example/python:3.11",
        "command": list(command) or ["true"],
        **more,
    }


def pod(name: str, *command: str, node: str = "", gpus: int = 0, **more: Any) -> Obj:
    spec = pod_spec(*command, node=node, gpus=gpus, **more)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def pod_spec(*command: str, node: str = "", gpus: int = 0, **more: Any) -> Obj:
    one = container(*command)
    if gpus:
        one["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    spec: Obj = {"restartPolicy": "Never", "containers": [one], **more}
    if node:
        spec["nodeSelector"] = {"own": node}
        spec["tolerations"] = [{"key": "own", "operator": "Exists", "effect": "NoSchedule"}]
    return spec


def job(
    name: str, *command: str, node: str = "", gpus: int = 0, count: int = 1, **more: Any
) -> Obj:
    """An indexed one, whose ranks are not made again."""
    pods = more.pop("pods", {})
    spec = {
        "completionMode": "Indexed",
        "completions": count,
        "parallelism": count,
        "backoffLimitPerIndex": 0,
        "maxFailedIndexes": count,
        "podReplacementPolicy": "Failed",
        "template": {"spec": pod_spec(*command, node=node, gpus=gpus, **pods)},
        **more,
    }
    spec = {each: value for each, value in spec.items() if value is not None}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def pods_at(space: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{space}/pods" + (f"/{name}" if name else "")


def jobs_at(space: str, name: str = "") -> str:
    return f"/apis/batch/v1/namespaces/{space}/jobs" + (f"/{name}" if name else "")


def get(cluster: Control, path: str) -> Obj:
    status, answer, _ = cluster.ask("GET", path)
    assert status == 200, answer
    return dict(answer)


def told(value: Obj, sort: str) -> Obj:
    """A condition; {} where there is none."""
    for each in value["status"].get("conditions") or ():
        if each["type"] == sort:
            return dict(each)
    return {}


def true(value: Obj, sort: str) -> bool:
    return told(value, sort).get("status") == "True"


def pods_of(cluster: Control, space: str, phase: str = "") -> list[Obj]:
    return [
        each
        for each in cluster.objects("pods", space)
        if not phase or each["status"]["phase"] == phase
    ]


def wait_pods(cluster: Control, space: str, phase: str, count: int = 1) -> list[Obj]:
    return eventually(
        lambda: found if len(found := pods_of(cluster, space, phase)) >= count else []
    )


def wait_job(cluster: Control, space: str, name: str, sort: str) -> Obj:
    return eventually(
        lambda: found if true(found := get(cluster, jobs_at(space, name)), sort) else {}
    )


def names(found: list[Obj]) -> list[str]:
    return [each["metadata"]["name"] for each in found]
