"""What this computer itself has asked of a bucket: to watch runs, to show them, to bring logs here.
It belongs to no run, and it is the only traffic that leaves the cloud."""

from __future__ import annotations

from msgspec import Struct

from tradewind.model import buckets
from tradewind.model.usage import Usage, cost
from tradewind.store import meter
from tradewind.store.base import Store


class Asked(Struct, frozen=True, kw_only=True):
    usage: Usage
    micros: int


def asked(store: Store) -> Asked | None:
    """Since it was first used from here, by all commands and scripts of this user, until now; None
    where nobody knows what it costs."""
    from tradewind.api import clouds
    from tradewind.catalog import ratecard

    folder, bucket = meter.own_folder(), meter.bucket_of(store.url)
    known = clouds.set_up(store) if folder and bucket else {}
    usage = meter.total(folder, bucket) if folder and known else None
    if not known or usage is None:
        return None
    home = buckets.home(store.url) or ""
    cloud, record = known.get(home) or next(iter(known.values()))
    return Asked(usage=usage, micros=cost(usage, cloud.outside(record, ratecard.card())))
