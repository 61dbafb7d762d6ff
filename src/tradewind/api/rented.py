"""A plan carried out on machines of clouds: its ways as the accounts there have them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue, NotFound

if TYPE_CHECKING:
    from tradewind.model import Workload
    from tradewind.model.ratecard import RateCard
    from tradewind.model.run import Spec, Way
    from tradewind.providers.cloud import Rentable
    from tradewind.providers.usable import Reason, Usable
    from tradewind.store.base import Store


class On:
    """Clouds, as they are set up for a store; those that are not named are those that are."""

    def __init__(
        self, store: Store, names: Sequence[str] = (), regions: Sequence[str] = ()
    ) -> None:
        from tradewind.api import clouds

        there = {name: clouds.needed(store, name) for name in names} or clouds.set_up(store)
        if not there:
            raise nothing_set_up(store)
        self.rejected: list[str] = []
        """Ways that the accounts cannot have, and why."""
        self.warnings: list[str] = []
        self._store_url = store.url
        self._at = [At(cloud, record, store.url) for cloud, record in there.values()]
        if regions:
            self._keep_to(regions)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(at.cloud.name for at in self._at)

    def _keep_to(self, regions: Sequence[str]) -> None:
        there = sorted({region for at in self._at for region in at.regions})
        for region in regions:
            if region not in there:
                close = get_close_matches(region, there, n=1, cutoff=0.8)
                meant = f" (did you mean {close[0]}?)" if close else ""
                adds = self._at[0].cloud.setup_command(self._store_url, region)
                raise NotFound(
                    f"nothing is set up in {region}{meant}",
                    hint=f"set up: {', '.join(there)}; {adds} adds it",
                )
        for at in self._at:
            at.regions = tuple(each for each in at.regions if each in regions)
        self._at = [at for at in self._at if at.regions]

    def limited(self, work: Workload) -> Workload:
        """As the workload says, and here only."""
        from dataclasses import replace

        named = tuple(
            f"{at.cloud.name}/{region}"
            for at in self._at
            for region in at.regions
            if work.limits.allows(at.cloud.name, region)
        )
        if not named:
            raise NotFound(
                f"workload {work.name} allows none of {self._places()}",
                hint="look at its limits.providers, limits.regions and limits.exclude",
            )
        return replace(work, limits=replace(work.limits, providers=self.names, regions=named))

    def there(self, spec: Spec) -> Spec:
        """The same in zones that can be launched in. A plan names the zone that is cheapest of a
        region; what is taken or not to be had there is to go on in the others, so each zone is a
        way, at its own price of now. What cannot be had is left out, and why is kept in
        `rejected`."""
        from msgspec.structs import replace

        from tradewind.api import handed
        from tradewind.catalog import ratecard

        handed.check(spec, self._at[0].secrets_hint())
        every = [way for each in spec.ways for at in self._at for way in at.zoned(each)]
        zoned = list({(way.what, way.nodes): way for way in reversed(every)}.values())[::-1]
        if not zoned:
            raise NotFound(
                f"none of the plan's machines is in {self._places()}",
                hint="plan again with --on, which keeps to what is set up",
            )
        card = ratecard.card()
        ways: list[Way] = []
        rejected: list[Reason] = []
        for at in self._at:
            found = at.usable([way for way in zoned if way.provider == at.cloud.name])
            ways += [at.priced(spec, way, card) for way in found.ways]
            rejected += found.rejected
            regions = sorted({way.region for way in found.ways})
            self.warnings += [*found.warnings, *at.warnings(spec, regions, card)]
        self.rejected = [f"{reason.way.words}: {reason.words}" for reason in rejected]
        if not ways:
            first = rejected[0]
            check = f"tradewind doctor {first.way.provider}"
            raise NotFound(
                f"this account cannot launch any machine of the plan: {first.words}",
                hint=first.hint or f"{check} shows what it can launch",
            )
        order = {(way.what, way.nodes): place for place, way in enumerate(zoned)}
        ways.sort(key=lambda way: order[way.what, way.nodes])  # as the plan prefers them
        return replace(spec, ways=tuple(ways), predicted_cost=_at_prices_of_now(spec, ways))

    def _places(self) -> str:
        return "; ".join(f"{', '.join(at.regions)} at {at.cloud.name}" for at in self._at)


class At:
    """One of them."""

    def __init__(self, cloud: Rentable, record: Any, store_url: str) -> None:
        self.cloud, self._record, self._store_url = cloud, record, store_url
        self.regions: tuple[str, ...] = tuple(sorted(record.places))

    def zoned(self, way: Way) -> list[Way]:
        from msgspec.structs import replace

        if way.provider != self.cloud.name or way.region not in self.regions:
            return []
        zones = sorted(self._record.places[way.region], key=lambda zone: (zone != way.zone, zone))
        if way.zone and way.market not in ("spot", "on_demand"):
            zones = [zone for zone in zones if zone == way.zone]  # it is held there, nowhere else
        return [replace(way, zone=zone) for zone in zones]

    def usable(self, ways: Sequence[Way]) -> Usable:
        return self.cloud.usable(self._record, ways, self._store_url)

    def priced(self, spec: Spec, way: Way, card: RateCard) -> Way:
        return self.cloud.priced(self._record, spec, way, card)

    def warnings(self, spec: Spec, regions: Sequence[str], card: RateCard) -> list[str]:
        return self.cloud.warnings(self._record, spec, regions, card)

    def secrets_hint(self) -> str:
        return self.cloud.secrets_hint(self._record, self._store_url)


def nothing_set_up(store: Store) -> InvalidValue:
    from tradewind.providers import registry

    clouds = [registry.rentable(name) for name in registry.RENTED]
    setup = " or ".join(each.setup_command(store.url) for each in clouds)
    return InvalidValue(
        f"no target: add --local, or set up a cloud for {store.url}",
        hint=f"--local runs on this computer at the plan's prices; {setup} sets one up",
    )


def _at_prices_of_now(spec: Spec, ways: Sequence[Way]) -> int | None:
    """What was predicted for the plan's machines at the catalog's prices, for the cheapest that
    there are, at what is asked for them today."""

    def bare(way: Way) -> float:
        return way.price_all * (way.start_s + spec.work / way.rate)

    planned = bare(spec.ways[0])
    if spec.predicted_cost is None or not planned:
        return spec.predicted_cost
    return round(spec.predicted_cost * min(map(bare, ways)) / planned)
