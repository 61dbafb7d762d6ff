"""A plan carried out on machines of a cloud: its ways as that cloud's account has them."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from tradewind.errors import InvalidValue, NoAccess, NotFound

if TYPE_CHECKING:
    from tradewind.model import Workload
    from tradewind.model.run import Spec, Way
    from tradewind.store.base import Store

CLOUDS = ("aws",)
"""Those that machines can be rented from."""
_SPARE, _SYSTEM_GB = 1.5, 150
"""An image with drivers and PyTorch takes half of that; the rest is for packages and caches."""


class On:
    """A cloud, as it is set up for a store."""

    def __init__(self, store: Store, cloud: str, regions: Sequence[str] = ()) -> None:
        from tradewind.api.aws import machines

        if cloud not in CLOUDS:
            raise InvalidValue(
                f"machines of {cloud} cannot be rented from here yet",
                hint=f"--on {CLOUDS[0]}, or --local: on this computer, priced as its machines are",
            )
        self.cloud, self._record, self._store_url = cloud, machines.needed(store), store.url
        self.rejected: list[str] = []
        """Ways that the account cannot have, and why."""
        self.warnings: list[str] = []
        self._regions = tuple(regions) or tuple(sorted(self._record.regions))
        for region in self._regions:
            if region not in self._record.regions:
                there = sorted(self._record.regions)
                close = get_close_matches(region, there, n=1, cutoff=0.8)
                meant = f" (did you mean {close[0]}?)" if close else ""
                raise NotFound(
                    f"nothing is set up in {region}{meant}",
                    hint=f"set up: {', '.join(there)};"
                    f" tradewind aws setup --store {store.url} --region {region} adds it",
                )

    def limited(self, work: Workload) -> Workload:
        """As the workload says, and here only."""
        from dataclasses import replace

        allowed = [region for region in self._regions if work.limits.allows(self.cloud, region)]
        if not allowed:
            raise NotFound(
                f"workload {work.name} allows none of {', '.join(self._regions)} at {self.cloud}",
                hint="look at its limits.providers, limits.regions and limits.exclude",
            )
        named = tuple(f"{self.cloud}/{region}" for region in allowed)
        return replace(work, limits=replace(work.limits, providers=(self.cloud,), regions=named))

    def there(self, spec: Spec) -> Spec:
        """The same in zones that can be launched in. A plan names the zone that is cheapest of a
        region; what is taken or not to be had there is to go on in the others, so each zone is a
        way, at its own price of now. What cannot be had is left out, and why is kept in
        `rejected`."""
        from msgspec.structs import replace

        from tradewind.api import handed
        from tradewind.providers.aws.clients import Account
        from tradewind.providers.aws.limits.usable import usable

        handed.check(spec, self._secrets_hint())
        every = [way for each in spec.ways for way in self._zoned(each)]
        zoned = list({(way.what, way.nodes): way for way in reversed(every)}.values())[::-1]
        if not zoned:
            raise NotFound(
                f"none of the plan's machines is of {self.cloud} in {', '.join(self._regions)}",
                hint="plan again with --on, which keeps to what is set up",
            )
        account = Account()
        self._check(account.number())
        found = usable(account, self._record, zoned, store_url=self._store_url)
        self.rejected = [f"{reason.way.words}: {reason.words}" for reason in found.rejected]
        self.warnings = [*found.warnings, *self._unreachable(spec)]
        if not found.ways:
            first = found.rejected[0]
            raise NotFound(
                f"the account can have none of the plan's machines: {first.words}",
                hint=first.hint or "tradewind doctor aws says what it can have",
            )
        ways = tuple(self._priced(spec, way) for way in found.ways)
        return replace(spec, ways=ways, predicted_cost=_at_prices_of_now(spec, ways))

    def _secrets_hint(self) -> str:
        from tradewind.providers.aws.footprint import secrets_path

        name = f"/{secrets_path(self._store_url)}NAME"
        return (
            f"aws ssm put-parameter --region {self._record.bucket_region} --type SecureString"
            f" --name {name} --value file://FILE; then write aws-ssm:{name}"
        )

    def _unreachable(self, spec: Spec) -> list[str]:
        """Secrets that machines without a way to the internet cannot look up."""
        private = [name for name in self._regions if not self._record.regions[name].public]
        if not private or not spec.job.get("secrets"):
            return []
        return [
            f"machines in {', '.join(private)} reach S3 alone: their secrets can be read only where"
            " you have made endpoints for Systems Manager or Secrets Manager in that network"
        ]

    def _check(self, number: str) -> None:
        """Of another account, or refused altogether (`number` was asked for), they could launch
        nothing; what else is asked of AWS may fail and does not stop a run."""
        if number != self._record.account:
            raise NoAccess(
                f"these credentials are of account {number}, and {self._store_url} is set up in"
                f" {self._record.account}",
                hint="look at AWS_PROFILE and `aws sts get-caller-identity`",
            )

    def _priced(self, spec: Spec, way: Way) -> Way:
        """With what AWS charges for beside the machine."""
        from msgspec.structs import replace

        from tradewind.providers.aws.machines import disks, storage

        disk_gb = _disk_gb(spec, way.nodes)
        disk = disks.price_hour(way.region, disk_gb)
        address = storage.ADDRESS_HOUR if self._record.regions[way.region].public else 0
        # What lies in the run's own bucket is counted as it is moved, and not reckoned before.
        counted = spec.data.startswith(f"s3://{self._record.bucket}/")
        return replace(
            way,
            disk_gb=disk_gb,
            disk_price=disk,
            address_price=address,
            price=way.price + disk + address,
            rates=storage.rates(way.region, self._record.bucket_region),
            start_cost=0 if counted else way.start_cost,
        )

    def _zoned(self, way: Way) -> list[Way]:
        from msgspec.structs import replace

        if way.provider != self.cloud or way.region not in self._regions:
            return []
        subnets = self._record.regions[way.region].subnets
        zones = sorted(subnets, key=lambda zone: (zone != way.zone, zone))
        if way.zone and way.market not in ("spot", "on_demand"):
            zones = [zone for zone in zones if zone == way.zone]  # it is held there, nowhere else
        return [replace(way, zone=zone) for zone in zones]


def _at_prices_of_now(spec: Spec, ways: Sequence[Way]) -> int | None:
    """What was predicted for the plan's machines at the catalog's prices, for the cheapest that
    there are, at what is asked for them today."""

    def bare(way: Way) -> float:
        return way.price_all * (way.start_s + spec.work / way.rate)

    planned = bare(spec.ways[0])
    if spec.predicted_cost is None or not planned:
        return spec.predicted_cost
    return round(spec.predicted_cost * min(map(bare, ways)) / planned)


def _disk_gb(spec: Spec, nodes: int) -> int:
    """For the checkpoints that a machine keeps beside those in the store, the one that is being
    written among them."""
    kept = spec.checkpoint_bytes / max(nodes, 1) * (spec.checkpoint_keep + 1)
    return round(_SPARE * kept / 1e9) + _SYSTEM_GB
