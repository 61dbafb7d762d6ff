"""A node of a cluster, read from what the API server tells of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from msgspec import Struct

from tradewind.providers.kubernetes.offers import known
from tradewind.providers.kubernetes.offers.quantities import amount

_SHARED = re.compile(r"-SHARED(?:-\w+)?$")
_SLICED = re.compile(r"-MIG-(\d)g\.(\d+)gb.*$")
_SLICE = re.compile(r"(\d)g\.(\d+)gb")
SLICES = 7
"""Of compute that MIG cuts a GPU into."""
_BLOCKING = ("NoSchedule", "NoExecute")
_PASSING = "node.kubernetes.io/"
"""Taints that the cluster itself sets for as long as something is wrong with a node."""


class Chip(Struct, frozen=True, kw_only=True):
    """What of accelerators a node has, as pods ask for it."""

    resource: str
    number: int
    """That pods can ask for."""
    name: str
    """As it is labelled; "": it is not."""
    label: str = ""
    """The one that said so."""
    part: float = 1.0
    """So much of an accelerator each is."""
    memory_gb: float | None = None
    hosts: int = 1
    """So many nodes make one slice, of which all are used or none."""


class Node(Struct, frozen=True, kw_only=True):
    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, float]
    taints: tuple[Mapping[str, str], ...]
    """That a pod must tolerate to get there."""
    up: bool
    """Ready, and pods may be put there."""
    chips: tuple[Chip, ...]
    spot: bool
    kind: str
    provider: str

    @property
    def instance_type(self) -> str:
        return self.labels.get(known.INSTANCE_TYPE, "")

    @property
    def region(self) -> str:
        return self.labels.get(known.REGION, "")

    @property
    def zone(self) -> str:
        return self.labels.get(known.ZONE, "")

    @property
    def arch(self) -> str:
        return self.labels.get(known.ARCH, "")

    @property
    def pool(self) -> str:
        return next((self.labels[name] for name in known.POOLS if name in self.labels), "")


def read(node: Mapping[str, Any]) -> Node:
    """Whatever is missing of it."""
    metadata, spec, status = (node.get(each) or {} for each in ("metadata", "spec", "status"))
    labels: dict[str, str] = {str(k): str(v) for k, v in (metadata.get("labels") or {}).items()}
    told = status.get("allocatable") or status.get("capacity") or {}
    allocatable = {str(name): amount(text) for name, text in told.items()}
    whose = known.vendor(labels, str(spec.get("providerID") or ""))
    taints = [each for each in spec.get("taints") or () if each.get("effect") in _BLOCKING]
    return Node(
        name=str(metadata.get("name", "")),
        labels=labels,
        allocatable=allocatable,
        taints=tuple(each for each in taints if not str(each["key"]).startswith(_PASSING)),
        up=_is_ready(status) and not spec.get("unschedulable") and not _is_failing(taints),
        chips=tuple(_chips(labels, allocatable)),
        spot=is_spot(labels),
        kind=whose.kind if whose else "",
        provider=whose.provider if whose else "",
    )


def is_spot(labels: Mapping[str, str]) -> bool:
    return any(labels.get(name) == value for name, value in known.SPOT)


def requested(pods: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """By node, what pods ask for there that have not ended."""
    found: dict[str, dict[str, float]] = {}
    for pod in pods:
        spec, phase = pod.get("spec") or {}, (pod.get("status") or {}).get("phase")
        where = spec.get("nodeName")
        if not where or phase in ("Succeeded", "Failed"):
            continue
        there = found.setdefault(where, {})
        for name, number in asked(spec).items():
            there[name] = there.get(name, 0.0) + number
    return found


def asked(spec: Mapping[str, Any]) -> dict[str, float]:
    """By a pod: its containers together, or what one of those needs that come before them."""
    total: dict[str, float] = {}
    for container in spec.get("containers") or ():
        for name, number in _requests(container).items():
            total[name] = total.get(name, 0.0) + number
    for container in spec.get("initContainers") or ():
        stays = container.get("restartPolicy") == "Always"  # a sidecar, beside the others
        for name, number in _requests(container).items():
            before = total.get(name, 0.0)
            total[name] = before + number if stays else max(before, number)
    for name, text in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0.0) + amount(text)
    return total


def _requests(container: Mapping[str, Any]) -> dict[str, float]:
    told = container.get("resources") or {}
    both = {**(told.get("limits") or {}), **(told.get("requests") or {})}
    return {name: amount(text) for name, text in both.items()}


def _is_ready(status: Mapping[str, Any]) -> bool:
    conditions = status.get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _is_failing(taints: Iterable[Mapping[str, Any]]) -> bool:
    return any(str(each["key"]).startswith(_PASSING) for each in taints)


def _chips(labels: Mapping[str, str], allocatable: Mapping[str, float]) -> Iterable[Chip]:
    for resource, names in known.ACCELERATORS:
        number = int(allocatable.get(resource, 0))
        if number < 1:
            continue
        label = next((n for n in names if labels.get(n, "").lower() not in known.SAYS_NOTHING), "")
        name = _SHARED.sub("", labels.get(label, ""))
        sliced = _SLICED.search(name)
        if resource in (known.NEURON, "aws.amazon.com/neurondevice"):
            family = labels.get(known.INSTANCE_TYPE, "").partition(".")[0]
            name = known.FAMILIES.get(family, name)
        elif resource == known.AMD and not name:
            name = _by_device(labels)
        if sliced:  # every GPU of the node is cut alike, and its parts are called GPUs
            yield _part(resource, number, name[: sliced.start()], label, sliced[1], sliced[2])
            continue
        yield Chip(
            resource=resource,
            number=number,
            name=name.replace("NVLINK", "SXM"),  # as CoreWeave spells it
            label=label,
            memory_gb=_memory_gb(labels) if resource == known.NVIDIA else None,
            hosts=_hosts(labels, number) if resource == known.TPU else 1,
        )
    for resource, much in allocatable.items():
        found = _SLICE.match(resource.removeprefix(known.MIG))
        if resource.startswith(known.MIG) and found and much >= 1:
            product = labels.get(known.PRODUCT, "")
            yield _part(resource, int(much), product, known.PRODUCT, found[1], found[2])


def _part(resource: str, number: int, name: str, label: str, slices: str, gb: str) -> Chip:
    return Chip(
        resource=resource,
        number=number,
        name=name,
        label=label,
        part=int(slices) / SLICES,
        memory_gb=float(gb),
    )


def _by_device(labels: Mapping[str, str]) -> str:
    ids = [name.removeprefix(known.DEVICE_ID) for name in labels if known.DEVICE_ID in name]
    return next((known.DEVICES[each] for each in ids if each in known.DEVICES), "")


def _memory_gb(labels: Mapping[str, str]) -> float | None:
    """Of one GPU, as feature discovery and Karpenter tell it, in MiB."""
    for name in ("nvidia.com/gpu.memory", "karpenter.k8s.aws/instance-gpu-memory"):
        if (told := amount(labels.get(name, ""))) > 0:
            return told / 1024
    return None


def _hosts(labels: Mapping[str, str], chips: int) -> int:
    """Of a TPU slice, by its topology: 4x4 of four chips a node are four nodes."""
    sizes = re.findall(r"\d+", labels.get(known.TPU_TOPOLOGY, ""))
    return max(prod(int(each) for each in sizes) // chips, 1) if sizes else 1
