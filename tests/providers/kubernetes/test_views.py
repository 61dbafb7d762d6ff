"""What objects of a cluster say of a launch. Pure: every state can be written down."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec import convert

from tests.providers.kubernetes.builders import PLACE
from tradewind.model.run import JOB, TAKEN
from tradewind.providers.boot import told
from tradewind.providers.kubernetes import labels, legs, marks, ranks, records, troubles, waits
from tradewind.providers.kubernetes.legs import View
from tradewind.providers.kubernetes.objects import Condition, Leg, Nodes, Pod
from tradewind.providers.kubernetes.records import Record

NOW = 1_800_000_000
UNREAD = ranks.Nodes(None)


def at(seconds_ago: int) -> str:
    moment = datetime.fromtimestamp(NOW - seconds_ago, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def a_leg(kept: dict[int, Record] | None = None, suspend: bool = False, **status: Any) -> Leg:
    stamps = {labels.READY: "true", **(records.written(kept) if kept else {})}
    meta = {"name": "tw-run-1-0123456789", "uid": "job", "creationTimestamp": at(1000)}
    value = {
        "metadata": {**meta, "annotations": stamps},
        "spec": {"suspend": suspend},
        "status": {"startTime": at(1000), **status},
    }
    return convert(value, Leg)


def a_pod(
    state: dict[str, Any] | None = None,
    *,
    uid: str = "pod-0000",
    node: str = "n1",
    phase: str = "Running",
    bound: int = 900,
    deleted: int | None = None,
    conditions: tuple[dict[str, Any], ...] = (),
    **status: Any,
) -> Pod:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(bound)}
    meta: dict[str, Any] = {"name": "p", "uid": uid, "creationTimestamp": at(1000)}
    if deleted is not None:
        meta["deletionTimestamp"] = at(deleted)
    value = {
        "metadata": meta,
        "spec": {"nodeName": node} if node else {},
        "status": {
            "phase": phase,
            "conditions": [*([scheduled] if node else []), *conditions],
            "containerStatuses": [{"name": "job", "state": state}] if state else None,
            **status,
        },
    }
    return convert(value, Pod)


RUNNING = {"running": {"startedAt": at(890)}}


def died(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    when = {"startedAt": at(890), "finishedAt": at(40)}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **when}}


def waits_for(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def disrupted(reason: str) -> dict[str, Any]:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": "m",
        "lastTransitionTime": at(50),
    }


def unscheduled(reason: str, message: str) -> Pod:
    told = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return a_pod(node="", phase="Pending", conditions=(told,))


def seen(leg: Leg, *pods: Pod | None, nodes: ranks.Nodes = UNREAD, **said: Any) -> View:
    launch = labels.Launch("run-1", "run-1-1", 1, len(pods))
    found = {rank: pod for rank, pod in enumerate(pods) if pod is not None}
    return legs.view(PLACE, leg, launch, found, nodes, NOW, waits.Said(**said))


@pytest.mark.parametrize(
    ("pod", "by", "words"),
    [
        (a_pod(died(137, "OOMKilled")), JOB, "more memory"),
        (a_pod(died(128, "StartError", 'exec: "/bin/sh": not found')), JOB, "/bin/sh"),
        (a_pod(died(told.NO_PYTHON, message="x\nerror: no Python")), JOB, "error: no Python"),
        (a_pod(died(3, message="a\nlast line\n")), "", "code 3: last line"),
        (a_pod(died(0)), "", ""),
        (
            a_pod(died(137), phase="Failed", reason="Evicted", message="node was low on memory"),
            TAKEN,
            "low on memory",
        ),
        (
            a_pod(
                died(137),
                phase="Failed",
                reason="Evicted",
                message='Usage of EmptyDir volume "shm" exceeds the limit "1Gi".',
            ),
            JOB,
            "write less to /tmp",
        ),
        (
            a_pod(died(143), conditions=(disrupted("PreemptionByScheduler"),)),
            TAKEN,
            "--priority CLASS",
        ),
        (a_pod(died(143), conditions=(disrupted("EvictionByEvictionAPI"),)), TAKEN, "drained"),
        (a_pod(died(143), conditions=(disrupted("DeletionByTaintManager"),)), TAKEN, "tainted"),
        (
            a_pod(
                died(143),
                phase="Failed",
                reason="Terminated",
                message="imminent node shutdown",
                conditions=(disrupted("TerminationByKubelet"),),
            ),
            TAKEN,
            "imminent node shutdown",
        ),
        (a_pod(died(143), deleted=30), TAKEN, "deleted"),
        (a_pod(died(137), phase="Failed", reason="DeadlineExceeded"), "", "hard stop"),
        (a_pod(None, phase="Failed", reason="NodeLost"), TAKEN, "lost"),
        (a_pod(died(143), phase="Failed", reason="Preempting"), TAKEN, "a critical pod"),
        (a_pod(died(143), phase="Failed", reason="Shutdown"), TAKEN, "shut down"),
        (a_pod(died(143), phase="Failed", reason="NodeShutdown"), TAKEN, "shut down"),
        (a_pod(died(137), conditions=(disrupted("DeletionByPodGC"),)), TAKEN, "node is gone"),
        (a_pod(died(128, "ContainerCannotRun", "no such file")), JOB, "no such file"),
        (a_pod(died(137), phase="Failed", reason="SomethingNew"), "", "SomethingNew"),
        # What killed the container counts more than what took the pod then.
        (
            a_pod(died(137, "OOMKilled"), conditions=(disrupted("EvictionByEvictionAPI"),)),
            JOB,
            "memory",
        ),
    ],
)
def test_whose_doing_an_end_was(pod: Pod, by: str, words: str) -> None:
    (machine,) = seen(a_leg({0: Record(NOW - 900, pod="pod-0000")}), pod).machines
    assert machine.ended_s is not None
    assert machine.ended_by == by
    assert words in machine.ended_why


def test_one_that_lives() -> None:
    view = seen(a_leg(), a_pod(RUNNING))
    (machine,) = view.machines
    assert (machine.launched_s, machine.ended_s) == (NOW - 900, None)
    assert view.news == {0: Record(NOW - 900, pod="pod-0000")}
    assert not view.over
    again = seen(a_leg(view.news), a_pod(RUNNING))
    assert again.machines == view.machines
    assert not again.news, "it is written down once"


READY, SILENT = ranks.Nodes({"n1": True}), ranks.Nodes({"n1": False, "n2": True})
GONE = ranks.Nodes({"n2": True})


@pytest.mark.parametrize(
    ("deleted", "nodes", "ended"),
    [
        (None, READY, False),
        (None, SILENT, False),
        (None, UNREAD, False),
        (None, GONE, True),
        (-20, SILENT, False),
        (ranks.SILENT_S - 1, SILENT, False),
        (ranks.SILENT_S, SILENT, True),
        (ranks.SILENT_S, READY, False),
        (ranks.SILENT_S, UNREAD, False),
        (ranks.STUCK_S, UNREAD, True),
        (ranks.STUCK_S, READY, True),
    ],
)
def test_nodes_that_say_nothing(deleted: int | None, nodes: ranks.Nodes, ended: bool) -> None:
    (machine,) = seen(a_leg(), a_pod(RUNNING, deleted=deleted), nodes=nodes).machines
    assert (machine.ended_s is not None) == ended
    assert machine.ended_by == (TAKEN if ended else "")


@pytest.mark.parametrize(
    ("deleted", "nodes", "stuck"),
    [
        (None, SILENT, False),
        (ranks.SILENT_S - 1, SILENT, False),
        (ranks.SILENT_S, SILENT, True),
        (ranks.SILENT_S, GONE, True),
        (ranks.STUCK_S, READY, False),
        (ranks.STUCK_S - 1, UNREAD, False),
        (ranks.STUCK_S, UNREAD, True),
    ],
)
def test_pods_that_nobody_will_remove(deleted: int | None, nodes: ranks.Nodes, stuck: bool) -> None:
    """As soon as they count as ended, since the run may end with them."""
    pod = a_pod(RUNNING, deleted=deleted)
    assert ranks.is_stuck(pod, nodes, NOW) == stuck
    (machine,) = seen(a_leg(), pod, nodes=nodes).machines
    assert machine.ended_s is not None or not stuck


@pytest.mark.parametrize(
    ("effect", "key", "marked"),
    [
        ("NoSchedule", "karpenter.sh/disrupted", True),
        ("NoExecute", "cloud.google.com/impending-node-termination", True),
        ("PreferNoSchedule", "DeletionCandidateOfClusterAutoscaler", False),
        ("PreferNoSchedule", "karpenter.sh/disrupted", False),
        ("NoSchedule", "node.kubernetes.io/unschedulable", False),
        ("NoSchedule", "nvidia.com/gpu", False),
    ],
)
def test_which_taints_say_that_a_node_goes(effect: str, key: str, marked: bool) -> None:
    nodes = convert({"items": [{"metadata": {"name": "n1"}, "spec": {"taints": [
        {"key": "team", "effect": "NoSchedule"}, {"key": key, "effect": effect},
    ]}}]}, Nodes)  # fmt: skip
    assert nodes.items is not None
    assert marks.of(nodes.items[0].spec.taints or ()) == (key if marked else "")


@pytest.mark.parametrize(
    ("pod", "told"),
    [
        (a_pod(RUNNING), "k"),
        (a_pod(RUNNING, node="n2"), ""),
        (a_pod(RUNNING, deleted=-10), ""),
        (a_pod(waits_for("ContainerCreating"), phase="Pending"), ""),
    ],
)
def test_which_pods_are_told_that_their_node_goes(pod: Pod, told: str) -> None:
    """Those at work, once."""
    assert ranks.mark(pod, ranks.Nodes({"n1": True}, {"n1": "k"})) == told


def test_what_we_have_ended_ends_when_its_pod_does() -> None:
    kept = {0: Record(NOW - 900, NOW - 20, pod="pod-0000")}
    (living,) = seen(a_leg(kept), a_pod(RUNNING, deleted=-10)).machines
    assert living.ended_s is None
    for pod in (a_pod(died(143), deleted=-10), None):
        view = seen(a_leg(kept), pod)
        (machine,) = view.machines
        assert (machine.ended_s, machine.ended_by, machine.ended_why) == (NOW - 20, "", "")
        assert not view.news


def test_a_pod_that_is_gone_was_there() -> None:
    kept = {0: Record(NOW - 900, pod="pod-0000")}
    view = seen(a_leg(kept), None)
    (machine,) = view.machines
    assert (machine.launched_s, machine.ended_s) == (NOW - 900, NOW)
    assert machine.ended_by == TAKEN
    later = seen(a_leg(records.merged(kept, view.news)), None)
    assert later.machines == view.machines
    assert later.over


def test_a_rank_does_not_begin_twice() -> None:
    """A queue that takes a Job back and begins it again: the leg that it was is over."""
    kept = {0: Record(NOW - 900, pod="pod-0000")}
    view = seen(a_leg(kept), a_pod(RUNNING, uid="other-pod"))
    assert view.over
    assert view.machines[0].ended_by == TAKEN


def test_one_that_somebody_is_making() -> None:
    leg = a_leg()
    leg.metadata.annotations.clear()  # type: ignore[union-attr]
    assert seen(leg, a_pod(RUNNING)) == legs.NOTHING


@pytest.mark.parametrize(
    ("pod", "refused", "words"),
    [
        (a_pod(waits_for("ContainerCreating")), "", "being pulled"),
        (a_pod(waits_for("ErrImagePull", "manifest unknown")), "not_found", "manifest unknown"),
        (a_pod(waits_for("ErrImagePull", "manifest unknown"), bound=5), "", "manifest unknown"),
        (a_pod(waits_for("ErrImagePull", "dial tcp: i/o timeout")), "throttled", "i/o timeout"),
        (a_pod(waits_for("ErrImagePull", "i/o timeout"), bound=200), "", "i/o timeout"),
        (a_pod(waits_for("ImagePullBackOff", "Back-off")), "not_found", "Back-off"),
        (a_pod(waits_for("ImagePullBackOff", "Back-off"), bound=200), "", "Back-off"),
        (a_pod(waits_for("InvalidImageName", "A B"), bound=0), "not_allowed", "A B"),
        (a_pod(waits_for("CreateContainerConfigError", "runs as root")), "not_allowed", "root"),
        (
            a_pod(waits_for("CreateContainerConfigError", "secret not found"), bound=60),
            "",
            "secret not found",
        ),
        (a_pod(waits_for("ErrImageNeverPull", "not present")), "not_found", "run.image"),
        (a_pod(waits_for("RegistryUnavailable", "503")), "throttled", "run.image"),
        (a_pod(waits_for("CreateContainerError", "no device")), "not_allowed", "describe pod"),
        (a_pod(waits_for("RunContainerError", "bad mount")), "not_allowed", "describe pod"),
        (unscheduled("Unschedulable", "0/3 nodes are available"), "", "0/3 nodes are available"),
        (unscheduled("Unschedulable", "0/3 nodes are available"), "", "doctor kubernetes"),
        (unscheduled("SchedulingGated", ""), "", "spec.schedulingGates"),
    ],
)
def test_what_keeps_a_pod_from_beginning(pod: Pod, refused: str, words: str) -> None:
    view = seen(a_leg(), pod)
    assert view.queued is not None
    assert view.queued.refused == refused
    assert words in view.queued.reason
    assert not view.machines


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("OutOfcpu", "no room"),
        ("OutOfnvidia.com/gpu", "no room"),
        ("OutOfephemeral-storage", "no room"),
        ("UnexpectedAdmissionError", "did not admit"),
        ("TopologyAffinityError", "lie together"),
        ("NodeAffinity", "no longer suits"),
    ],
)
def test_a_node_that_sends_a_pod_back_has_no_room_for_it(reason: str, words: str) -> None:
    """The kubelet decides once more when the scheduler has: such a pod fails before it begins."""
    view = seen(a_leg(), a_pod(None, phase="Failed", reason=reason, message="Pod was rejected"))
    assert view.queued is not None
    assert view.queued.refused == "no_capacity"
    assert words in view.queued.reason
    assert "Pod was rejected" in view.queued.reason


@pytest.mark.parametrize(
    ("event", "refused", "todo"),
    [
        ('pods "a" is forbidden: exceeded quota: q', "no_quota", "describe resourcequota"),
        (
            'pods "a" is forbidden: failed quota: q: must specify limits.cpu for: job',
            "no_quota",
            "describe resourcequota",
        ),
        (
            'pods "a" is forbidden: maximum cpu usage per Pod is 4, but limit is 90',
            "not_allowed",
            "describe limitrange",
        ),
        (
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": hostNetwork=true',
            "not_allowed",
            "pod security level",
        ),
        (
            'pods "a" is forbidden: error looking up service account n/t: serviceaccount "t" not'
            " found",
            "not_found",
            "tradewind setup kubernetes",
        ),
        ('admission webhook "w" denied the request: no', "not_allowed", "a rule of the cluster"),
        (
            "pods is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "not_allowed",
            "a rule of the cluster",
        ),
        ('Internal error occurred: failed calling webhook "w"', "", "does not answer"),
    ],
)
def test_pods_that_the_cluster_does_not_make(event: str, refused: str, todo: str) -> None:
    """Only an event of the Job tells, and what can be done is told with it."""
    view = seen(a_leg(), None, events=[f"Error creating: {event}"])
    assert view.queued is not None
    assert view.queued.refused == refused
    assert event in view.queued.reason
    assert todo in view.queued.reason.split(event)[1]


def test_what_only_events_tell() -> None:
    vague = a_pod(waits_for("ImagePullBackOff", "Back-off"), bound=100)
    view = seen(a_leg(), vague, events=['Failed to pull image "a": not found'])
    assert view.queued is not None
    assert view.queued.refused == "not_found"
    mounting = a_pod(waits_for("ContainerCreating"))
    view = seen(a_leg(), mounting, events=['MountVolume failed: claim "x" not bound'])
    assert view.queued is not None
    assert 'claim "x"' in view.queued.reason


def test_reasons_of_kueue() -> None:
    waits_on = Condition("QuotaReserved", "False", "Pending", "insufficient unused quota")
    view = seen(a_leg(suspend=True), None, workload=[waits_on])
    assert view.queued is not None
    assert view.queued.reason == "Kueue: insufficient unused quota"
    gone = Condition("QuotaReserved", "False", "Inadmissible", "LocalQueue a doesn't exist")
    view = seen(a_leg(suspend=True), None, workload=[gone])
    assert view.queued is not None
    assert view.queued.refused == "not_found"
    assert "setup kubernetes --queue" in view.queued.reason


def test_gangs_give_up_at_different_times() -> None:
    times = {waits.patience_s(f"tw-run-{n}") for n in range(50)}
    assert len(times) > 25
    assert min(times) >= waits.PARTLY_S
    assert max(times) <= waits.PARTLY_S + waits.PARTLY_MORE_S


def test_nodes_as_rows_and_as_objects() -> None:
    table = {"rows": [{"cells": ["a", "Ready"]}, {"cells": ["b", "NotReady,SchedulingDisabled"]}]}
    ready = {"type": "Ready", "status": "True"}
    items = {"items": [{"metadata": {"name": "a"}, "status": {"conditions": [ready]}}]}
    assert convert(table, Nodes).ready() == {"a": True, "b": False}
    assert convert(items, Nodes).ready() == {"a": True}


def test_every_cause_has_words_and_a_known_kind() -> None:
    for name, cause in troubles.CAUSES.items():
        assert cause.words, name
        assert cause.by in ("", JOB, TAKEN)
        assert cause.never in ("", "not_found", "not_allowed", "no_capacity")
        if cause.by == JOB or cause.never:
            assert cause.hint, f"{name}: the user must act, and is not told how"
