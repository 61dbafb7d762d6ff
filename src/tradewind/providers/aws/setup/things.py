"""What setup makes for a store, as plain data: the one description.

It is created from this (setup.py and what it calls), and printed from this, as Terraform and as
CloudFormation. Nothing here asks AWS anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.providers.aws.footprint import OWNER, bucket_of, name
from tradewind.providers.aws.setup import policies

MOST_ZONES = 6
"""Of a region that we print networks for; no region has more today."""
_CIDR = "10.77.0.0/16"
LARGE = 1 << 20
"""Bytes. Nearly all that weighs anything is a part of a checkpoint, and they are larger."""


class Rule(Struct, frozen=True, kw_only=True):
    """Of a bucket's lifecycle. Days of 0: never."""

    id: str
    prefix: str
    larger_than: int = 0
    expire_days: int = 0
    noncurrent_days: int = 0
    unfinished_days: int = 0
    markers: bool = False
    """Remove a deletion's mark when there is nothing left behind it."""


class Bucket(Struct, frozen=True, kw_only=True):
    name: str
    region: str
    policy: dict[str, Any]
    rules: tuple[Rule, ...]
    tags: dict[str, str]
    encryption: str = "AES256"
    ownership: str = "BucketOwnerEnforced"


class Role(Struct, frozen=True, kw_only=True):
    """With an instance profile of the same name, which hands it to machines."""

    name: str
    trust: dict[str, Any]
    policy: dict[str, Any]
    policy_name: str
    managed: tuple[str, ...]
    tags: dict[str, str]
    boundary: dict[str, Any]
    """The most that it may ever do, as a managed policy."""
    boundary_name: str


class Group(Struct, frozen=True, kw_only=True):
    """Nobody comes in; outbound to the world. It is for machines that are alone: several that work
    together get a group of their own for each leg (machines/firewall.py)."""

    name: str
    description: str
    tags: dict[str, str]
    world: str = "0.0.0.0/0"


class Private(Struct, frozen=True, kw_only=True):
    """A network without a way out, but for S3 of its own region."""

    cidr: str
    subnets: tuple[str, ...]
    """Of its zones, one after the other."""
    endpoint: str
    tags: dict[str, str]


class Region(Struct, frozen=True, kw_only=True):
    region: str
    group: Group
    private: Private | None = None
    """None: the account's default VPC and its default subnets."""


class Things(Struct, frozen=True, kw_only=True):
    store_url: str
    bucket: Bucket
    role: Role
    regions: tuple[Region, ...]


def checked(store_url: str) -> str:
    """The URL as it is written everywhere. Characters that mean something to IAM are refused: a
    star in a prefix would open other stores."""
    url = store_url.rstrip("/")
    if not url.startswith("s3://"):
        raise InvalidValue(
            f"{store_url!r} is not an S3 bucket on AWS, and machines there need one",
            hint="for example --store s3://my-bucket/tradewind",
        )
    found = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9_.=+-]+)*)", url)
    if found is None:
        raise InvalidValue(
            f"{store_url!r} cannot be set up: a bucket's name is 3 to 63 of a-z 0-9 . -, and the"
            " prefix of a-z A-Z 0-9 _ . = + - /",
            hint="for example s3://my-bucket/tradewind",
        )
    return url


def described(
    store_url: str,
    bucket_region: str,
    regions: Sequence[str],
    *,
    private: Sequence[str] = (),
    ssm: bool = False,
) -> Things:
    """`private` are those of the regions that get a network of their own."""
    tags = {OWNER: store_url}
    called = name(store_url)
    world = policies.partition(bucket_region)
    if any(region != bucket_region for region in private):
        other = next(region for region in private if region != bucket_region)
        raise InvalidValue(
            f"a private network in {other} could not reach the bucket, which is in {bucket_region}:"
            " an S3 gateway reaches its own region only",
            hint=f"--private with --region {bucket_region} alone, or a bucket in {other}",
        )
    core = f"arn:{world}:iam::aws:policy/AmazonSSMManagedInstanceCore"
    return Things(
        store_url=store_url,
        bucket=_bucket(store_url, bucket_region),
        role=Role(
            name=called,
            trust=policies.trust(bucket_region),
            policy=policies.machines(store_url, bucket_region),
            policy_name="store",
            managed=(core,) if ssm else (),
            tags=tags,
            boundary=policies.boundary(store_url, bucket_region),
            boundary_name=policies.boundary_name(store_url),
        ),
        regions=tuple(
            Region(
                region=region,
                group=Group(
                    name=called, description=f"Machines of {store_url}"[:255], tags=tags
                ),
                private=_private(region, called, tags) if region in private else None,
            )
            for region in regions
        ),
    )  # fmt: skip


def _bucket(store_url: str, region: str) -> Bucket:
    """Tagged as the bucket, not the store: several stores may be in one. Nothing that is current
    expires but kits, which are made again when they are wanted: a journal never does. A rule cannot
    name `runs/*/checkpoints/`, but it can tell large from small: parts of checkpoints that were
    pruned cost money, everything else that was overwritten or deleted is small and kept longer."""
    bucket, prefix = bucket_of(store_url)
    called = name(store_url)
    return Bucket(
        name=bucket,
        region=region,
        policy=policies.bucket(store_url, region),
        rules=(
            Rule(id=f"{called}-unfinished", prefix=prefix, unfinished_days=7),
            Rule(id=f"{called}-pruned", prefix=prefix, larger_than=LARGE, noncurrent_days=1),
            Rule(id=f"{called}-replaced", prefix=prefix, noncurrent_days=7, markers=True),
            Rule(id=f"{called}-kits", prefix=f"{prefix}kits/", expire_days=30),
        ),
        tags={OWNER: f"s3://{bucket}"},
    )


def _private(region: str, called: str, tags: dict[str, str]) -> Private:
    return Private(
        cidr=_CIDR,
        subnets=tuple(f"10.77.{16 * zone}.0/20" for zone in range(16)),
        endpoint=f"com.amazonaws.{region}.s3",
        tags=tags | {"Name": called},
    )
