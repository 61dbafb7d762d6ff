"""The store's bucket, for machines of a provider that has no buckets of its own: it is some other
cloud's, in a region of that one, and so is what is charged for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from tradewind.base import endpoints
from tradewind.model import buckets
from tradewind.providers import recorded
from tradewind.providers.cloud import Setting

if TYPE_CHECKING:
    from tradewind.model.ratecard import Place, RateCard
    from tradewind.model.usage import Rates

C = TypeVar("C")
BUCKET_REGION = Setting(
    name="bucket_region",
    metavar="REGION",
    words="Where the store's bucket is, for what its traffic costs.",
)


class Footprint(Protocol):
    """Of such a provider."""

    @property
    def bucket_provider(self) -> str:
        """Empty: the store is no bucket."""
        ...

    @property
    def bucket_region(self) -> str: ...


class Clusters(recorded.Record, Generic[C], frozen=True, kw_only=True):
    """Of a provider whose machines are in clusters of somebody's, which have no zones."""

    clusters: dict[str, C]
    """By name, which is the region of ways there."""
    bucket_provider: str = ""
    bucket_region: str = ""
    """Where the store's bucket is, for what traffic costs; "": not known."""

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        return dict.fromkeys(self.clusters, ("",))


def bucket(footprint: Footprint) -> Place:
    return footprint.bucket_provider, footprint.bucket_region


def kept_s(whose: str) -> int:
    """How long a bucket keeps what was removed, as the cloud that it is of has set it up, where
    that is one of ours."""
    from tradewind.providers import registry

    return registry.rentable(whose).older_s if whose in registry.CLOUDS else 0


def addresses(env: Mapping[str, str]) -> dict[str, str]:
    """Where the store is, as this computer finds it."""
    names = [name for each in buckets.STORES.values() for name in each.address]
    return {name: env[name] for name in (*names, endpoints.ALLOW) if env.get(name)}


def outside(card: RateCard, footprint: Footprint) -> Rates:
    """For a computer that is at no cloud."""
    from tradewind.model.usage import Rates
    from tradewind.providers import charges

    if not footprint.bucket_provider:
        return Rates()
    return charges.outside(card, bucket(footprint), kept_s(footprint.bucket_provider))
