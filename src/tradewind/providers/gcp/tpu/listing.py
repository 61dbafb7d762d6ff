"""Nodes and queued resources as our machines. Pure.

A node is paid while it is READY (cloud.google.com/tpu/pricing): from the end of the operation that
created it to the beginning of the one that deletes it. When it is gone, its operations are all that
is left; its name ends in the rank of its last worker.

When a spot slice was taken, Google does not say: a node has the time of its creation and no other,
the state of a queued resource has none, and operations are only what somebody asked for, of which
taking a slice is none that is documented. So it has ended when it was first seen as PREEMPTED, or
when it was deleted, if nobody saw it before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from tradewind.model.run import Machine, Queued
from tradewind.providers.gcp import labels
from tradewind.providers.gcp.facts import TPU
from tradewind.providers.gcp.labels import Name
from tradewind.providers.gcp.operations import at_s
from tradewind.providers.gcp.tpu.api import Node, Operation, QueuedResource

CREATING = "CREATING"
OVER = ("PREEMPTED", "STOPPED", "TERMINATED", "HIDDEN")
"""Nothing of it runs, nothing is paid, and it is in the way of another of its name."""
WAITING = ("CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "PROVISIONING")
DONE_WITH = ("FAILED", "SUSPENDED")
"""Of queued resources: they have no slice, or none any more."""
ID_PREFIX = f"{labels.ID_PREFIX}{TPU}"
_ID = re.compile(rf"{ID_PREFIX}([a-z0-9-]+?)-({labels.PREFIX}[a-z0-9-]+)-w(0|[1-9]\d{{0,5}})")

Place = tuple[str, str]
"""A slice: its zone, and its name there."""


def machine_id(place: Place, rank: int) -> str:
    return f"{ID_PREFIX}{place[0]}-{place[1]}-w{rank}"


def parted(machine_id: str) -> tuple[Place, Name, int] | None:
    """Of a worker's id its slice, the slice's name in parts, and the worker's rank; None: it is
    none of ours."""
    found = _ID.fullmatch(machine_id)
    name = labels.parsed(found[2]) if found else None
    if found is None or name is None or int(found[3]) > name.rank:
        return None
    return (found[1], found[2]), name, int(found[3])


def workers(node: Node, operations: Sequence[Operation]) -> list[Machine]:
    """As far as it is known to Google, by rank; empty: it is not ours."""
    run = labels.run_of(node.labels, node.metadata)
    name = labels.parsed(node.short)
    if name is None or run is None:
        return []
    created = [each for each in operations if each.metadata.verb == "create" and not each.error]
    ready = [at for each in created if each.done and (at := at_s(each.metadata.end_time))]
    launched_s = max(ready) if ready else at_s(node.create_time) or 0
    return _machines((node.zone, node.short), name, run, launched_s)


def gone(
    place: Place,
    operations: Sequence[Operation],
    known: Sequence[Machine],
    taken_s: int | None,
) -> list[Machine]:
    """The workers of a slice that is listed no more, as they ended; empty: nothing says so.
    `known`: as they were listed before. `taken_s`: since when its slice was seen as taken."""
    ends = [
        at
        for each in operations
        if each.metadata.verb == "delete" and each.done and not each.error
        and (at := at_s(each.metadata.create_time))
    ]  # fmt: skip
    created = [each for each in operations if each.metadata.verb == "create"]
    if not ends:
        never = created and all(each.error for each in created)
        return [_free(each) for each in known] if never else []
    ended_s = min(ends) if taken_s is None else min(taken_s, *ends)
    found = list(known) or _concluded(place, created)
    return [replace(each, ended_s=max(ended_s, each.launched_s)) for each in found]


def _concluded(place: Place, created: Sequence[Operation]) -> list[Machine]:
    """Of a slice that was never listed to us: by its name, and when it was there."""
    name = labels.parsed(place[1])
    begun = [
        at
        for each in created
        if each.done and not each.error and (at := at_s(each.metadata.end_time))
    ]
    if name is None or not begun or (run_id := name.run_id) is None:
        return []
    return _machines(place, name, (run_id, f"{run_id}-{name.leg}"), max(begun))


def _machines(place: Place, name: Name, run: tuple[str, str], launched_s: int) -> list[Machine]:
    return [
        Machine(
            machine_id=machine_id(place, rank),
            launch_id=run[1],
            run_id=run[0],
            leg=name.leg,
            rank=rank,
            launched_s=launched_s,
        )
        for rank in range(name.rank + 1)
    ]


def queued(found: QueuedResource) -> Queued | None:
    """None: it is not ours, or does not wait."""
    name = labels.parsed(found.short)
    node = found.node
    run = labels.run_of(node.get("labels") or {}, node.get("metadata") or {})
    if name is None or run is None or found.state.state not in WAITING:
        return None
    return Queued(launch_id=run[1], run_id=run[0], leg=name.leg, reason=found.state.state)


def by_slice(operations: Iterable[Operation]) -> Mapping[Place, list[Operation]]:
    """Operations on nodes. Deleting a queued resource deletes its node, which has its name."""
    found: dict[Place, list[Operation]] = {}
    for each in operations:
        parts = each.metadata.target.split("/")
        ends = parts[4:5] == ["queuedResources"] and each.metadata.verb == "delete"
        if len(parts) == 6 and (parts[4] == "nodes" or ends):
            found.setdefault((parts[3], parts[5]), []).append(each)
    return found


def _free(machine: Machine) -> Machine:
    ended_s = machine.launched_s
    return replace(machine, ended_s=ended_s, prices=((machine.launched_s, 0),))
