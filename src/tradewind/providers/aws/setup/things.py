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
from tradewind.providers.aws.footprint import OWNER, bucket_of, is_home, name
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
    """That of machines has an instance profile of the same name, which hands it to them."""

    name: str
    trust: dict[str, Any]
    policy: dict[str, Any]
    policy_name: str
    managed: tuple[str, ...]
    tags: dict[str, str]
    boundary: dict[str, Any]
    """The most that it may ever do, as a managed policy."""
    boundary_name: str
    whose: str = "EC2"
    """Who may assume it, in words."""
    longest_s: int = 3600
    """Of a session."""
    description: str = "What machines of a Tradewind store may do"


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
    home: str
    """The region of the bucket, or where the rest is that is of no region."""
    bucket: Bucket | None
    """None: it is another cloud's, and machines are lent passes to it."""
    role: Role
    lending: Role | None
    """What is lent to machines that are nobody at AWS; None: nothing is."""
    regions: tuple[Region, ...]


def checked(store_url: str) -> str:
    """The URL as it is written everywhere. Characters that mean something to IAM are refused: a
    star in a prefix would open other stores."""
    url = store_url.rstrip("/")
    if not url.startswith(("s3://", "gs://")):
        raise InvalidValue(
            f"{store_url!r} is not an S3 bucket on AWS, and machines there need one",
            hint="for example --store s3://my-bucket/tradewind; or gs://my-bucket/tradewind, to"
            " which they are lent passes",
        )
    also = "" if is_home(url) else "_"
    found = re.fullmatch(
        rf"(?:s3|gs)://([a-z0-9][a-z0-9{also}.-]{{1,61}}[a-z0-9])((?:/[A-Za-z0-9_.=+-]+)*)", url
    )
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
    lend_of: str = "",
) -> Things:
    """`private` are those of the regions that get a network of their own, `lend_of` the account
    whose users may lend passes."""
    tags = {OWNER: store_url}
    called = name(store_url)
    if not is_home(store_url):
        check_lent(store_url, private, lend_of)
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
        home=bucket_region,
        bucket=_bucket(store_url, bucket_region) if is_home(store_url) else None,
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
        lending=_lending(store_url, bucket_region, lend_of) if lend_of else None,
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


def check_lent(store_url: str, private: Sequence[str], lend_of: str) -> None:
    """Raises what makes no sense for a store of another cloud."""
    if private:
        raise InvalidValue(
            f"a private network reaches nothing but S3, and {store_url} is not there",
            hint="leave out --private, or keep the store in S3",
        )
    if lend_of:
        raise InvalidValue(
            f"passes to {store_url} are made by its own cloud, and not by a role of AWS",
            hint="leave out --lend",
        )


def _lending(store_url: str, region: str, account: str) -> Role:
    policy = policies.lending(store_url, region)
    return Role(
        name=policies.lend_name(store_url),
        trust=policies.trust_account(region, account),
        policy=policy,
        policy_name="store",
        managed=(),
        tags={OWNER: store_url},
        boundary=policy,
        boundary_name=policies.lend_boundary_name(store_url),
        whose="this account",
        longest_s=policies.LONGEST_PASS_S,
        description="What machines elsewhere are lent, for a run and for a while",
    )


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
