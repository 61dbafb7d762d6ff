"""What hosts have, as offers: so many GPUs of one model, of one host, in one region.

A host of eight is offered by ones, twos, fours and eights: jobs share hosts, each with GPUs of its
own. What other people compute on is not offered; what Tradewind has leased, its own or another
user's, may be had later, and is not free now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.providers.offered import Like, Offered, Offering
from tradewind.providers.ssh import names
from tradewind.providers.ssh.answers import Gpu
from tradewind.providers.ssh.footprint import Footprint, Host
from tradewind.providers.ssh.there.drivers import FREE
from tradewind.providers.ssh.there.gpus import LEASED


class Shape(Struct, frozen=True):
    """A kind of machine: so many GPUs of a model, as the driver calls it, in a region."""

    region: str
    model: str
    count: int

    @property
    def instance_type(self) -> str:
        return names.instance_type(self.count, self.model)


def sizes(most: int) -> list[int]:
    """Powers of two, and all of them."""
    found = [1 << n for n in range(most.bit_length()) if 1 << n < most]
    return [*found, most] if most else []


def shapes(footprint: Footprint) -> dict[tuple[str, str], Shape]:
    """By region and instance type. Two models that are called alike are one: the first."""
    found: dict[tuple[str, str], Shape] = {}
    for host in footprint.hosts.values():
        for model, many in host.gpus.items():
            for count in sizes(many):
                shape = Shape(host.region, model, count)
                found.setdefault((shape.region, shape.instance_type), shape)
    return found


def room(gpus: Iterable[Gpu], model: str, states: Sequence[str] = (FREE,)) -> int:
    """How many GPUs of a model there are in one of these states."""
    return sum(each.name == model and each.state in states for each in gpus)


def offering(footprint: Footprint, seen: Mapping[str, list[Gpu] | TradewindError]) -> Offering:
    """`seen`: the GPUs of each host, or why they are not known."""
    silent = {name: error for name, error in seen.items() if isinstance(error, TradewindError)}
    there = {name: gpus for name, gpus in seen.items() if not isinstance(gpus, TradewindError)}
    if not there:
        first = next(iter(silent.values()), None)
        raise SourceFailed(
            "no host answers" + (f": {first.message}" if first else ""),
            hint=(first.hint if first else "") or "tradewind doctor ssh",
        )
    warnings = [f"left out: {error.message}" for error in silent.values()]
    warnings += _others(there)
    found = [
        offer
        for shape in shapes(footprint).values()
        if (offer := _offered(footprint, shape, there)) is not None
    ]
    return Offering(offers=tuple(found), warnings=tuple(warnings))


def _offered(footprint: Footprint, shape: Shape, there: Mapping[str, list[Gpu]]) -> Offered | None:
    hosts = {
        name: host
        for name, host in footprint.within(shape.region).items()
        if name in there and room(there[name], shape.model, (FREE, LEASED)) >= shape.count
    }
    if not hosts:
        return None
    machines = sum(room(there[name], shape.model, (FREE, LEASED)) // shape.count for name in hosts)
    free = sum(room(there[name], shape.model) // shape.count for name in hosts)
    memory_mb = max(host.memory_mb.get(shape.model, 0) for host in hosts.values())
    return Offered(
        region=shape.region,
        instance_type=shape.instance_type,
        accelerator=shape.model,
        count=shape.count,
        memory_gb=round(memory_mb / 1024, 1) or None,
        machines=machines,
        free=free,
        vcpus=min(_share(host, shape) * host.cores for host in hosts.values()),
        ram_gb=round(min(_share(host, shape) * host.ram_gb for host in hosts.values()), 1),
        network_gbps=footprint.network_gbps or None,
        # What one GPU costs, the account file tells once for all sizes.
        like=Like(
            provider="ssh",
            region=shape.region,
            instance_type=names.instance_type(1, shape.model),
            share=float(shape.count),
        ),
        sure=f"{free} of {machines} are free now",
    )


def _share(host: Host, shape: Shape) -> float:
    return shape.count / max(sum(host.gpus.values()), shape.count)


def _others(there: Mapping[str, list[Gpu]]) -> list[str]:
    """GPUs that somebody else computes on, in words."""
    words = []
    for name, gpus in there.items():
        busy = [each for each in gpus if each.state not in (FREE, LEASED)]
        if busy:
            who = "; ".join(dict.fromkeys(each.who for each in busy))
            words.append(f"{len(busy)} of {len(gpus)} GPUs of host {name} are not offered: {who}")
    return words
