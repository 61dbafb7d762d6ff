"""Of a plan's ways, those that a cluster can be asked for, each with what sbatch is to be asked.

What is free is of this moment: a way whose nodes are all in use is kept, since its job waits unpaid
until there is room. One that could never have room is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import to_builtins
from msgspec.structs import replace

from tradewind.base.errors import TradewindError
from tradewind.model.run import Way
from tradewind.providers.slurm import cluster as clusters
from tradewind.providers.slurm import shapes, troubles
from tradewind.providers.slurm.cluster import Sight
from tradewind.providers.slurm.footprint import Footprint, setup_command
from tradewind.providers.slurm.login import Login
from tradewind.providers.slurm.provider import NAME
from tradewind.providers.usable import Reason, Usable


def sights(footprint: Footprint, wanted: set[str]) -> dict[str, Sight | TradewindError]:
    """Raises where none of them answers."""
    found: dict[str, Sight | TradewindError] = {}
    for name, cluster in footprint.clusters.items():
        if name not in wanted:
            continue
        try:
            found[name] = clusters.look(Login(cluster.login))
        except TradewindError as error:
            found[name] = error
    broken = [each for each in found.values() if isinstance(each, TradewindError)]
    if broken and len(broken) == len(found):
        raise broken[0]
    return found


def usable(footprint: Footprint, ways: Sequence[Way], store_url: str) -> Usable:
    seen = sights(footprint, {way.region for way in ways})
    kept: list[Way] = []
    rejected: list[Reason] = []
    warnings: list[str] = []
    for way in ways:
        found = _judged(footprint, seen, way, store_url)
        if isinstance(found, Reason):
            rejected.append(found)
            continue
        made, warning = found
        kept.append(made)
        warnings += [warning] if warning else []
    return Usable(
        ways=tuple(kept), rejected=tuple(rejected), warnings=tuple(dict.fromkeys(warnings))
    )


def _judged(
    footprint: Footprint, seen: dict[str, Sight | TradewindError], way: Way, store_url: str
) -> Reason | tuple[Way, str]:
    def because(kind: str, words: str, hint: str = "tradewind doctor slurm") -> Reason:
        return Reason(way=way, kind=kind, words=words, hint=hint)

    cluster, sight = footprint.clusters.get(way.region), seen.get(way.region)
    if cluster is None or sight is None:
        return because("no_setup", f"{way.region} is not set up", setup_command(store_url))
    if isinstance(sight, TradewindError):
        return because("not_read", sight.message, sight.hint or "")
    if without := shapes.without_hours(sight, cluster):
        return because("quota", f"{way.region}: {without}", troubles.HOURS)
    there = [each for each in shapes.shapes(sight, cluster) if each.name == way.instance_type]
    shape = next((e for e in there if e.spot == (way.market == "spot")), None)
    if shape is None:
        return because("not_offered", f"{way.region} has no {way.market} {way.instance_type} now")
    if way.nodes > shape.machines:
        return because(
            "not_offered",
            f"{way.region} has {shape.machines} nodes for {way.instance_type}, and {way.nodes} are"
            " needed",
        )
    most = shapes.most_gpus(sight, cluster, shape.partition)
    if most is not None and way.nodes * shape.gpus > most:
        return because(
            "quota",
            f"a QOS or account of {way.region} allows {most} GPUs, and {way.nodes * shape.gpus} are"
            " needed",
            "`sacctmgr show qos` and `sacctmgr show assoc` tell the limits",
        )
    facts = replace(way.facts, notice_s=shape.grace_s)
    made = replace(way, facts=facts, layout=way.layout | {NAME: to_builtins(shape.asked)})
    if shape.free < way.nodes:
        return made, (
            f"{way.instance_type} in {way.region}: {shape.free} of {shape.machines} free now, and"
            f" {way.nodes} are needed; the job waits in the queue, unpaid"
        )
    return made, ""
