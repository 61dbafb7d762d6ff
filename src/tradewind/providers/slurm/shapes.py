"""The kinds of machines of a cluster: so many GPUs of one type, on a node of one partition.

A node that has several may be asked for a part of them, in steps of two, with the same part of its
cores and memory. The same nodes in another partition are other machines: another time limit,
another price, and they may be preempted there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tradewind.base.errors import SourceFailed
from tradewind.base.units import format_hours
from tradewind.providers.offered import Offered, Offering
from tradewind.providers.slurm.cluster import Node, Partition, Qos, Sight
from tradewind.providers.slurm.facts import LEAST_LIMIT_S
from tradewind.providers.slurm.footprint import Cluster
from tradewind.providers.slurm.script import Asked

_MIB_PER_GB = 1e9 / 2**20
_SHORT_S = 7200
"""Of a time limit: beginning anew, minutes each time, is felt below it."""


class Shape(Struct, frozen=True, kw_only=True):
    name: str
    partition: str
    accelerator: str
    """As Slurm has it, or as whoever set it up has told; "": unknown."""
    gpus: int
    whole: bool
    machines: int
    """Each on a node of its own."""
    free: int
    cpus: int
    mem_mb: int
    spot: bool
    limit_s: int | None
    grace_s: int
    units: float | None
    """Billing units of one; None: the partition has no weights."""
    asked: Asked


def shapes(sight: Sight, cluster: Cluster) -> list[Shape]:
    found: list[Shape] = []
    for partition in sight.partitions.values():
        if why_not(sight, cluster, partition):
            continue
        there = [each for each in sight.nodes if partition.name in each.partitions]
        for kind in sorted({gpu for node in there for gpu, _ in node.gpus}):
            found += _of_kind(sight, cluster, partition, kind, [n for n in there if _has(n, kind)])
    return found


def why_not(sight: Sight, cluster: Cluster, partition: Partition) -> str:
    """Why jobs of ours cannot go to a partition, in words; "": they can."""
    if cluster.partitions and partition.name not in cluster.partitions:
        return "it was not chosen at setup"
    if not partition.up:
        return "it takes no jobs"
    if partition.groups and not set(partition.groups) & set(sight.groups):
        return f"it admits the groups {', '.join(partition.groups)} only"
    if cluster.account and partition.accounts and cluster.account not in partition.accounts:
        return f"it admits the accounts {', '.join(partition.accounts)} only"
    if cluster.qos and partition.qos and cluster.qos not in partition.qos:
        return f"it admits the QOS {', '.join(partition.qos)} only"
    if without := without_hours(sight, cluster):
        return without
    limit_s = _limit_s(sight, cluster, partition)
    if limit_s is not None and limit_s < LEAST_LIMIT_S:
        return (
            f"its time limit is {limit_s / 60:g} minutes; with less than {LEAST_LIMIT_S / 60:g}"
            " there is no time but for saving"
        )
    return ""


def without_hours(sight: Sight, cluster: Cluster) -> str:
    """That no job of ours would begin, in words; "": it may."""
    account = cluster.account or sight.own_account
    used = sight.spent.get(account)
    return f"no hours are left in the account {account}: {used}" if used else ""


def _has(node: Node, kind: str) -> bool:
    return any(each == kind for each, _ in node.gpus)


def _count(node: Node, kind: str) -> int:
    return sum(count for each, count in node.gpus if each == kind)


def _of_kind(
    sight: Sight, cluster: Cluster, partition: Partition, kind: str, nodes: Sequence[Node]
) -> Iterable[Shape]:
    largest = max(_count(node, kind) for node in nodes)
    steps = [2**each for each in range(largest.bit_length()) if 2**each < largest]
    for gpus in [*steps, largest]:
        roomy = [node for node in nodes if _count(node, kind) >= gpus]
        if sight.linear:
            roomy = [node for node in roomy if _count(node, kind) == gpus]
        usable = [node for node in roomy if node.up]
        if not usable:
            continue
        whole = sight.linear or all(_count(node, kind) == gpus for node in usable)
        share = min(gpus / _count(node, kind) for node in usable)
        cpus = max(int(min(node.cpus * gpus / _count(node, kind) for node in usable)), 1)
        # Where nobody has told Slurm of a node's memory, it takes it for 1 MiB.
        known = [node.mem_mb for node in usable if node.mem_mb > 1]
        mem_mb = int(min(known) * share) if len(known) == len(usable) else 0
        named = cluster.accelerators.get(partition.name) or _accelerator(kind, usable)
        spot, grace_s = preempted(sight, cluster, partition)
        most = min(len(usable), partition.most_nodes or len(usable))
        limit_s = _limit_s(sight, cluster, partition)
        gres = f"gpu:{kind}:{gpus}" if kind else f"gpu:{gpus}"
        yield Shape(
            name=f"{partition.name}.{re.sub(r'[^A-Za-z0-9]+', '-', kind or 'gpu')}x{gpus}",
            partition=partition.name,
            accelerator=named,
            gpus=gpus,
            whole=whole,
            machines=most,
            free=min(most, sum(_free(node, kind, gpus, cpus) for node in usable)),
            cpus=cpus,
            mem_mb=mem_mb,
            spot=spot,
            limit_s=limit_s,
            grace_s=grace_s,
            units=_units(partition, gpus, kind, cpus, mem_mb),
            asked=Asked(
                partition=partition.name,
                gres=gres,
                cpus=cpus,
                mem_mb=mem_mb,
                limit_s=limit_s or 0,
                grace_s=grace_s,
                arch="arm64" if usable[0].arch in ("aarch64", "arm64") else "x86_64",
                whole=sight.linear,
            ),
        )


def _free(node: Node, kind: str, gpus: int, cpus: int) -> bool:
    room = sum(count for _, count in node.gpus) - node.gpus_used
    return min(room, _count(node, kind)) >= gpus and node.cpus - node.cpus_used >= cpus


def _accelerator(kind: str, nodes: Sequence[Node]) -> str:
    """As NVML spells it, `nvidia_a100_80gb_pcie`, or short. Untyped GRES leave it to a feature of
    all nodes that has letters and digits, as a100 or h200."""
    if kind:
        return re.sub(r"[_\s]+", " ", kind).removeprefix("nvidia ").strip()
    common = set.intersection(*(set(node.features) for node in nodes))
    likely = [each for each in common if re.fullmatch(r"[a-zA-Z]{1,4}\d{1,4}[a-zA-Z]{0,2}", each)]
    return sorted(likely)[0] if len(likely) == 1 else ""


def preempted(sight: Sight, cluster: Cluster, partition: Partition) -> tuple[bool, int]:
    """Whether others may preempt its jobs, and how long those have then."""
    if sight.preempt_mode.upper() == "OFF" or "none" in sight.preempt_type:
        return False, 0
    if "qos" in sight.preempt_type:
        name = cluster.qos or partition.own_qos or "normal"
        taken = any(name in each.preempts for each in sight.qos.values())
        qos = sight.qos.get(name)
        return taken, max(qos.grace_s if qos else 0, partition.grace_s) if taken else 0
    if partition.preempt.upper() == "OFF":
        return False, 0
    ours = {node.name for node in sight.nodes if partition.name in node.partitions}
    above = [
        other
        for other in sight.partitions.values()
        if other.tier > partition.tier
        and any(other.name in node.partitions for node in sight.nodes if node.name in ours)
    ]
    return bool(above), partition.grace_s if above else 0


def _limit_s(sight: Sight, cluster: Cluster, partition: Partition) -> int | None:
    """The least of what the partition, its QOS, the job's QOS and the account allow."""
    limits = [
        partition.limit_s,
        *(each.limit_s for each in _held(sight, cluster, partition)),
        sight.limits_s.get(cluster.account) if cluster.account else None,
    ]
    return min((each for each in limits if each is not None), default=None)


