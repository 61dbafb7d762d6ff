"""What an autoscaler could still add. Pure, and never certain: the cloud may have none left.

Karpenter tells in its NodePools which types it may buy, and how much of everything at most. The
cluster autoscaler tells in a ConfigMap how far each of its groups may grow; what a group's nodes
are, one that is up tells. A group without any is named, and left to `--accelerator`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tradewind.providers.kubernetes.offers import known
from tradewind.providers.kubernetes.offers.nodes import Chip, Node
from tradewind.providers.kubernetes.offers.quantities import amount
from tradewind.providers.kubernetes.offers.shapes import Shape, called, sizes
from tradewind.providers.offered import Type, Types

STATUS = "cluster-autoscaler-status"
_CAPACITY = "karpenter.sh/capacity-type"
_PREFIX = "karpenter.k8s.aws/instance-"
_FAMILY = re.compile(r"([a-z]+)(\d+)")
_UNLIMITED = 16
"""Nodes that are counted on where an autoscaler has no limit."""


class Growth(Struct, frozen=True, kw_only=True):
    """Of a group of nodes."""

    name: str
    size: int
    most: int
    backoff: bool = False
    """It has failed to grow of late."""


# -- the cluster autoscaler ------------------------------------------------------------------------


def groups(status: str) -> list[Growth]:
    """Of what the ConfigMap says, in the form of 1.30 and later (YAML) or before."""
    if "nodeGroups:" in status:
        return list(_newer(status))
    return list(_older(status))


def _newer(status: str) -> Iterator[Growth]:
    import yaml

    try:
        told = yaml.safe_load(status)
    except yaml.YAMLError:
        return
    for each in (told or {}).get("nodeGroups") or () if isinstance(told, dict) else ():
        health, up = each.get("health") or {}, each.get("scaleUp") or {}
        yield Growth(
            name=str(each.get("name", "")),
            size=int(health.get("cloudProviderTarget") or 0),
            most=int(health.get("maxSize") or 0),
            backoff=up.get("status") == "Backoff",
        )


def _older(status: str) -> Iterator[Growth]:
    for block in re.split(r"(?m)^\s*Name:\s*", status)[1:]:
        target = re.search(r"cloudProviderTarget=(\d+)", block)
        most = re.search(r"maxSize=(\d+)", block)
        if target and most:
            yield Growth(
                name=block.split()[0],
                size=int(target[1]),
                most=int(most[1]),
                backoff=re.search(r"ScaleUp:\s*Backoff", block) is not None,
            )


def grown(
    shapes: Sequence[Shape], nodes: Sequence[Node], growing: Iterable[Growth]
) -> tuple[list[Shape], list[str]]:
    """Shapes with what their groups may add, and the names of groups whose nodes nobody has seen:
    they have none now."""
    added: dict[str, int] = {}
    failing: set[str] = set()
    unseen = []
    for group in growing:
        mine = [node for node in nodes if node.pool and _is_of(node.pool, group.name)]
        if not mine and group.size == 0 and group.most:
            unseen.append(group.name.rpartition("/")[2])
        for node_type in {node.instance_type for node in mine if node.chips}:
            added[node_type] = added.get(node_type, 0) + max(group.most - group.size, 0)
            failing |= {node_type} if group.backoff else set()
    found = []
    for shape in shapes:
        more = added.get(shape.node_type, 0) * shape.chip.number // shape.asked // shape.chip.hosts
        if more and shape.node_type:
            words = f"{shape.sure}, and an autoscaler may add {more}"
            words += ", though it has failed to of late" if shape.node_type in failing else ""
            shape = replace(shape, machines=shape.machines + more, added=more, sure=words)
        found.append(shape)
    return found, unseen


def _is_of(pool: str, group: str) -> bool:
    """Clouds make the name of a group from that of its pool: eks-POOL-…, gke-CLUSTER-POOL-…,
    aks-POOL-…"""
    return re.search(rf"(^|[-/]){re.escape(pool)}([-/]|$)", group) is not None


# -- Karpenter -------------------------------------------------------------------------------------


def pooled(
    pools: Iterable[Mapping[str, Any]], types: Types, provider: str, region: str
) -> list[Shape]:
    """Types that NodePools may buy; those that are up already are among them."""
    found: dict[tuple[str, bool], Shape] = {}
    for pool in pools:
        for shape in _of_pool(pool, types(provider or "aws"), provider or "aws", region):
            found.setdefault((shape.name, shape.spot), shape)
    return list(found.values())


def _of_pool(
    pool: Mapping[str, Any], types: Mapping[str, Type], provider: str, region: str
) -> Iterator[Shape]:
    spec = pool.get("spec") or {}
    inner = (spec.get("template") or {}).get("spec") or {}
    wants = [each for each in inner.get("requirements") or () if isinstance(each, dict)]
    if not any(
        str(each.get("key", "")).startswith((_PREFIX, known.INSTANCE_TYPE)) for each in wants
    ):
        return  # what it may buy is not said: it is for whatever comes
    name = str((pool.get("metadata") or {}).get("name", ""))
    markets = _markets(wants)
    taints = tuple(each for each in inner.get("taints") or () if isinstance(each, dict))
    limits = {k: amount(v) for k, v in (spec.get("limits") or {}).items()}
    used = {k: amount(v) for k, v in ((pool.get("status") or {}).get("resources") or {}).items()}
    for each in types.values():
        if each.count < 1 or not all(_suits(each, want) for want in wants):
            continue
        chip = chip_of(each.accelerator, int(each.count))
        left = limits.get(chip.resource, _UNLIMITED * chip.number) - used.get(chip.resource, 0)
        for spot in markets:
            for shape in unseen(each.name, chip, spot, max(int(left // chip.number), 0)):
                yield replace(
                    shape,
                    name=f"{each.name}-{shape.asked}of{chip.number}",
                    selector={
                        known.INSTANCE_TYPE: each.name,
                        _CAPACITY: "spot" if spot else "on-demand",
                    },
                    tolerations=tuple(_toleration(taint) for taint in taints),
                    provider=provider,
                    region=region,
                    kind="eks" if provider == "aws" else "",
                    sure=f"Karpenter's NodePool {name} may add them, where its cloud has some left",
                )


def _markets(wants: Iterable[Mapping[str, Any]]) -> list[bool]:
    """Whether spot, whether not: on demand, where a pool does not say."""
    for want in wants:
        if want.get("key") == _CAPACITY and want.get("operator") == "In":
            return [each == "spot" for each in want.get("values") or () if each != "reserved"]
    return [False]


def _suits(each: Type, want: Mapping[str, Any]) -> bool:
    """What is not about the type of a machine is held against none."""
    key, values = str(want.get("key", "")), [str(one) for one in want.get("values") or ()]
    family, _, size = each.name.partition(".")
    parted = _FAMILY.match(family)
    facts = {
        known.INSTANCE_TYPE: each.name,
        f"{_PREFIX}family": family,
        f"{_PREFIX}size": size,
        f"{_PREFIX}category": parted[1] if parted else "",
        f"{_PREFIX}generation": parted[2] if parted else "",
        f"{_PREFIX}gpu-count": f"{each.count:g}",
        f"{_PREFIX}accelerator-count": f"{each.count:g}",
    }
    operator = str(want.get("operator", ""))
    if key in (f"{_PREFIX}gpu-name", f"{_PREFIX}accelerator-name"):
        named = any(each.accelerator.lower().startswith(one.lower()) for one in values)
        return named == (operator in ("In", "Exists")) if values else True
    if key not in facts:
        return True
    fact = facts[key]
    if operator in ("In", "NotIn"):
        return (fact in values) == (operator == "In")
    if operator in ("Gt", "Lt") and values and fact.replace(".", "").isdecimal():
        return (float(fact) > amount(values[0])) == (operator == "Gt")
    return True


def _toleration(taint: Mapping[str, Any]) -> dict[str, str]:
    one = {"key": str(taint.get("key", "")), "effect": str(taint.get("effect", "NoSchedule"))}
    value = str(taint.get("value") or "")
    return one | ({"operator": "Equal", "value": value} if value else {"operator": "Exists"})


# -- nodes that nobody has seen --------------------------------------------------------------------


def chip_of(accelerator: str, number: int) -> Chip:
    """By the accelerator's name, as anybody spells it: what pods ask for to get it."""
    name = accelerator.lower()
    if re.search(r"tpu|v\d+(e|p|x|lite)", name):
        resource = known.TPU
    elif re.search(r"trainium|inferentia|trn|inf\d", name):
        resource = known.NEURON
    elif re.search(r"mi\d{2,3}|instinct|radeon", name):
        resource = known.AMD
    else:
        resource = known.NVIDIA
    return Chip(resource=resource, number=number, name=accelerator)


