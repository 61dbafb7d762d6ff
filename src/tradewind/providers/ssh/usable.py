"""Of a plan's ways, those that hosts could take. What is taken now may be free when it is wanted: a
way that all GPUs of are leased or computed on is kept, with a warning, since a launch that is
refused costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.base.units import format_names
from tradewind.model.run import Way
from tradewind.providers.ssh import offers
from tradewind.providers.ssh.answers import Gpu
from tradewind.providers.ssh.footprint import Footprint, setup_command
from tradewind.providers.usable import Reason, Usable


def usable(
    footprint: Footprint,
    seen: Mapping[str, list[Gpu] | TradewindError],
    ways: Sequence[Way],
    store_url: str,
) -> Usable:
    there = {name: gpus for name, gpus in seen.items() if not isinstance(gpus, TradewindError)}
    silent = [error.message for error in seen.values() if isinstance(error, TradewindError)]
    if not there:
        raise SourceFailed(
            f"no host answers: {silent[0] if silent else 'none is set up'}",
            hint="tradewind doctor ssh",
        )
    known = offers.shapes(footprint)
    kept, rejected, taken = [], [], []
    for way in ways:
        shape = known.get((way.region, way.instance_type))
        reason = _reason(footprint, shape, way, store_url)
        if reason is not None or shape is None:
            rejected += [reason] if reason else []
            continue
        kept.append(way)
        free = sum(
            offers.room(there.get(name, ()), shape.model) // shape.count
            for name in footprint.within(shape.region)
        )
        if free < way.nodes:
            taken.append(way.what)
    warnings = [*silent]
    if taken and len(taken) == len(kept):
        warnings.append(
            f"not free just now: {format_names(list(dict.fromkeys(taken)), 4)};"
            " the run waits until others have finished"
        )
    return Usable(ways=tuple(kept), rejected=tuple(rejected), warnings=tuple(warnings))


def _reason(
    footprint: Footprint, shape: offers.Shape | None, way: Way, store_url: str
) -> Reason | None:
    def because(kind: str, words: str, hint: str = "") -> Reason:
        return Reason(way=way, kind=kind, words=words, hint=hint)

    if way.market != "on_demand":
        return because("no_spot", "hosts of one's own are not sold on the spot market")
    hosts = footprint.within(way.region)
    if not hosts:
        return because("no_setup", f"no host is in {way.region}", setup_command(store_url))
    if shape is None:
        return because("not_offered", f"no host of {way.region} has {way.instance_type}")
    most = sum(host.gpus.get(shape.model, 0) // shape.count for host in hosts.values())
    if way.nodes > most:
        return because(
            "quota",
            f"hosts of {way.region} have {most} × {way.instance_type}, and {way.nodes} are needed",
            setup_command(store_url),
        )
    return None
