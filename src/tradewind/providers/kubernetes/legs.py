"""What a cluster's objects say of one launch: its machines, or that it waits, why, and whether it
ever will begin. Pure; cluster.py asks for the objects.

A launch is in the queue until each of its pods has been started once: until then some have no node,
or pull an image, and nothing of it can work. So images that take minutes to pull are no machines
that do not report, and an image that cannot be pulled is a launch that is refused, late. From then
on its pods are machines, since the moment at which each was given its node: what other pods could
not have meanwhile is what a node costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from tradewind.model.run import TAKEN, Machine, Queued
from tradewind.providers.kubernetes import labels, ranks, records, troubles
from tradewind.providers.kubernetes.labels import Launch
from tradewind.providers.kubernetes.objects import Leg, Pod, holds, moment
from tradewind.providers.kubernetes.ranks import End, Nodes
from tradewind.providers.kubernetes.records import Record, Records
from tradewind.providers.kubernetes.waits import NOTHING_SAID, Said, waits


class View(NamedTuple):
    machines: tuple[Machine, ...] = ()
    queued: Queued | None = None
    news: Records = {}  # noqa: RUF012 -- of a tuple
    """What is to be written down of it."""
    over: bool = False
    """Nothing of it goes on, or will."""


NOTHING = View()


def is_ready(leg: Leg) -> bool:
    """Whether it was let go: else somebody makes it just now, or was cut off at that."""
    return labels.READY in (leg.metadata.annotations or {})


def view(
    place: str,
    leg: Leg,
    launch: Launch,
    pods: Mapping[int, Pod],
    nodes: Nodes,
    at_s: int,
    said: Said = NOTHING_SAID,
) -> View:
    if not is_ready(leg):
        return NOTHING
    kept = records.read(leg.metadata.annotations)
    pods = {rank: pod for rank, pod in pods.items() if not _again(pod, kept.get(rank))}
    ends = {rank: found for rank, pod in pods.items() if (found := ranks.end(pod, nodes, at_s))}
    begun = {rank for rank, pod in pods.items() if ranks.has_begun(pod)} | {
        rank for rank, record in kept.items() if record.launched_s is not None
    }
    if len(begun) == launch.nodes or labels.WITHDRAWN in (leg.metadata.annotations or {}):
        return _there(place, leg, launch, pods, kept, ends, at_s)
    reason, refused = waits(leg, launch, pods, ends, at_s, said)
    queued = Queued(
        launch_id=launch.launch_id,
        run_id=launch.run_id,
        leg=launch.leg,
        reason=reason,
        refused=refused,
    )
    if not refused:
        return View(queued=queued)
    # What has begun all the same is paid for.
    some = _there(place, leg, launch, pods, kept, ends, at_s)
    return View(some.machines, queued, some.news)


def _there(
    place: str,
    leg: Leg,
    launch: Launch,
    pods: Mapping[int, Pod],
    kept: Records,
    ends: Mapping[int, End],
    at_s: int,
) -> View:
    """Its machines: those of ranks that have begun."""
    machines: list[Machine] = []
    news: Records = {}
    for rank in range(launch.nodes):
        pod, record = pods.get(rank), kept.get(rank, Record())
        launched_s = record.launched_s
        if launched_s is None and pod is not None and ranks.has_begun(pod):
            launched_s = ranks.bound_s(pod)
        if launched_s is None:
            continue  # it never was: its launch was taken back, or refused
        machine = Machine(
            machine_id=labels.machine_id(place, leg.metadata.name, rank),
            launch_id=launch.launch_id,
            run_id=launch.run_id,
            leg=launch.leg,
            rank=rank,
            launched_s=launched_s,
        )
        own = records.mark(pod.metadata.uid) if pod is not None else record.pod
        new = Record(launched_s, pod=own)
        finish = _finish(leg, pod, record, ends.get(rank))
        if finish is not None:
            ended_s = max(at_s if finish.at_s is None else finish.at_s, launched_s)
            machine = replace(machine, ended_s=ended_s, ended_by=finish.by, ended_why=finish.why)
            if pod is None or _goes(pod):
                new = Record(launched_s, ended_s, finish.by, finish.why, own)
        if records.merged(kept, {rank: new}).get(rank) != record:
            news[rank] = new
        machines.append(machine)
    over = all(machine.ended_s is not None for machine in machines)
    return View(tuple(machines), None, news, over)


def _again(pod: Pod, record: Record | None) -> bool:
    """Another one of a rank that had begun: a queue that takes a Job back may begin it once more.
    To us it is over, and removed."""
    return bool(record and record.pod and record.pod != records.mark(pod.metadata.uid))


def _goes(pod: Pod) -> bool:
    """It will not tell much longer."""
    return pod.metadata.deletion_timestamp is not None


def _finish(leg: Leg, pod: Pod | None, record: Record, end: End | None) -> End | None:
    """When and why a machine ended; None: it goes on."""
    if record.ended_s is not None:
        # We have asked for it, or have seen it; it is over when its pod is.
        return End(record.ended_s, record.by, record.why) if pod is None or end else None
    if pod is not None:
        return end
    failed = holds(leg.status.conditions, "Failed")
    if failed is not None and failed.reason == "DeadlineExceeded":
        why = troubles.sentence("DeadlineExceeded", failed.message or "")
        return End(moment(failed.last_transition_time), "", why)
    reason = "Suspended" if leg.spec.suspend else "Deleted"
    return End(None, TAKEN, troubles.sentence(reason, ""))