def bought(name: str, market: str, pools: Iterable[Mapping[str, Any]]) -> Shape | None:
    """The shape of a name that `pooled` has given: the name says what it is, so that a plan that
    was saved can be carried out while no such node is up."""
    found = _NAMED.fullmatch(name)
    if found is None:
        return None
    node_type, asked, number = found[1], int(found[2]), int(found[3])
    chip = chip_of(known.FAMILIES.get(node_type.partition(".")[0], ""), number)
    spot = market == "spot"
    taints: list[dict[str, str]] = []
    for pool in pools:
        inner = (((pool.get("spec") or {}).get("template") or {}).get("spec")) or {}
        taints += [_toleration(each) for each in inner.get("taints") or ()]
    shape = next((e for e in unseen(node_type, chip, spot, _UNLIMITED) if e.asked == asked), None)
    if shape is None:
        return None
    selector = {known.INSTANCE_TYPE: node_type, _CAPACITY: "spot" if spot else "on-demand"}
    return replace(shape, name=name, selector=selector, tolerations=tuple(taints))


_NAMED = re.compile(r"(.+\..+)-(\d+)of(\d+)")


def unseen(node_type: str, chip: Chip, spot: bool, nodes: int) -> list[Shape]:
    """Machines of so many nodes that are not up, or may not be seen. Processors and memory
    are not asked for: what the nodes have is not known."""
    return [
        Shape(
            name=called(node_type, chip, asked),
            node_type=node_type,
            chip=chip,
            asked=asked,
            spot=spot,
            selector={known.INSTANCE_TYPE: node_type} if node_type else {},
            resources={chip.resource: str(asked)},
            machines=nodes * chip.number // asked,
            free=None,
            nodes=0,
            added=nodes * chip.number // asked,
        )
        for asked in sizes(chip)
    ]


def told(text: str) -> list[Shape]:
    """Of what setup was told: `[TYPE=]ACCELERATOR[:COUNT][:spot]`, as h100:8 or g5=a10g:1:spot."""
    node_type, _, rest = text.rpartition("=")
    name, *more = rest.split(":")
    number = next((int(each) for each in more if each.isdecimal()), 1)
    found = unseen(node_type, chip_of(name, max(number, 1)), "spot" in more, _UNLIMITED)
    sure = "as setup was told; nodes may not be read, so nobody has seen them"
    return [replace(each, sure=sure) for each in found]
