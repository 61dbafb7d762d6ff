"""A service on rented machines: its replicas as the accounts there can have them, and its front on
small machines beside them, in the same network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradewind.base.errors import InvalidValue, NotFound

if TYPE_CHECKING:
    from tradewind.api.rented import On
    from tradewind.model.run import Way
    from tradewind.model.serveplan import ServingPool
    from tradewind.model.service import EngineSpec, ServiceSpec
    from tradewind.model.upkept import Upkept
    from tradewind.store.base import Store

_EVERY_ADDRESS = "0.0.0.0"
"""Of its machine: the network's rules say who comes that far."""
_START_S = 180.0
"""Until a machine serves, for whoever compares ways; what it really took is measured."""
_FRONT_CPUS, _FRONT_GIB = 2, 4
_FRONT_KINDS = 4
"""So many types are tried: the cheapest may not be had in every zone."""
_ANY_AGE = "3650d"
"""Of a price: there is nothing to weigh it against."""
_MARKETS = ("spot", "on_demand")


def on(store: Store, names: Sequence[str], regions: Sequence[str] = ()) -> On:
    """These clouds. InvalidValue where one of them could not keep a service."""
    from tradewind.api import fleet
    from tradewind.api.rented import On
    from tradewind.providers import registry
    from tradewind.providers.base import Admits

    if registry.LOCAL in names:
        raise InvalidValue(
            "a service is on this computer or on rented machines: its front reaches no others",
            hint="--local, or --on with clouds only",
        )
    opened = fleet.providers(store)
    able = [name for name, each in opened.items() if isinstance(each, Admits)]
    for name in names:
        if name in opened and name not in able:
            raise InvalidValue(
                f"{registry.rentable(name).title} is not used for services: Tradewind makes no"
                " rules there for who reaches a machine, and a front must reach its replicas",
                hint=" or ".join([*(f"--on {each}" for each in able), "--local, to rehearse it"]),
            )
    return On(store, names, regions)


def check(engine: EngineSpec, wish: Upkept) -> None:
    """What a rented front cannot be given, before anybody is asked for prices."""
    if engine.port == wish.port:
        raise InvalidValue(
            f"service.port {wish.port} is the engine's port too, and rules of a network tell the"
            " two apart by their ports",
            hint="service.engine_port names another",
        )
    if wish.certificate:
        raise InvalidValue(
            "service.certificate is a file of this computer, and rented machines cannot be given"
            " its key in secret",
            hint="leave it out, and let the cloud's balancer, or a tunnel, speak TLS before fronts",
        )


def there(made: ServiceSpec, pool: ServingPool, wish: Upkept, on: On) -> ServiceSpec:
    """The same on machines of the plan's cloud and region, as they can be had there."""
    from msgspec.structs import replace

    from tradewind.supervisor import front

    ways = _usable(made, _replicas(pool), made.engine.job, on)
    rejected = list(on.rejected)
    job = {"command": front.COMMAND, "setup": front.SETUP}
    fronts = _usable(made, _fronts(pool), job, on)
    on.rejected = rejected
    lent = next((way for way in (*ways, *fronts) if way.pass_s), None)
    if lent is not None:
        raise InvalidValue(
            f"machines of {lent.provider} are nobody to this store, and are lent passes run by"
            " run: machines of a service must be able to read it by an identity of their own",
            hint=f"a bucket of {lent.provider} itself as the store",
        )
    listens = replace(made.front, address=_EVERY_ADDRESS, ranges=tuple(wish.allow))
    return replace(
        made, ways=ways, front=listens, fronts=wish.fronts, front_ways=fronts, front_job=job
    )


def _usable(made: ServiceSpec, ways: Sequence[Way], job: dict[str, str], on: On) -> tuple[Way, ...]:
    from tradewind.model.run import Spec
    from tradewind.services.fronting import OPEN_ENDED

    spec = Spec(name=made.name, work=OPEN_ENDED, steps=False, ways=tuple(ways), job=dict(job))
    return on.there(spec).ways


def _replicas(pool: ServingPool) -> list[Way]:
    ways = [
        _way(pool, pool.instance_type, market, price)
        for market, price in sorted(pool.price_hour.items(), key=lambda each: each[1])
        if market in _MARKETS
    ]
    if not ways:
        raise NotFound(
            f"{pool.instance_type} of {pool.provider} has neither a spot nor an on-demand price",
            hint="limits.accelerators or limits.regions leads the plan elsewhere",
        )
    return ways


def _fronts(pool: ServingPool) -> list[Way]:
    """On demand: a front that is taken away costs each client a new address."""
    from tradewind import catalog

    found: dict[str, int] = {}
    offers = catalog.load().offers(
        "none",
        provider=pool.provider,
        region=pool.region,
        market="on_demand",
        fresh_within=_ANY_AGE,
    )
    for offer in offers:
        large = (offer.vcpus or 0) >= _FRONT_CPUS and (offer.memory_gb or 0) >= _FRONT_GIB
        price = offer.on_demand
        if large and price is not None:
            least = found.get(offer.instance_type, price.micros_hour)
            found[offer.instance_type] = min(least, price.micros_hour)
    if not found:
        raise NotFound(
            f"no machine is known in {pool.region} of {pool.provider} on which a front could be",
            hint="limits.regions leads the plan to another region",
        )
    cheapest = sorted(found, key=lambda name: (found[name], name))[:_FRONT_KINDS]
    return [_way(pool, name, "on_demand", found[name]) for name in cheapest]


def _way(pool: ServingPool, instance_type: str, market: str, price: int) -> Way:
    from tradewind.api import fleet
    from tradewind.model.run import Way

    return Way(
        provider=pool.provider,
        region=pool.region,
        zone="",
        instance_type=instance_type,
        market=market,
        nodes=1,
        price=price,
        rate=1.0,
        start_s=_START_S,
        facts=fleet.facts(pool.provider),
    )
