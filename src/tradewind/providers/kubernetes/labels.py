"""Names and labels of what a leg is made of, and how they are read back.

    tw-<run>-<leg>-<hash>

is the name of a leg's Job, and of its Secret and Service. The hash is of the owner and the launch's
id, so that a second launch of the same id meets the name of the first, and that of another store
never does. The rest is for people, and cut where it is long: a pod's host name is the Job's with
its rank behind, and has 63 characters.

Labels, which listings are filtered by: `tradewind.dev/owner` (a hash of the store's URL), `/run`,
`/leg` and `/launch`, on Jobs and pods. What has other characters than a label may have, or more of
them, ends in a hash there; the ids themselves are annotations. The rank is Kubernetes' own label.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from tradewind.model.run import Request

DOMAIN = "tradewind.dev"
OWNER, RUN, LEG, LAUNCH = (f"{DOMAIN}/{each}" for each in ("owner", "run", "leg", "launch"))
USED_BY = f"{DOMAIN}/used-by-"
"""Of a service account, by setup: whose pods may run as it. Several stores' may."""
RUN_ID, LAUNCH_ID = f"{DOMAIN}/run-id", f"{DOMAIN}/launch-id"
"""Annotations: the same as they are."""
NODES = f"{DOMAIN}/nodes"
"""Annotation: how many machines the launch has."""
READY = f"{DOMAIN}/ready"
"""Annotation: all that its pods need was made, and it may begin."""
WITHDRAWN = f"{DOMAIN}/withdrawn"
"""Annotation: it was taken back when some of its pods had begun, and others had not."""
MACHINES = f"{DOMAIN}/machines"
"""Annotation of a Job: what is known of its machines, and pods that are gone do not tell any more
(records.py)."""
MANAGED, OURS = "app.kubernetes.io/managed-by", "tradewind"
INDEX = "batch.kubernetes.io/job-completion-index"
"""Of a pod: its rank."""
ID_PREFIX = "kubernetes-"
MOST = 63
_HASH = 10
_RUN = 20
"""Of a run's id, in names."""
_NAME = re.compile(rf"tw-[a-z0-9]([a-z0-9-]*[a-z0-9])?-[0-9a-f]{{{_HASH}}}")
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_CLUSTER = re.compile(r"[a-z0-9]([a-z0-9.-]{0,38}[a-z0-9])?")
_RANK = re.compile(r"0|[1-9]\d{0,5}")


class Launch(NamedTuple):
    """Whose an object is."""

    run_id: str
    launch_id: str
    leg: int
    nodes: int


def owner_of(store_url: str) -> str:
    return hashlib.sha256(store_url.encode()).hexdigest()[:16]


def name_of(owner: str, request: Request) -> str:
    """Of the Job, which is the token of the launch."""
    way = request.way
    return named(owner, Launch(request.run_id, request.launch_id, request.leg, way.nodes))


def named(owner: str, launch: Launch) -> str:
    run = re.sub(r"[^a-z0-9]+", "-", launch.run_id.lower())[:_RUN].strip("-") or "run"
    digest = hashlib.sha256(f"{owner}\n{launch.launch_id}".encode()).hexdigest()[:_HASH]
    return f"tw-{run}-{launch.leg}-{digest}"


def value(text: str) -> str:
    """As a label's value."""
    if _VALUE.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[: MOST - 17].strip("-._")
    return f"{kept}-{digest}" if kept else digest


def labels(owner: str, request: Request) -> dict[str, str]:
    return {
        MANAGED: OURS,
        OWNER: owner,
        RUN: value(request.run_id),
        LEG: str(request.leg),
        LAUNCH: value(request.launch_id),
    }


def stamps(request: Request) -> dict[str, str]:
    return {RUN_ID: request.run_id, LAUNCH_ID: request.launch_id, NODES: str(request.way.nodes)}


def launch_of(labels: Mapping[str, str], stamps: Mapping[str, str]) -> Launch | None:
    """Of which launch an object is; None: it is none of ours, or has been changed by hand."""
    run, launch = stamps.get(RUN_ID, ""), stamps.get(LAUNCH_ID, "")
    leg, nodes = labels.get(LEG, ""), stamps.get(NODES, "")
    if not run or not launch or not _RANK.fullmatch(leg) or not _RANK.fullmatch(nodes):
        return None
    return Launch(run, launch, int(leg), int(nodes))


def used_by(owner: str) -> str:
    return f"{USED_BY}{owner[:32]}"


def is_used_by(name: str) -> bool:
    return name.startswith(USED_BY)


def of_owner(owner: str) -> dict[str, str]:
    """A selector for what is ours."""
    return {OWNER: owner}


def of_launch(owner: str, launch_id: str) -> dict[str, str]:
    return {OWNER: owner, LAUNCH: value(launch_id)}


def rank_of(labels: Mapping[str, str]) -> int | None:
    found = labels.get(INDEX, "")
    return int(found) if _RANK.fullmatch(found) else None


def cluster_part(cluster: str) -> str:
    """Of a machine's id, which is part of keys in stores: a cluster may be called anything."""
    if _CLUSTER.fullmatch(cluster):
        return cluster
    digest = hashlib.sha256(cluster.encode()).hexdigest()[:8]
    kept = re.sub(r"[^a-z0-9.-]+", "-", cluster.lower())[:30].strip("-.")
    return f"{kept}-{digest}" if kept else digest


def machine_stem(cluster: str, job: str) -> str:
    """Of all machines of a leg; the rank comes behind it."""
    return f"{ID_PREFIX}{cluster_part(cluster)}-{job}"


def machine_id(cluster: str, job: str, rank: int) -> str:
    return f"{machine_stem(cluster, job)}-{rank}"


def parted(machine_id: str, clusters: Mapping[str, object]) -> tuple[str, str, int] | None:
    """Cluster, Job and rank of a machine's id; None: it is no pod of these clusters."""
    stem, _, rank = machine_id.rpartition("-")
    if not _RANK.fullmatch(rank):
        return None
    for cluster in clusters:
        prefix = f"{ID_PREFIX}{cluster_part(cluster)}-"
        job = stem.removeprefix(prefix)
        if job != stem and _NAME.fullmatch(job):
            return cluster, job, int(rank)
    return None
