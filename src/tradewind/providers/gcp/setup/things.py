"""What setup makes for a store, as plain data: the one description.

It is created from this (make.py and what it calls), and printed from this, as Terraform and as
gcloud commands. Nothing here asks Google anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.providers.gcp.footprint import bucket_of, digest, is_home, name
from tradewind.providers.gcp.setup import fast, roles
from tradewind.providers.gcp.setup.nets import (
    INSIDE,
    Firewall,
    Network,
    Ranges,
    Subnet,
    free,
    inside,
)
from tradewind.providers.gcp.setup.roles import Grant, Role

OWNER = "tradewind-owner"
"""A label. Its value is a digest: labels take no slash."""
SERVICES = (
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "secretmanager.googleapis.com",
    "storage.googleapis.com",
    "tpu.googleapis.com",
)
"""APIs that are enabled. Teardown leaves them so: others may use them."""
IAP_RANGE = "35.235.240.0/20"
"""Where Identity-Aware Proxy comes from, by Google's documentation."""
_LONGEST_URL = 200
"""Descriptions, by which what setup made is known again, take 256 characters."""
_LARGE_SUFFIX = ".distcp"
"""Of the parts of checkpoints (torch/checkpoint/place.py), which are what weighs."""


class Rule(Struct, frozen=True, kw_only=True):
    """Of a bucket's lifecycle. Days of 0: not by that."""

    action: str
    prefix: str
    suffix: str = ""
    age_days: int = 0
    noncurrent_days: int = 0


class Bucket(Struct, frozen=True, kw_only=True):
    """Nothing is public, and access is the bucket's, not each object's. Versions are on; objects
    are not kept a second time as soft-deleted, which is seven days at least."""

    name: str
    location: str
    """A region."""
    rules: tuple[Rule, ...]
    labels: dict[str, str]


class Account(Struct, frozen=True, kw_only=True):
    """The machines' service account. It has no key, and nobody makes one."""

    id: str
    email: str
    display: str
    description: str


class Things(Struct, frozen=True, kw_only=True):
    store_url: str
    project: str
    services: tuple[str, ...]
    bucket: Bucket | None
    """None: the store is another cloud's, and stays as it is."""
    account: Account
    roles: tuple[Role, ...]
    grants: tuple[Grant, ...]
    network: Network
    fast: tuple[Network, ...] = ()
    """For GPUDirect."""

    @property
    def networks(self) -> tuple[Network, ...]:
        return (self.network, *self.fast)


def checked(store_url: str) -> str:
    """The URL as it is written everywhere. Characters that mean something in a condition of IAM
    are refused, and so is what would not fit where it is to be known again by."""
    url = store_url.rstrip("/")
    if not url.startswith(("gs://", "s3://")):
        raise InvalidValue(
            f"machines of Google cannot reach the store {store_url!r}",
            hint="for example --store gs://my-bucket/tradewind; or s3://my-bucket/tradewind, to"
            " which they are lent passes",
        )
    found = re.fullmatch(
        r"(?:gs|s3)://([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])((?:/[A-Za-z0-9_.=+-]+)*)", url
    )
    taken = is_home(url) and found and (found[1].startswith("goog") or "google" in found[1])
    if found is None or taken:
        raise InvalidValue(
            f"{store_url!r} cannot be set up: a bucket's name is 3 to 63 of a-z 0-9 . _ -, neither"
            " begins with goog nor has google in it, and the prefix is of a-z A-Z 0-9 _ . = + - /",
            hint="for example gs://my-bucket/tradewind",
        )
    if len(url) > _LONGEST_URL:
        raise InvalidValue(
            f"the store's URL is {len(url)} characters long, and what is made is marked with it:"
            f" {_LONGEST_URL} fit",
            hint="choose a shorter prefix",
        )
    return url