def most_gpus(sight: Sight, cluster: Cluster, partition: str) -> int | None:
    """That one job may have, by QOS and account."""
    held = _held(sight, cluster, sight.partitions[partition])
    limits = [*(each.most_gpus for each in held), sight.most_gpus.get(cluster.account)]
    return min((each for each in limits if each is not None), default=None)


def _held(sight: Sight, cluster: Cluster, partition: Partition) -> list[Qos]:
    names = (partition.own_qos, cluster.qos)
    return [sight.qos[each] for each in names if each in sight.qos]


def _units(partition: Partition, gpus: int, kind: str, cpus: int, mem_mb: int) -> float | None:
    if not partition.weights:
        return None
    used = {"cpu": cpus, "mem": mem_mb, "gres/gpu": gpus, "node": 1, f"gres/gpu:{kind}": gpus}
    return sum(weight * used.get(name, 0) for name, weight in partition.weights.items())


def offering(name: str, sight: Sight, cluster: Cluster) -> Offering:
    there = shapes(sight, cluster)
    offers = tuple(_offered(name, cluster, shape) for shape in there)
    warnings = [
        f"partition {each.name} of {name} is not used: {why}"
        for each in sight.partitions.values()
        if (why := why_not(sight, cluster, each)) and each.name in cluster.partitions
    ]
    warnings += [
        f"jobs of {partition} on {name} last {format_hours(limit_s / 3600)} at most: longer work is"
        " done in several, and plans do not count the minutes that each begins with"
        for partition, limit_s in dict.fromkeys(
            (each.partition, each.limit_s) for each in there if each.limit_s
        )
        if limit_s < _SHORT_S
    ]
    if without := without_hours(sight, cluster):
        warnings = [f"{name} is not used: {without}"]
    return Offering(offers=offers, warnings=tuple(warnings))


def _offered(name: str, cluster: Cluster, shape: Shape) -> Offered:
    price = None
    if cluster.unit_usd and shape.units is not None:
        price = cluster.unit_usd * shape.units
    return Offered(
        region=name,
        instance_type=shape.name,
        accelerator=shape.accelerator,
        count=shape.gpus,
        market="spot" if shape.spot else "on_demand",
        machines=shape.machines,
        free=shape.free,
        vcpus=shape.cpus,
        ram_gb=shape.mem_mb / _MIB_PER_GB if shape.mem_mb else None,
        network_gbps=cluster.network_gbps or None,
        usd_hour=price,
        usd_words=f"{shape.units:g} billing units at ${cluster.unit_usd:g}" if price else "",
        sure=f"{shape.free} of {shape.machines} free now",
    )


def find(sight: Sight, cluster: Cluster, name: str) -> Shape:
    for each in shapes(sight, cluster):
        if each.name == name:
            return each
    raise SourceFailed(f"the cluster has no {name} any more", hint="tradewind doctor slurm")
