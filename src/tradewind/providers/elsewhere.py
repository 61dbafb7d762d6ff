"""The store's bucket, for machines of a provider that has no buckets of its own: it is some other
cloud's, in a region of that one, and so is what is charged for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tradewind.providers.cloud import Setting

if TYPE_CHECKING:
    from tradewind.model.ratecard import Place, RateCard
    from tradewind.model.usage import Rates

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


def bucket(footprint: Footprint) -> Place:
    return footprint.bucket_provider, footprint.bucket_region


def kept_s(footprint: Footprint) -> int:
    """How long it keeps what was removed, as the cloud that it is of has set it up, where that is
    one of ours."""
    from tradewind.providers import registry

    whose = footprint.bucket_provider
    return registry.rentable(whose).older_s if whose in registry.CLOUDS else 0


def outside(card: RateCard, footprint: Footprint) -> Rates:
    """For a computer that is at no cloud."""
    from tradewind.model.usage import Rates
    from tradewind.providers import charges

    if not footprint.bucket_provider:
        return Rates()
    return charges.outside(card, bucket(footprint), kept_s(footprint))
