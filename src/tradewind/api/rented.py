"""A plan carried out on machines of clouds: its ways as the accounts there have them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from tradewind.base.errors import InvalidValue, NotFound, TradewindError

if TYPE_CHECKING:
    from datetime import datetime

    from tradewind.catalog import Catalog
    from tradewind.model import Workload
    from tradewind.model.beside import Beside
    from tradewind.model.ratecard import Place, RateCard
    from tradewind.model.run import Spec, Way
    from tradewind.model.usage import Rates
    from tradewind.providers.cloud import Rentable
    from tradewind.providers.offered import Offered, Offering, Types
    from tradewind.providers.usable import Reason, Usable
    from tradewind.store.base import Store

LOCAL_START_S = 2.0


class On:
    """Clouds, as they are set up for a store; those that are not named are those that are. With
    `local` among the names, this computer too."""

    def __init__(
        self, store: Store, names: Sequence[str] = (), regions: Sequence[str] = ()
    ) -> None:
        from tradewind.api import clouds
        from tradewind.api.lending import Lending
        from tradewind.providers import registry

        self._lending, self._longest_s = Lending(store), 0
        rented = [name for name in names if name != registry.LOCAL]
        there = {name: clouds.needed(store, name) for name in rented} or clouds.set_up(store)
        self._beside = registry.LOCAL in names
        if not there:
            raise nothing_set_up(store)
        self.rejected: list[str] = []
        """Ways that the accounts cannot have, and why."""
        self.warnings: list[str] = []
        there = self._reaching(store, there, bool(names))
        self._store_url = store.url
        self._at = [At(cloud, record, store.url) for cloud, record in there.values()]
        if regions:
            self._keep_to(regions)

    def _reaching(
        self, store: Store, there: dict[str, tuple[Rentable, Any]], named: bool
    ) -> dict[str, tuple[Rentable, Any]]:
        """Without those whose machines need passes, where none can be lent or nobody can sign links
        to them: unless they were asked for, which is an error."""
        from tradewind.api import clouds

        found = {}
        for name, (cloud, record) in there.items():
            try:
                if clouds.is_lent(cloud, store.url, record):  # both raise what would do
                    assert self._lending.lender
                    clouds.signing(store, cloud, record)
            except (InvalidValue, NotFound) as error:
                if named or len(there) == 1:
                    raise
                self.warnings.append(error.message)
            else:
                found[name] = (cloud, record)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(at.cloud.name for at in self._at)

    def _keep_to(self, regions: Sequence[str]) -> None:
        from tradewind.catalog import places
        from tradewind.model.areas import countries

        there = sorted({region for at in self._at for region in at.regions})
        lands = {land for text in regions for land in countries(text)}
        kept = {
            region
            for at in self._at
            for region in at.regions
            if region in regions or places.country_of(at.cloud.name, region) in lands
        }
        for region in regions:
            if region not in there and not (kept and countries(region)):
                close = get_close_matches(region, there, n=1, cutoff=0.8)
                meant = f" (did you mean {close[0]}?)" if close else ""
                adds = self._at[0].cloud.setup_command(self._store_url, region)
                raise NotFound(
                    f"nothing is set up in {region}{meant}",
                    hint=f"set up: {', '.join(there)}; {adds} adds it",
                )
        for at in self._at:
            at.regions = tuple(each for each in at.regions if each in kept)
        self._at = [at for at in self._at if at.regions]

    def limited(self, work: Workload) -> Workload:
        """As the workload says, and here only."""
        from dataclasses import replace

        from tradewind.catalog import places

        named = tuple(
            f"{at.cloud.name}/{region}"
            for at in self._at
            for region in at.regions
            if places.allows(work.limits, at.cloud.name, region)
        )
        if not named:
            raise NotFound(
                f"workload {work.name} allows none of {self._places()}",
                hint="look at its limits.providers, limits.regions and limits.exclude",
            )
        return replace(work, limits=replace(work.limits, providers=self.names, regions=named))

    def catalog(self, catalog: Catalog, now: datetime) -> Catalog:
        """With what these accounts have of their own besides, such as nodes of clusters."""
        from tradewind.api import offered
        from tradewind.providers.cloud import Offers

        types = offered.known_types(catalog)
        found: dict[str, list[Offered]] = {}
        for at in self._at:
            if not isinstance(at.cloud, Offers):
                continue
            try:
                offering = at.offers(types)
            except TradewindError as error:
                if len(self._at) == 1:
                    raise
                self.warnings.append(error.message)
            else:
                found[at.cloud.name] = [e for e in offering.offers if e.region in at.regions]
                self.warnings += offering.warnings
        made = offered.joined(catalog, found, now)
        self.warnings += made.warnings
        if found and not made.offers and len(found) == len(self._at):
            raise NotFound(
                f"there is no machine with an accelerator in {self._places()}"
                + "".join(f"; {words}" for words in self.warnings[:3]),
                hint=f"tradewind doctor {self._at[0].cloud.name} shows what there is",
            )
        return made.catalog

    @property
    def bucket(self) -> Place | None:
        """Where the store is, as setup has found; None: it is no bucket."""
        found = (at.bucket for at in self._at)
        return next((place for place in found if all(place)), None)

    def extra(self, provider: str, region: str, instance_type: str, market: str) -> Beside:
        """What is charged for beside such a machine, as it would be here."""
        from tradewind.model.beside import NOTHING

        for at in self._at:
            if at.cloud.name == provider:
                return at.extra(region, instance_type, market)
        return NOTHING

    def there(self, spec: Spec) -> Spec:
        """The same in zones that can be launched in. A plan names the zone that is cheapest of a
        region; what is taken or not to be had there is to go on in the others, so each zone is a
        way, at its own price of now. What cannot be had is left out, and why is kept in
        `rejected`."""
        from msgspec.structs import replace

        from tradewind.api import handed, moving, sustained
        from tradewind.catalog import ratecard

        handed.check(spec, self._at[0].secrets_hint())
        card = ratecard.card()
        every = [way for each in spec.ways for at in self._at for way in at.zoned(each)]
        every += [way for at in self._at for way in at.waited_for(every, card)]
        zoned = list({(way.what, way.nodes): way for way in reversed(every)}.values())[::-1]
        if not zoned:
            raise NotFound(
                f"none of the plan's machines is in {self._places()}",
                hint="plan again with --on, which keeps to what is set up",
            )
        order = {(way.what, way.nodes): place for place, way in enumerate(zoned)}
        placed: list[tuple[int, Way]] = []
        rejected: list[Reason] = []
        image = str(spec.job.get("image") or "")
        for at in self._at:
            mine = [way for way in zoned if way.provider == at.cloud.name]
            if image and not at.contained:
                rejected += [_without_image(at.cloud, way, image) for way in mine]
                continue
            found = at.usable(mine)
            placed += [
                (
                    order[way.what, way.nodes],
                    moving.priced(
                        spec, self._lent(spec, at.priced(spec, way, card)), self._store_url
                    ),
                )
                for way in found.ways
            ]
            rejected += found.rejected
            regions = sorted({way.region for way in found.ways})
            self.warnings += [*found.warnings, *at.warnings(spec, regions, card)]
        self.rejected = [f"{reason.way.words}: {reason.words}" for reason in rejected]
        if not placed:
            first = rejected[0]
            check = f"tradewind doctor {first.way.provider}"
            raise NotFound(
                f"this account cannot launch any machine of the plan: {first.words}",
                hint=first.hint or f"{check} shows what it can launch",
            )
        placed.sort(key=lambda each: each[0])  # as the plan prefers them
        ways = sustained.told([way for _, way in placed])
        predicted = at_prices_of_now(spec, ways)
        if self._beside and spec.untold:
            self.warnings.append(
                "the workload names its machines, and this computer is none of them: it is left out"
            )
        elif self._beside:
            ways.append(self._this_computer(spec, card))
        return replace(spec, ways=tuple(ways), predicted_cost=predicted)

    def _lent(self, spec: Spec, way: Way) -> Way:
        """Passes last no longer than whoever lends can make them: controllers renew them by that.
        One is tried: a run whose machines could be lent none would wait for ever."""
        from msgspec.structs import replace

        from tradewind.base import clock

        if not way.pass_s:
            return way
        if not self._longest_s:
            lender = self._lending.lender
            lender.lend(clock.new_id(spec.name), way.pass_s)
            self._longest_s = lender.longest_s
        return replace(way, pass_s=min(way.pass_s, self._longest_s))

    def _this_computer(self, spec: Spec, card: RateCard) -> Way:
        """It costs nothing but what the store charges outside of its cloud. How fast it is nobody
        has estimated: as fast as the plan's machines, until it is measured."""
        from tradewind.api import fleet, moving
        from tradewind.model.run import Way
        from tradewind.providers import registry

        way = Way(
            provider=registry.LOCAL,
            region=registry.LOCAL,
            zone="",
            instance_type="this-computer",
            market="on_demand",
            nodes=1,
            price=0,
            rate=spec.ways[0].rate,
            guessed=True,
            start_s=LOCAL_START_S,
            rates=self._at[0].outside(card),
            facts=fleet.facts(registry.LOCAL),
        )
        return moving.priced(spec, way, self._store_url)

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

    def waited_for(self, ways: Sequence[Way], card: RateCard) -> list[Way]:
        """Of these, what can be had for waiting too. No plan counts on a queue, whose length nobody
        knows; a run that has the time may stand in one."""
        from tradewind.providers.cloud import Waits

        cloud = self.cloud
        if not isinstance(cloud, Waits):
            return []
        ours = [way for way in ways if way.provider == cloud.name and way.market == "on_demand"]
        return [queued for way in ours if (queued := cloud.waited_for(way, card)) is not None]

    @property
    def contained(self) -> bool:
        from tradewind.providers.cloud import Contained

        return isinstance(self.cloud, Contained)

    def offers(self, types: Types) -> Offering:
        from tradewind.providers.cloud import Offers

        assert isinstance(self.cloud, Offers)
        return self.cloud.offers(self._record, types)

    def usable(self, ways: Sequence[Way]) -> Usable:
        return self.cloud.usable(self._record, ways, self._store_url)

    def priced(self, spec: Spec, way: Way, card: RateCard) -> Way:
        return self.cloud.priced(self._record, spec, way, card)

    def warnings(self, spec: Spec, regions: Sequence[str], card: RateCard) -> list[str]:
        found = self.cloud.warnings(self._record, spec, regions, card)
        if regions and self.cloud.facts.ends == "never":
            found.append(
                f"machines of {self.cloud.title} are billed until a controller ends them, also"
                " after they have shut down: keep one looking until the run has ended, by"
                " `tradewind watch` or the crontab line that `run --detach` offers"
            )
        return found

    @property
    def bucket(self) -> Place:
        """Where the store's is."""
        from tradewind.providers import elsewhere

        known: Place | None = getattr(self._record, "bucket_place", None)
        return known or elsewhere.bucket(self._record)

    def extra(self, region: str, instance_type: str, market: str) -> Beside:
        return self.cloud.beside(self._record, region, instance_type, market)

    def outside(self, card: RateCard) -> Rates:
        return self.cloud.outside(self._record, card)

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


