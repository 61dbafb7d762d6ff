"""A training: a Job, an Indexed Job or a JobSet, with its disk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tradewind.export import launch, managed
from tradewind.export.asked import Asked
from tradewind.export.commented import Why
from tradewind.export.kinds.kubernetes import common, network
from tradewind.export.kinds.kubernetes.common import GIB, Names, Place
from tradewind.model.job import Job
from tradewind.model.plan import Plan

_JOBSET = "jobset.x-k8s.io/v1alpha2"
_QUEUE = "kueue.x-k8s.io/queue-name"
_RANKS = "ranks"
_DISK = "checkpoints"
_TIMES = 20
_LEAST_GIB = 10
_GRACE_S = 120


def objects(
    asked: Asked, names: Names, settings: Mapping[str, str]
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    plan, job = asked.training("kubernetes")
    spot = "spot" in plan.markets
    where = common.place(asked, settings, spot, only_spot=plan.markets == ("spot",))
    image, image_notes = common.image(asked, settings)
    hidden, secret_notes = common.secret_variables(asked, names)
    several, jobset = plan.nodes > 1, settings["group"] == "jobset"
    variables = [*common.plain_variables(_variables(plan, job, names, jobset=jobset)), *hidden]
    pod = _pod(plan, names, where, _container(plan, job, where, image, variables))
    if several and not jobset:
        pod = {"subdomain": names.name, **pod}
    spec = _spec(plan, names, pod)
    queue = {_QUEUE: names.name} if settings["queue"] else {}
    found: dict[str, list[dict[str, Any]]] = {
        "job.yaml": [_jobset(names, spec, queue) if jobset else _job(names, spec, queue)],
        "disk.yaml": [
            common.claim(
                names, "", _gib(asked),
                "ReadWriteMany" if several else "ReadWriteOnce", settings["storage"],
                f"{asked.workload.checkpoint.keep} checkpoints of"
                f" {plan.checkpoint_bytes / 1e9:.1f} GB, and room to write one.",
            )
        ],
        "network.yaml": [_network(names, several)],
        "priority.yaml": [_priority(names)],
    }  # fmt: skip
    if several and not jobset:
        found["ranks.yaml"] = [_headless(names)]
    if settings["queue"]:
        found["queue.yaml"] = [_queue(names, settings["queue"])]
    notes = [*where.notes, *image_notes, *secret_notes]
    if several:
        notes.append("its disk is written from several nodes: a StorageClass with ReadWriteMany")
    return found, notes


def _variables(plan: Plan, job: Job, names: Names, *, jobset: bool) -> dict[str, str]:
    found = dict(launch.variables(plan, job))
    if plan.nodes > 1:
        first = f"{names.name}-{_RANKS}-0-0" if jobset else f"{names.name}-0"
        found |= {"MASTER_ADDR": f"{first}.{names.name}", "MASTER_PORT": str(launch.PORT)}
    return found


def _container(
    plan: Plan, job: Job, where: Place, image: str, variables: list[dict[str, Any]]
) -> dict[str, Any]:
    command = launch.command(
        plan, job, rank='"$JOB_COMPLETION_INDEX"', first='"$MASTER_ADDR"', port='"$MASTER_PORT"'
    )
    return {
        "name": "job",
        "image": image,
        "workingDir": managed.WORK,
        "command": ["/bin/sh", "-c", managed.script(job, command) + "\n"],
        "env": variables,
        "resources": common.resources(where, plan.accelerator_count),
        "volumeMounts": [{"name": _DISK, "mountPath": managed.CHECKPOINTS}, common.SHARED],
    }


def _pod(plan: Plan, names: Names, where: Place, container: dict[str, Any]) -> dict[str, Any]:
    disk = {"name": _DISK, "persistentVolumeClaim": {"claimName": names.name}}
    grace = Why(
        _GRACE_S,
        f"To save once more when its node is taken: {plan.checkpoint_bytes / 1e9:.1f} GB.",
    )
    return {
        **common.pod(where, container, [disk], grace, restart="Never"),
        "priorityClassName": names.name,
    }


def _spec(plan: Plan, names: Names, pod: dict[str, Any]) -> dict[str, Any]:
    """Of a Job, alone or in a JobSet."""
    lost = {"type": "DisruptionTarget", "status": "True"}
    return {
        "completionMode": "Indexed",
        "completions": plan.nodes,
        "parallelism": plan.nodes,
        "backoffLimitPerIndex": Why(
            _TIMES, "A training that resumes is started again where it failed."
        ),
        "podFailurePolicy": Why(
            {"rules": [{"action": "Ignore", "onPodConditions": [lost]}]},
            "What a node's loss has ended is started again without being counted.",
        ),
        "activeDeadlineSeconds": Why(managed.seconds(plan), managed.seconds_why(plan)),
        "template": {"metadata": {"labels": names.labels}, "spec": pod},
    }


def _gib(asked: Asked) -> int:
    assert asked.plan is not None
    each = asked.plan.checkpoint_bytes * (asked.workload.checkpoint.keep + 2)
    return max(_LEAST_GIB, math.ceil(each / GIB))


def _job(names: Names, spec: dict[str, Any], queue: dict[str, str]) -> dict[str, Any]:
    waits: dict[str, Any] = {}
    if queue:
        waits["suspend"] = Why(True, "Until Kueue lets it go.")
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": names.name, "labels": {**names.labels, **queue}},
        "spec": {**waits, **spec},
    }


def _jobset(names: Names, spec: dict[str, Any], queue: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": _JOBSET,
        "kind": "JobSet",
        "metadata": {"name": names.name, "labels": {**names.labels, **queue}},
        "spec": {
            **({"suspend": True} if queue else {}),
            "failurePolicy": {"maxRestarts": _TIMES},
            "network": {
                "enableDNSHostnames": True,
                "subdomain": names.name,
                "publishNotReadyAddresses": True,
            },
            "replicatedJobs": [
                {
                    "name": _RANKS,
                    "replicas": 1,
                    "template": {"metadata": {"labels": names.labels}, "spec": spec},
                }
            ],
        },
    }


def _headless(names: Names) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.metadata(),
        "spec": {
            "clusterIP": Why("None", "For names of ranks, by which they find the first."),
            "publishNotReadyAddresses": True,
            "selector": names.labels,
            "ports": [{"name": "meeting", "port": launch.PORT}],
        },
    }


def _network(names: Names, several: bool) -> dict[str, Any]:
    among = [{"from": [{"podSelector": {"matchLabels": names.labels}}]}] if several else []
    return network.policy(
        names, Why(among, "Ranks reach each other." if several else "Nobody reaches it.")
    )


def _priority(names: Names) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": names.metadata(),
        "value": Why(-10, "Services go first: what resumes may be put off."),
        "preemptionPolicy": "Never",
        "description": "A training that resumes.",
    }


def _queue(names: Names, cluster_queue: str) -> dict[str, Any]:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "LocalQueue",
        "metadata": names.metadata(),
        "spec": {"clusterQueue": cluster_queue},
    }
