"""Nodes of a cluster of Kubernetes that a plan needs at its cloud: what `terraform` and `pulumi`
write in place of machines, where a cluster is named."""

from __future__ import annotations

import re

from tradewind.base.errors import InvalidValue
from tradewind.export import images, rented
from tradewind.export.asked import Asked
from tradewind.export.exported import Refused, Setting
from tradewind.model.plan import Plan
from tradewind.model.serveplan import ServingPool
from tradewind.providers import infrastructure
from tradewind.providers.infrastructure import Infrastructure, Pool
from tradewind.providers.kubernetes.flavours import FLAVOURS

CLUSTER = Setting(
    "cluster", "A Kubernetes cluster of the plan's cloud: nodes for it, in place of machines.",
    example="research",
)  # fmt: skip
_CLUSTER = re.compile(r"[A-Za-z0-9][\w-]{0,99}")
_MOST_POOL = 20
_IMAGES_GB = 200


def described(kind: str, asked: Asked, cluster: str) -> tuple[Infrastructure, tuple[str, ...]]:
    """For a cluster of the plan's cloud; and what is left to the reader."""
    if not _CLUSTER.fullmatch(cluster):
        raise InvalidValue(f"{cluster!r} is no name of a cluster", hint="--set cluster=research")
    bought = _bought(kind, asked)
    provider, region = _place(kind, [each for each, _ in bought])
    cloud = infrastructure.pooled(provider)
    pools = [
        _pool(asked, cloud.FLAVOUR, each, market, most, f"_{number}" if len(bought) > 1 else "")
        for number, (each, markets) in enumerate(bought, 1)
        for market, most in markets.items()
    ]
    wanted = infrastructure.Nodes(
        name=rented.name_of(asked),
        cluster=cluster,
        region=region,
        zone=asked.plan.zone if asked.plan is not None else "",
        pools=tuple(pools),
        disk_gb=_IMAGES_GB,
        disk_why="Of a node, for images: checkpoints and weights are on disks of their own.",
    )
    try:
        made = cloud.described(wanted)
    except InvalidValue as error:
        raise Refused(error.message, nearest=error.hint or "kubernetes alone") from None
    notes = [
        f"its pods: tradewind export kubernetes --set labels={cloud.FLAVOUR}, of the same plan",
        *made.notes,
    ]
    if asked.plan is not None and asked.plan.nodes > 1:
        notes.append(
            "nodes talk to each other over their cloud's usual network: placement close together"
            " and fast cards between them are left to you"
        )
    return made, tuple(notes)


def _bought(kind: str, asked: Asked) -> list[tuple[Plan | ServingPool, dict[str, int]]]:
    """Machines, with the most of each market."""
    if asked.serving is not None:
        return [(each, _busiest(each)) for each in asked.serving.pools]
    plan, _ = asked.training(kind)
    if "reserved" in plan.markets:
        raise Refused(
            f"the plan is for capacity that is reserved, which {kind} does not buy",
            nearest="--market spot, or --market on_demand",
        )
    return [(plan, dict.fromkeys(plan.markets, plan.nodes))]


def _busiest(pool: ServingPool) -> dict[str, int]:
    found = {
        "spot": max(hour.spot for hour in pool.hours),
        "on_demand": max(hour.on_demand for hour in pool.hours) + pool.committed,
    }
    return {market: most for market, most in found.items() if most}


def _place(kind: str, bought: list[Plan | ServingPool]) -> tuple[str, str]:
    """The cloud and its region."""
    places = {(each.provider, each.region) for each in bought}
    if len(places) > 1:
        said = " and ".join(sorted(f"{cloud}/{region}" for cloud, region in places))
        raise Refused(
            f"the plan is for {said}, and a cluster is in one region",
            nearest="--provider and --region with one of them, which plans it there",
        )
    ((provider, region),) = places
    clouds = infrastructure.clouds("nodes")
    own = any(each.own for each in bought)
    if own or provider not in clouds:
        where = "machines of your own" if own else provider
        raise Refused(
            f"the plan is for {where}, and {kind} knows node pools of {', '.join(clouds)}",
            nearest=f"--provider {clouds[0]}, which plans it there",
        )
    return provider, region


def _pool(
    asked: Asked, flavoured: str, bought: Plan | ServingPool, market: str, most: int, number: str
) -> Pool:
    flavour, chip = FLAVOURS[flavoured], asked.chips[bought.accelerator]
    if chip.vendor != "NVIDIA":
        raise Refused(
            f"node pools are known of NVIDIA's GPUs, and {chip.name} is {chip.vendor}'s",
            nearest="--accelerator with one of NVIDIA's",
        )
    spot, key = market == "spot", market + number
    called = flavour.names.get(chip.name, ("",))[0]
    labels = {flavour.label: called} if called else {}
    labels |= {flavour.spot[0]: flavour.spot[1]} if spot else {}
    named = rented.name_of(asked)[:_MOST_POOL].rstrip("-")
    until = "as planned." if asked.serving is None else "of the plan's busiest hour."
    return Pool(
        key=key,
        name=f"{named}-{key.replace('_', '-')}",
        instance_type=bought.instance_type,
        chip=chip.name,
        arm=images.platform(images.table(), chip).endswith("arm64"),
        count=bought.accelerator_count,
        spot=spot,
        most=most,
        why=f"Nodes at the most: {until}",
        accelerator=called,
        labels=labels,
        taints=tuple(each for each in flavour.taints if spot or each[0] != flavour.spot[0]),
    )
