"""What is read of the API's objects, and no more: a pod has ten kilobytes, and most of it is of no
use here. Fields that are missing or null are as the API means them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct


class Meta(Struct, rename="camel", frozen=True, gc=False):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    """When it is to be gone: its grace is in it."""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Account(Struct, frozen=True, gc=False):
    """A service account."""

    metadata: Meta = Meta()


class Condition(Struct, rename="camel", frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


class Waiting(Struct, frozen=True, gc=False):
    reason: str | None = None
    message: str | None = None


class Running(Struct, rename="camel", frozen=True, gc=False):
    started_at: str | None = None


class Terminated(Struct, rename="camel", frozen=True, gc=False):
    exit_code: int = 0
    reason: str | None = None
    message: str | None = None
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(Struct, frozen=True, gc=False):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True, gc=False):
    name: str = ""
    state: ContainerState | None = None


class PodStatus(Struct, rename="camel", frozen=True, gc=False):
    phase: str = ""
    reason: str | None = None
    message: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None


class Gate(Struct, frozen=True, gc=False):
    name: str = ""


class PodSpec(Struct, rename="camel", frozen=True, gc=False):
    node_name: str | None = None
    scheduling_gates: list[Gate] | None = None


class Pod(Struct, frozen=True, gc=False):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, kind: str) -> Condition | None:
        return condition(self.status.conditions, kind)


class LegSpec(Struct, frozen=True, gc=False):
    suspend: bool | None = None


class LegStatus(Struct, rename="camel", frozen=True, gc=False):
    conditions: list[Condition] | None = None
    start_time: str | None = None


class Leg(Struct, frozen=True, gc=False):
    """A Job, or a JobSet."""

    metadata: Meta
    spec: LegSpec = LegSpec()
    status: LegStatus = LegStatus()


class Owner(Struct, frozen=True, gc=False):
    uid: str = ""


class OwnedMeta(Struct, rename="camel", frozen=True, gc=False):
    owner_references: list[Owner] | None = None


class WorkloadStatus(Struct, frozen=True, gc=False):
    conditions: list[Condition] | None = None


class Workload(Struct, frozen=True, gc=False):
    """Kueue's, of a Job."""

    metadata: OwnedMeta
    status: WorkloadStatus = WorkloadStatus()


class Event(Struct, frozen=True, gc=False):
    type: str | None = None
    reason: str | None = None
    message: str | None = None


class Row(Struct, frozen=True, gc=False):
    cells: list[Any] = []


class NodeStatus(Struct, frozen=True, gc=False):
    conditions: list[Condition] | None = None


class Taint(Struct, frozen=True, gc=False):
    key: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True, gc=False):
    taints: list[Taint] | None = None


class Node(Struct, frozen=True, gc=False):
    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Nodes(Struct, frozen=True, gc=False):
    """A table of nodes, or their list where the server knows no tables."""

    rows: list[Row] | None = None
    items: list[Node] | None = None
    metadata: dict[str, Any] = {}

    def ready(self) -> dict[str, bool]:
        """By name."""
        found = {str(row.cells[0]): _says_ready(row.cells) for row in self.rows or () if row.cells}
        for node in self.items or ():
            told = condition(node.status.conditions, "Ready")
            found[node.metadata.name] = told is not None and told.status == "True"
        return found


def _says_ready(cells: list[Any]) -> bool:
    """Of kubectl's columns: NAME, STATUS …; `Ready,SchedulingDisabled` is ready."""
    return len(cells) > 1 and "Ready" in str(cells[1]).split(",")


def condition(conditions: list[Condition] | None, kind: str) -> Condition | None:
    return next((each for each in conditions or () if each.type == kind), None)


def holds(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """The condition, where it is true."""
    found = condition(conditions, kind)
    return found if found is not None and found.status == "True" else None


def moment(text: str | None) -> int | None:
    """Seconds since 1970."""
    if not text:
        return None
    try:
        return int(datetime.fromisoformat(text).timestamp())
    except ValueError:
        return None
