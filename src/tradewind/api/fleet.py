"""Which providers can be rented from, and the loop over them, put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradewind.base.errors import BadFile, TradewindError
from tradewind.base.ownfiles import home

if TYPE_CHECKING:
    from tradewind.api.lending import Lending
    from tradewind.controller.controller import Controller
    from tradewind.controller.loop import Loop
    from tradewind.model.run import Facts, Listing, Machine, Request
    from tradewind.providers.base import Provider
    from tradewind.providers.local.provider import LocalProvider
    from tradewind.store.base import Store

CLOUD_PASS_S = 10.0
"""A pass asks each region once; clouds count how often they are asked."""
LOCAL_PASS_S = 1.0
"""Looking at processes of this computer costs next to nothing."""


def local(store: Store) -> LocalProvider:
    from tradewind.api import owned
    from tradewind.api.wishes import PerRun
    from tradewind.providers.local.provider import LocalProvider

    return LocalProvider(
        home(), store.url, interruptions=PerRun(), own_only=True, job_of=owned.job_sha256
    )


def providers(store: Store, lending: Lending | None = None) -> dict[str, Provider]:
    """This computer, and every cloud that something was set up at for this store."""
    from tradewind.api import clouds
    from tradewind.api.luggage import Packer
    from tradewind.providers import registry

    found: dict[str, Provider] = {registry.LOCAL: local(store)}
    for name in registry.RENTED:
        try:
            cloud = registry.rentable(name)
            record = clouds.footprint(store, cloud)
            if record is None:
                continue
            pack = Packer(store, cloud, record, lending)
            found[name] = cloud.opened(record, clouds.owner(store), pack)
        except BadFile as error:  # what the store says of it: runs elsewhere are looked after
            found[name] = Unusable(error)
    return found


class Unusable:
    """A provider of which it is not known where its machines are: each pass says why, nothing is
    concluded about its machines, and nothing is bought."""

    def __init__(self, error: TradewindError) -> None:
        self._error = error

    def list_machines(self) -> Listing:
        raise self._error

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        raise self._error

    def terminate(self, machine_ids: Sequence[str]) -> None:
        raise self._error


def facts(provider: str) -> Facts:
    from tradewind.model.run import Facts
    from tradewind.providers import registry

    return registry.cloud(provider).facts if provider in registry.CLOUDS else Facts()


def clerk() -> Controller:
    """One that writes orders into journals, and neither looks after runs nor remembers anything:
    nothing that is wrong with another run, a cloud or this computer's memory keeps it from that."""
    from tradewind.base import clock
    from tradewind.controller.controller import Controller

    return Controller(
        clock.new_id("ctl"), (), clock=lambda: clock.now().timestamp(), watch=clock.epoch
    )


def loop(store: Store) -> Loop:
    from tradewind.api import owned
    from tradewind.api.fronts import Fronts
    from tradewind.api.keeping import Keeper
    from tradewind.api.lending import Lending
    from tradewind.api.sightings import remember
    from tradewind.controller.loop import Loop

    lending = Lending(store)
    rented = providers(store, lending)
    pass_s = LOCAL_PASS_S if tuple(rented) == ("local",) else CLOUD_PASS_S
    return Loop(
        store,
        rented,
        home(),
        pass_s=pass_s,
        may_use=owned.may_use,
        learned=remember,
        lend=lending,
        fronts=Fronts(),
        serves=Keeper(tuple(rented)),
    )
