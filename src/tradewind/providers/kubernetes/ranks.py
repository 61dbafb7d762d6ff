"""What one pod says of its rank: whether it has a node, has begun, has ended, since when and why.
Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tradewind.model.run import JOB
from tradewind.providers.boot import told
from tradewind.providers.kubernetes import troubles
from tradewind.providers.kubernetes.manifests.pod import CONTAINER
from tradewind.providers.kubernetes.objects import (
    ContainerStatus,
    Pod,
    Terminated,
    Waiting,
    holds,
    moment,
)

SILENT_S = 30
"""After a pod should have been gone from a node that does not answer, it has ended."""
STUCK_S = 120
"""The same, where nothing is known of its node: the kubelet has killed it, or is dead itself."""
_OWN_LIMIT = re.compile(r"exceeds the (total )?limit")
"""Of an eviction that is owed to the pod itself, and not to its node."""


class End(NamedTuple):
    at_s: int | None
    """None: it does not say."""
    by: str
    why: str


class Nodes(NamedTuple):
    """What is known of the cluster's nodes."""

    ready: dict[str, bool] | None
    """By name, all that there are; None: they may not be read."""
    marked: Mapping[str, str] = {}
    """Those that are about to be taken, and the taint that says so (marks.py)."""

    def gone(self, name: str) -> bool:
        return self.ready is not None and name not in self.ready

    def silent(self, name: str) -> bool:
        return self.ready is not None and not self.ready.get(name, False)


def bound_s(pod: Pod) -> int | None:
    """Since when it has a node; None: it has none."""
    if not pod.spec.node_name:
        return None
    scheduled = holds(pod.status.conditions, "PodScheduled")
    since = moment(scheduled.last_transition_time) if scheduled else None
    return since if since is not None else moment(pod.metadata.creation_timestamp)


def has_begun(pod: Pod) -> bool:
    """Whether its container has been started, if only for a moment."""
    status = main(pod)
    if status is None or status.state is None:
        return pod.status.phase in ("Running", "Succeeded")
    return status.state.running is not None or status.state.terminated is not None


def end(pod: Pod, nodes: Nodes, at_s: int) -> End | None:
    """None: it goes on, as far as anybody knows."""
    terminated = _terminated(pod)
    if terminated is not None or pod.status.phase in ("Succeeded", "Failed"):
        by, why = _cause(pod, terminated)
        finished = moment(terminated.finished_at) if terminated else None
        return End(finished if finished is not None else _disrupted_s(pod), by, why)
    node = pod.spec.node_name or ""
    if node and nodes.gone(node):
        return _of(pod, _disrupted_s(pod), "NodeGone", f"node {node}")
    until_s = moment(pod.metadata.deletion_timestamp)
    if until_s is None:
        return None
    if not node and at_s >= until_s + SILENT_S:
        return _of(pod, until_s, "Deleted", "")
    if node and nodes.silent(node) and at_s >= until_s + SILENT_S:
        return _of(pod, until_s, "NodeSilent", f"node {node}")
    if at_s >= until_s + STUCK_S:
        return _of(pod, until_s, "NodeSilent", f"node {node}")
    return None


def is_stuck(pod: Pod, nodes: Nodes, at_s: int) -> bool:
    """Whether it should have been gone long ago, and nobody on its node will see to it."""
    until_s = moment(pod.metadata.deletion_timestamp)
    node = pod.spec.node_name or ""
    if until_s is None:
        return False
    if nodes.ready is None:
        return at_s >= until_s + STUCK_S
    # As soon as it counts as ended: the run may end with it, and nobody looks any more then.
    return at_s >= until_s + SILENT_S and (nodes.gone(node) or nodes.silent(node))


def mark(pod: Pod, nodes: Nodes) -> str:
    """By which taint its node is about to be taken, where the pod has not been told of it yet."""
    if pod.metadata.deletion_timestamp or not has_begun(pod):
        return ""
    return nodes.marked.get(pod.spec.node_name or "", "")


def waiting(pod: Pod) -> Waiting | None:
    """Why a container of a pod that has a node is not started yet."""
    own = main(pod)
    statuses: list[ContainerStatus] = list(pod.status.init_container_statuses or ())
    for status in [*statuses, *([own] if own else [])]:
        found: Waiting | None = status.state.waiting if status.state else None
        if found is not None:
            return found
    return None


def main(pod: Pod) -> ContainerStatus | None:
    statuses = pod.status.container_statuses or ()
    return next((each for each in statuses if each.name == CONTAINER), None)


def _terminated(pod: Pod) -> Terminated | None:
    status = main(pod)
    return status.state.terminated if status and status.state else None


def _of(pod: Pod, at_s: int | None, reason: str, message: str) -> End:
    disrupted = holds(pod.status.conditions, "DisruptionTarget")
    if disrupted is not None and disrupted.reason in troubles.CAUSES:
        reason, message = disrupted.reason, disrupted.message or message
    return End(at_s, troubles.cause(reason).by, troubles.sentence(reason, message))


def _cause(pod: Pod, terminated: Terminated | None) -> tuple[str, str]:
    """Whose doing it was, and why: what kills the container comes before what takes the pod, and
    what takes the pod before a code that says nothing."""
    died = (terminated.reason if terminated else "") or ""
    message = (terminated.message if terminated else "") or ""
    if died in ("OOMKilled", "StartError", "ContainerCannotRun"):
        return troubles.cause(died).by, troubles.sentence(died, message)
    disrupted = holds(pod.status.conditions, "DisruptionTarget")
    reason, words = pod.status.reason or "", pod.status.message or ""
    if reason == "Evicted" and _OWN_LIMIT.search(words):
        reason = "OwnLimit"
        return troubles.cause(reason).by, troubles.sentence(reason, words)
    if disrupted is not None:
        named = disrupted.reason or ""
        if reason in troubles.CAUSES and named == "TerminationByKubelet":
            named = reason  # which says more
        return troubles.cause(named).by, troubles.sentence(named, words or disrupted.message or "")
    if reason:
        return troubles.cause(reason).by, troubles.sentence(reason, words)
    if pod.metadata.deletion_timestamp:
        return troubles.cause("Deleted").by, troubles.sentence("Deleted", "")
    if terminated is None or terminated.exit_code == 0:
        return _of_inits(pod)
    code = terminated.exit_code
    last = message.strip().splitlines()[-1:] or [""]
    why = f"its container ended with code {code}"
    return (
        JOB if code == told.NO_PYTHON else "",
        f"{why}: {last[0].strip()[:400]}" if last[0] else why,
    )


def _of_inits(pod: Pod) -> tuple[str, str]:
    for status in pod.status.init_container_statuses or ():
        ended = status.state.terminated if status.state else None
        if ended is not None and ended.exit_code:
            words = f"its init container {status.name} ended with code {ended.exit_code}"
            return JOB, f"{words}: {(ended.message or '').strip()[-400:]}".rstrip(": ")
    return "", ""


def _disrupted_s(pod: Pod) -> int | None:
    found = holds(pod.status.conditions, "DisruptionTarget")
    return moment(found.last_transition_time) if found else None