def _without_image(cloud: Rentable, way: Way, image: str) -> Reason:
    from tradewind.providers.usable import Reason

    return Reason(
        way=way,
        kind="no_image",
        words=f"machines of {cloud.title} are no containers, and run.image asks for {image}",
        hint="leave run.image out: `run.setup` installs what the job needs; or --on a cloud of"
        " containers",
    )


def at_prices_of_now(spec: Spec, ways: Sequence[Way]) -> int | None:
    """What was predicted for the plan's machines at the catalog's prices, for the cheapest that
    there are, at what is asked for them today. Disk and address the plan has counted, and its way
    has not."""
    first = spec.ways[0]
    alike = (way for way in ways if (way.instance_type, way.market) == _sold(first))
    beside = next(((way.disk_price + way.address_price) * way.nodes for way in alike), 0)

    def paid(way: Way, price_all: int) -> float:
        return price_all * (way.start_s + spec.work / way.rate)

    planned = paid(first, first.price_all + beside)
    counted = [way for way in ways if not way.facts.queues] or ways
    if spec.predicted_cost is None or not planned:
        return spec.predicted_cost
    return round(spec.predicted_cost * min(paid(way, way.price_all) for way in counted) / planned)


def _sold(way: Way) -> tuple[str, str]:
    return way.instance_type, way.market
