"""Nodes that are alike, as kinds of machines: what a pod asks for to get one, and how many there
are. Pure.

A pod may take a part of a node: of one with eight GPUs, machines of one, two, four and eight are
offered. TPU nodes are taken whole, as their vendor wants it, and a slice over several nodes is one
machine of as many pods. Of what a node has besides, a machine gets its share.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from tradewind.providers.kubernetes.offers import known
from tradewind.providers.kubernetes.offers.nodes import Chip, Node
from tradewind.providers.kubernetes.offers.quantities import cores, mebibytes

Amounts = Mapping[str, float]
_SPARE, _SPARE_UNSEEN = 0.9, 0.75
"""Of processors and memory that a node has left by its daemons, what pods of ours ask for; and of
all that it has, where its daemons may not be seen."""
OURS = (
    "nvidia.com/", "amd.com/", "google.com/tpu", "aws.amazon.com/neuron", "sku",
    "cloud.google.com/gke-spot", "cloud.google.com/gke-accelerator", "kubernetes.io/arch",
    "kubernetes.azure.com/scalesetpriority", "gpu.nvidia.com/", "nebius.com/",
)  # fmt: skip
"""Taints that keep pods away which do not need what the node has: such pods as ours are meant to
tolerate them. Any other taint means somebody else's nodes, until setup is told otherwise."""


class Shape(Struct, frozen=True, kw_only=True):
    name: str
    """The instance type of ways."""
    node_type: str
    """Of the nodes, by their label; "": they have none."""
    chip: Chip
    asked: int
    """Of what the chip is called, by a pod."""
    spot: bool
    selector: dict[str, str]
    absent: tuple[str, ...] = ()
    """Labels that nodes of it have not, and others have that the selector fits too."""
    tolerations: tuple[dict[str, str], ...] = ()
    resources: dict[str, str]
    machines: int
    free: int | None
    nodes: int
    """Of such nodes, those that are up."""
    zones: tuple[str, ...] = ()
    kind: str = ""
    provider: str = ""
    region: str = ""
    added: int = 0
    """Of `machines`, those that an autoscaler would have to add."""
    sure: str = ""

    @property
    def share(self) -> float:
        """Of a node; of a slice over several, all of them."""
        return self.chip.hosts * self.asked / self.chip.number

    @property
    def market(self) -> str:
        return "spot" if self.spot else "on_demand"

    @property
    def placement(self) -> dict[str, Any]:
        """As manifests take it."""
        made: dict[str, Any] = {
            "selector": self.selector,
            "resources": self.resources,
            "tolerations": list(self.tolerations),
        }
        return made | ({"absent": list(self.absent)} if self.absent else {})


class Group(Struct, frozen=True):
    """Of nodes, by what tells them apart."""

    instance_type: str
    chip: Chip
    labelled: str
    spot: bool
    arch: str
    topology: str


def shapes(
    nodes: Sequence[Node],
    used: Mapping[str, Amounts] | None,
    daemons: Mapping[str, Amounts] | None,
    tolerated: Iterable[str] = (),
) -> list[Shape]:
    """`used`: what is asked for on each node, and `daemons`, of that, what is on every node anyway;
    None: not known."""
    fine = (*OURS, *tolerated)
    open_to_us = [node for node in nodes if node.up and not strange(node, fine)]
    groups: dict[Group, list[Node]] = {}
    for node in open_to_us:
        for chip in node.chips:
            labelled = node.labels.get(chip.label, "")
            topology = node.labels.get(known.TPU_TOPOLOGY, "") if chip.hosts > 1 else ""
            group = Group(node.instance_type, chip, labelled, node.spot, node.arch, topology)
            groups.setdefault(group, []).append(node)
    taken: set[tuple[str, bool]] = set()
    found = []
    for group, alike in groups.items():
        for asked in sizes(group.chip):
            name = _unique(called(group.instance_type, group.chip, asked), group.spot, taken)
            found.append(_shape(name, group, asked, alike, used, daemons, open_to_us))
    return found


def strange(node: Node, fine: Iterable[str]) -> list[str]:
    """Taints of others."""
    keys = [str(each["key"]) for each in node.taints]
    return [key for key in keys if not key.startswith(tuple(fine))]


def sizes(chip: Chip) -> list[int]:
    if chip.resource == known.TPU:
        return [chip.number]
    if chip.part < 1:
        return [1]  # parts of a GPU do not work as one
    powers = (1 << each for each in range(chip.number.bit_length()))
    return sorted({*(each for each in powers if each < chip.number), chip.number})


