"""What S3 costs a machine, and an address of its own in the world.

As AWS lists it, without free tiers and for the first steps of each price: S3 Standard up to 50 TB.
Written down on 2026-11-16, and not renewed by `tradewind catalog refresh`: us-east-1 as in the AWS
Price List API on 2025-10-28, eu-central-1 as in it on 2026-08-31. For a region that is not known
the dearest is assumed. Between EC2 and S3 of one region nothing is charged; what leaves a region
for another is, at the price of the one it leaves: as guides of 2026 have it, $0.02 a gigabyte in
the Americas' north and in Europe, a cent between us-east-1 and us-east-2, and elsewhere the dearest
that they tell of.
"""

from __future__ import annotations

from tradewind.model.usage import Rates

_PRICES = {
    "us-east-1": (5_000_000, 400_000, 23_000),
    "eu-central-1": (5_400_000, 430_000, 24_500),
}
"""Micro-dollars for a million writes, for a million reads, and for a gigabyte and month."""
_NEAR = frozenset({"us-east-1", "us-east-2"})
_CHEAP = ("us-", "eu-", "ca-")
_USUAL_GB, _NEAR_GB, _FAR_GB = 20_000, 10_000, 147_000
_OUT_GB, _FAR_OUT_GB = 90_000, 154_000
"""Out of AWS, after the first 100 GB of a month, which are free, and up to 10 TB: $0.09 in North
America and Europe; elsewhere the dearest, of Cape Town."""
_OLDER_S = 86_400
"""For so long `setup aws` keeps what is large and was removed or replaced (setup/things.py)."""
ADDRESS_HOUR = 5_000
"""Of every public IPv4 address since 2024-02-01, in all regions: $0.005 an hour."""


def rates(region: str, bucket_region: str) -> Rates:
    """For machines in `region`, of a bucket in the other."""
    writes, reads, gb_month = _of(bucket_region)
    return Rates(
        writes=writes,
        reads=reads,
        gb_in=_gb(region, bucket_region),
        gb_out=_gb(bucket_region, region),
        gb_month=gb_month,
        kept_s=_OLDER_S,
    )


def outside(bucket_region: str) -> Rates:
    """For a computer that is not in AWS."""
    writes, reads, gb_month = _of(bucket_region)
    gb_out = _OUT_GB if bucket_region.startswith(_CHEAP) else _FAR_OUT_GB
    return Rates(writes=writes, reads=reads, gb_out=gb_out, gb_month=gb_month, kept_s=_OLDER_S)


def _of(bucket_region: str) -> tuple[int, ...]:
    dearest = tuple(max(each) for each in zip(*_PRICES.values(), strict=True))
    return _PRICES.get(bucket_region, dearest)


def _gb(start: str, end: str) -> int:
    if start == end:
        return 0
    if {start, end} == _NEAR:
        return _NEAR_GB
    return _USUAL_GB if start.startswith(_CHEAP) else _FAR_GB