def checked_project(project: str) -> str:
    if not re.fullmatch(r"(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]", project):
        raise InvalidValue(
            f"{project!r} is not the id of a Google Cloud project",
            hint="6 to 30 of a-z 0-9 -: `gcloud projects list` shows those that you can see; its"
            " name or its number will not do",
        )
    return project


def checked_regions(regions: Sequence[str]) -> tuple[str, ...]:
    """Each once. Whether there is such a region, only Google knows."""
    for region in regions:
        if re.fullmatch(r"[a-z]+-[a-z]+\d+-[a-z]", region):
            raise InvalidValue(
                f"{region} is a zone, and machines may be in every zone of a region",
                hint=f"--region {region.rpartition('-')[0]}",
            )
        if not re.fullmatch(r"[a-z]+-[a-z]+\d+", region):
            raise InvalidValue(
                f"{region!r} is not the name of a region of Google Cloud",
                hint="such as us-central1: `gcloud compute regions list` shows them",
            )
    return tuple(dict.fromkeys(regions))


def described(
    store_url: str,
    project: str,
    bucket_location: str,
    regions: Sequence[str],
    *,
    iap: bool = False,
    ranges: Ranges | None = None,
    wanted: fast.Wanted | None = None,
) -> Things:
    """`ranges`: of subnetworks that are there already; `wanted`: for GPUDirect."""
    called = name(store_url)
    marked = f"Machines of {store_url}"
    known = ranges or {}
    taken = {region: told for (region, each), told in known.items() if each == called}
    for region in regions:
        taken.setdefault(region, free(taken, INSIDE))
    subnets = tuple(
        Subnet(name=called, region=region, range=taken[region], description=marked)
        for region in regions
    )
    own = inside(called, subnets, "machines reach each other, and no one else reaches them")
    shells = Firewall(
        name=f"{called}-iap",
        sources=(IAP_RANGE,),
        protocol="tcp",
        ports=("22",),
        description=marked,
        words="SSH through Identity-Aware Proxy, and from nowhere else",
    )
    return Things(
        store_url=store_url,
        project=project,
        services=(*SERVICES, *(("iap.googleapis.com",) if iap else ())),
        bucket=_bucket(store_url, bucket_location) if is_home(store_url) else None,
        account=Account(
            id=called,
            email=email(store_url, project),
            display="Machines of a Tradewind store",
            description=marked,
        ),
        roles=(*roles.machines(store_url), *roles.users(store_url)),
        grants=roles.grants(store_url),
        network=Network(
            name=called,
            description=marked,
            subnets=subnets,
            firewalls=(own, shells) if iap else (own,),
        ),
        fast=fast.networks(called, marked, wanted or fast.Wanted(), regions, known),
    )


def email(store_url: str, project: str) -> str:
    """A project that belongs to a domain (example.com:project) has it turned round."""
    domain, _, own = project.rpartition(":")
    return f"{name(store_url)}@{own}{f'.{domain}' if domain else ''}.iam.gserviceaccount.com"


def _bucket(store_url: str, location: str) -> Bucket:
    """Labelled as the bucket, not the store: several stores may be in one. Nothing that is current
    expires but kits, which are made again when they are wanted: a journal never does. A rule
    cannot name `runs/*/shards/` nor a size, but it can tell the parts of checkpoints by their
    ending: those that were pruned cost money, everything else that was overwritten or deleted is
    small and kept longer."""
    bucket, prefix = bucket_of(store_url)
    return Bucket(
        name=bucket,
        location=location,
        rules=(
            Rule(action="AbortIncompleteMultipartUpload", prefix=prefix, age_days=7),
            Rule(action="Delete", prefix=prefix, suffix=_LARGE_SUFFIX, noncurrent_days=1),
            Rule(action="Delete", prefix=prefix, noncurrent_days=7),
            Rule(action="Delete", prefix=f"{prefix}kits/", age_days=30),
        ),
        labels={OWNER: mark(bucket)},
    )


def mark(bucket: str) -> str:
    """By which a bucket that setup has made is known again."""
    return digest(f"gs://{bucket}", 10)