def called(instance_type: str, chip: Chip, asked: int) -> str:
    """`p5.48xlarge`, of which `p5.48xlarge-2of8` is a part."""
    part = re.sub(r"[^a-z0-9.]+", "-", chip.resource.removeprefix(known.MIG).lower())
    plain = re.sub(r"[^a-z0-9.]+", "-", (chip.name or part).lower()).strip("-")
    if chip.part < 1:
        return f"{instance_type or plain}-{round(chip.part * 7)}g.{chip.memory_gb:g}gb"
    if chip.hosts > 1:
        return f"{instance_type or plain}-x{chip.hosts}"
    base = instance_type or f"{plain}-{chip.number}"
    return base if asked == chip.number else f"{base}-{asked}of{chip.number}"


def _unique(name: str, spot: bool, taken: set[tuple[str, bool]]) -> str:
    tried, number = name, 2
    while (tried, spot) in taken:
        tried, number = f"{name}-{number}", number + 1
    taken.add((tried, spot))
    return tried


def _shape(
    name: str,
    group: Group,
    asked: int,
    alike: Sequence[Node],
    used: Mapping[str, Amounts] | None,
    daemons: Mapping[str, Amounts] | None,
    every: Sequence[Node],
) -> Shape:
    chip, first = group.chip, alike[0]
    needs = {chip.resource: float(asked), **_rest(alike, daemons, asked / chip.number)}
    selector = _selector(group, alike)
    fits = sum(_fitting(needs, node.allocatable, {}) for node in alike) // chip.hosts
    free = None
    if used is not None:
        room = (_fitting(needs, node.allocatable, used.get(node.name, {})) for node in alike)
        free = sum(room) // chip.hosts
    return Shape(
        name=name,
        node_type=group.instance_type,
        chip=chip,
        asked=asked,
        spot=group.spot,
        selector=selector,
        absent=() if group.spot else _absent(selector, alike, every),
        tolerations=_tolerations(alike),
        resources={
            chip.resource: str(asked),
            "cpu": cores(needs["cpu"]),
            "memory": mebibytes(needs["memory"]),
        },
        machines=fits,
        free=free,
        nodes=len(alike),
        zones=tuple(sorted({node.zone for node in alike if node.zone})),
        kind=first.kind,
        provider=first.provider,
        region=first.region,
        sure=_sure(fits, free),
    )


def _sure(fits: int, free: int | None) -> str:
    if free is None:
        return f"room for {fits}; how much of it is free is not known"
    return f"{free} of {fits} free now" if free < fits else f"all of {fits} free now"


def _rest(alike: Sequence[Node], daemons: Mapping[str, Amounts] | None, share: float) -> Amounts:
    """Processors and memory of a machine: of the node that has least."""
    spare = _SPARE_UNSEEN if daemons is None else _SPARE
    taken = daemons or {}
    return {
        name: max(
            min(
                node.allocatable.get(name, 0.0) - taken.get(node.name, {}).get(name, 0.0)
                for node in alike
            )
            * share
            * spare,
            0.1,
        )
        for name in ("cpu", "memory")
    }


def _fitting(needs: Amounts, has: Amounts, used: Amounts) -> int:
    """How many machines of it a node has room for."""
    left = ((has.get(name, 0.0) - used.get(name, 0.0)) / much for name, much in needs.items())
    return max(int(min(left) + 1e-9), 0)


def _selector(group: Group, alike: Sequence[Node]) -> dict[str, str]:
    """All labels that choose these nodes: each has all of them."""
    found = {
        known.INSTANCE_TYPE: group.instance_type,
        group.chip.label: group.labelled,
        known.ARCH: group.arch,
        known.TPU_TOPOLOGY: group.topology,
    }
    found = {name: value for name, value in found.items() if name and value}
    for name, value in known.SPOT if group.spot else known.STEADY:
        if all(node.labels.get(name) == value for node in alike):
            found[name] = value
            break
    return found


def _absent(
    selector: Mapping[str, str], alike: Sequence[Node], every: Sequence[Node]
) -> tuple[str, ...]:
    """Labels of spot machines that only others have: a pod that is not to be taken keeps off."""
    own = {name for node in alike for name in node.labels}
    others = [
        node
        for node in every
        if node.spot and all(node.labels.get(name) == value for name, value in selector.items())
    ]
    marks = [name for name, value in known.SPOT if name not in own]
    return tuple(name for name in marks if any(name in node.labels for node in others))


def _tolerations(alike: Sequence[Node]) -> tuple[dict[str, str], ...]:
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for node in alike:
        for taint in node.taints:
            key, value = str(taint["key"]), str(taint.get("value") or "")
            one = {"key": key, "effect": str(taint["effect"])}
            one |= {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
            found[key, value, one["effect"]] = one
    return tuple(found.values())
