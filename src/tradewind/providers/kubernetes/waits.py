"""Why a launch waits, in words, and whether it will ever begin. Pure.

What will never begin is refused: late, and for the same kinds of reasons as a launch that is
refused at once, so that another way is tried, or the run says why it cannot go on.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tradewind.model.run import JOB, TAKEN
from tradewind.providers.kubernetes import ranks, troubles
from tradewind.providers.kubernetes.gates import GATE
from tradewind.providers.kubernetes.labels import Launch
from tradewind.providers.kubernetes.objects import Condition, Leg, Pod, condition, holds, moment
from tradewind.providers.kubernetes.ranks import End

PARTLY_S, PARTLY_MORE_S = 180, 120
"""A gang some of whose pods hold nodes while others find none gives them back when so long no
further one has got a node: others may wait for just these. Two gangs that hold each other up give
up at different times, by what they are called: the other one gets its nodes then."""
IMAGE_S, IMAGE_RETRIED_S = 30, 300
"""For so long an image may be reported as missing, and as not to be had for another reason."""
START_S = 120
"""The same, of a container that cannot be made."""
PODS_S = 30
"""The same, of pods that the cluster refuses to make."""
_MISSING = re.compile(
    r"not found|manifest unknown|does not exist|no such image|unauthori[sz]ed|denied|forbidden"
    r"|authentication required|no match for platform|invalid reference",
    re.I,
)
_PASSING = re.compile(
    r"timeout|timed out|deadline exceeded|connection re|tls handshake|too ?many ?requests"
    r"|no such host|\b50[0234]\b|eof",
    re.I,
)
_NO_QUEUE = re.compile(r"doesn't exist|does not exist|not found", re.I)


class Said(NamedTuple):
    """Of a launch, besides its Job and its pods."""

    workload: Sequence[Condition] = ()
    """By Kueue."""
    events: Sequence[str] = ()
    """What went wrong with it, in the cluster's words, the last one first."""
    room: int | None = None
    """For so many of its pods that have our gate there is room; None: nobody has looked."""


NOTHING_SAID = Said()


def waits(
    leg: Leg,
    launch: Launch,
    pods: Mapping[int, Pod],
    ends: Mapping[int, End],
    at_s: int,
    said: Said,
) -> tuple[str, str]:
    """In words, and what it is refused for, if it will never begin."""
    for rank, end in sorted(ends.items()):
        kind = {TAKEN: "no_capacity", JOB: "not_allowed"}.get(end.by, "throttled")
        return f"rank {rank} ended before all had begun: {end.why or 'the reason is unknown'}", kind
    failed = holds(leg.status.conditions, "Failed")
    if failed is not None:
        return troubles.sentence(failed.reason or "", failed.message or ""), "no_capacity"
    if leg.spec.suspend:
        return _in_queue(said)
    if len(pods) < launch.nodes:
        found = _not_made(leg, at_s, said)
        if found:
            return found
    for pod in pods.values():
        found = _held_up(pod, at_s, said)
        if found and found[1]:
            return found
    return _partly(leg, launch, pods, at_s) or _why(launch, pods, at_s, said)


def _in_queue(said: Said) -> tuple[str, str]:
    conditions = list(said.workload)
    for kind in ("Evicted", "QuotaReserved", "Admitted"):
        found = condition(conditions, kind)
        if found is None or (kind == "Evicted") != (found.status == "True") or not found.message:
            continue
        words = f"Kueue: {' '.join(found.message.split())}"
        if _NO_QUEUE.search(found.message):
            return f"{words}; tradewind setup kubernetes --queue NAME names another", "not_found"
        return words, ""
    return "it waits for Kueue to admit it", ""


def _not_made(leg: Leg, at_s: int, said: Said) -> tuple[str, str] | None:
    """The Job is there, and the cluster does not make its pods: a quota, say."""
    since_s = moment(leg.status.start_time or leg.metadata.creation_timestamp)
    for words in said.events:
        row = troubles.refusal(words)
        if row is None:
            continue
        late = since_s is not None and at_s - since_s >= PODS_S
        told = f"{words}; {row.hint}" if row.hint else words
        return told, row.kind if late and row.kind != "throttled" else ""
    return None


def _held_up(pod: Pod, at_s: int, said: Said) -> tuple[str, str] | None:
    """A pod that has a node, and is not started there."""
    since_s, waiting = ranks.bound_s(pod), ranks.waiting(pod)
    if since_s is None or waiting is None or ranks.has_begun(pod):
        return None
    reason, message = waiting.reason or "", waiting.message or ""
    cause = troubles.cause(reason)
    words = troubles.sentence(reason, message)
    if not cause.never:
        if reason in ("ContainerCreating", "PodInitializing") and said.events:
            return f"{cause.words}: {said.events[0]}", ""
        return words, ""
    patience_s, kind = START_S, cause.never
    detail = " ".join((message, *said.events))
    if cause.at_once:
        patience_s = 0
    elif kind == "not_found":
        missing = _MISSING.search(detail)
        patience_s = IMAGE_S if missing else IMAGE_RETRIED_S
        if not missing and _PASSING.search(detail):
            kind = "throttled"  # it may be had by another node, or later
    return words, kind if at_s - since_s >= patience_s else ""


def _partly(leg: Leg, launch: Launch, pods: Mapping[int, Pod], at_s: int) -> tuple[str, str] | None:
    since = [at for pod in pods.values() if (at := ranks.bound_s(pod)) is not None]
    if not since or len(since) == launch.nodes:
        return None
    waited_s = at_s - max(since)
    if waited_s < patience_s(leg.metadata.name):
        return None
    why = _unscheduled(pods)
    words = f"{len(since)} of {launch.nodes} pods have nodes, the others had none for {waited_s} s"
    return f"{words}: {why}" if why else words, "no_capacity"


def patience_s(name: str) -> int:
    share = int(hashlib.sha256(name.encode()).hexdigest()[:4], 16) / 0xFFFF
    return PARTLY_S + int(share * PARTLY_MORE_S)


def _why(launch: Launch, pods: Mapping[int, Pod], at_s: int, said: Said) -> tuple[str, str]:
    placed = sum(ranks.bound_s(pod) is not None for pod in pods.values())
    if placed == launch.nodes:
        held = [found for pod in pods.values() if (found := _held_up(pod, at_s, said))]
        return held[0] if held else ("its containers are being started", "")
    gated = sum(is_gated(pod) for pod in pods.values())
    if gated == launch.nodes:
        words = f"its {gated} pods are held back until all of them fit"
        return words if said.room is None else f"{words}: there is room for {said.room}", ""
    why = _unscheduled(pods)
    if why:
        return (f"{placed} of {launch.nodes} pods have nodes: {why}" if placed else why), ""
    return "its pods are being given nodes" if pods else "its pods are being made", ""


def is_gated(pod: Pod) -> bool:
    """By our gate."""
    return any(each.name == GATE for each in pod.spec.scheduling_gates or ())


def _unscheduled(pods: Mapping[int, Pod]) -> str:
    for pod in pods.values():
        told = pod.condition("PodScheduled")
        if told is not None and told.status == "False" and (told.message or told.reason):
            return troubles.sentence(told.reason or "", told.message or "")
    return ""
