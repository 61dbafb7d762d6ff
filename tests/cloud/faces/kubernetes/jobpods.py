"""The pods of a Job: how they are made, which of them is which, what a failure of one means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.cloud.faces.kubernetes.resources import JOBS
from tests.cloud.faces.kubernetes.store import Obj, copied

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_FAILURES = "batch.kubernetes.io/job-index-failure-count"
_OVER = ("Succeeded", "Failed")


def controller(value: Obj) -> Obj | None:
    for each in value["metadata"].get("ownerReferences") or ():
        if each.get("controller"):
            return dict(each)
    return None


def index_of(pod: Obj) -> int | None:
    found = (pod["metadata"].get("annotations") or {}).get(INDEX)
    return None if found is None else int(found)


def is_active(pod: Obj) -> bool:
    over = pod["status"].get("phase") in _OVER
    return not over and not pod["metadata"].get("deletionTimestamp")


def reason_of(job: Obj, sort: str) -> tuple[str, str] | None:
    for each in (job["status"] or {}).get("conditions") or ():
        if each["type"] == sort and each["status"] == "True":
            return each.get("reason", ""), each.get("message", "")
    return None


def ranges(indexes: Iterable[int]) -> str:
    """ "0,2-4": as Job status writes them."""
    found: list[list[int]] = []
    for each in sorted(indexes):
        if found and each == found[-1][1] + 1:
            found[-1][1] = each
        else:
            found.append([each, each])
    parts = [str(a) if a == b else f"{a},{b}" if b == a + 1 else f"{a}-{b}" for a, b in found]
    return ",".join(parts)


def made(job: Obj, index: int | None, failures: int) -> Obj:
    """A pod of a Job."""
    meta, template = job["metadata"], copied(job["spec"]["template"])
    outer = template.get("metadata") or {}
    labels, notes = dict(outer.get("labels") or {}), dict(outer.get("annotations") or {})
    spec = template["spec"]
    if index is not None:
        labels[INDEX] = notes[INDEX] = str(index)
        if job["spec"].get("backoffLimitPerIndex") is not None:
            notes[_FAILURES] = str(failures)
        spec.setdefault("hostname", f"{meta['name']}-{index}")
        source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']", "apiVersion": "v1"}}
        for each in [*spec["containers"], *(spec.get("initContainers") or ())]:
            env = each.setdefault("env", [])
            if not any(one["name"] == "JOB_COMPLETION_INDEX" for one in env):
                env.append({"name": "JOB_COMPLETION_INDEX", "valueFrom": source})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": labels,
            "annotations": notes,
            "finalizers": [FINALIZER, *(outer.get("finalizers") or ())],
            "ownerReferences": [
                {
                    "apiVersion": JOBS.api_version,
                    "kind": "Job",
                    "name": meta["name"],
                    "uid": meta["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec,
    }


def matched(policy: Obj | None, pod: Obj) -> tuple[str, str]:
    """What a failure policy does about a pod that failed, and the words of FailJob."""
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for at, rule in enumerate((policy or {}).get("rules") or ()):
        codes = rule.get("onExitCodes")
        if codes is not None:
            found = _code(codes, pod["status"])
            if found is not None:
                words = (
                    f"Container {found[0]} for pod {name} failed with exit code {found[1]} "
                    f"matching {rule['action']} rule at index {at}"
                )
                return rule["action"], words
        for wanted in rule.get("onPodConditions") or ():
            for each in pod["status"].get("conditions") or ():
                if (each["type"], each["status"]) == (wanted["type"], wanted.get("status", "True")):
                    words = (
                        f"Pod {name} has condition {each['type']} matching {rule['action']} "
                        f"rule at index {at}"
                    )
                    return rule["action"], words
    return "Count", ""


def _code(codes: Obj, status: Obj) -> tuple[str, int] | None:
    told: list[Any] = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    for each in told:
        ended = (each.get("state") or {}).get("terminated")
        if ended is None or ended["exitCode"] == 0:
            continue
        if codes.get("containerName") not in (None, each["name"]):
            continue
        if (ended["exitCode"] in codes["values"]) == (codes["operator"] == "In"):
            return each["name"], ended["exitCode"]
    return None
