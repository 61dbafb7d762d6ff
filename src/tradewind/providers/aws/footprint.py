"""What `tradewind setup aws` has made for one store, and where that is written down.

The record lies in the store itself (`providers/aws.json`), so that whoever can look after its runs
knows where machines may be launched; what to remove is told by tags and names, not by it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from tradewind.model import places
from tradewind.providers import recorded

KEY = places.footprint("aws")

OWNER, RUN, LEG, LAUNCH = "tradewind:owner", "tradewind:run", "tradewind:leg", "tradewind:launch"
SERVICE = "tradewind:service"
"""Tags. The owner's is the store's URL: whoever shares a store shares its machines."""


PREFIX = "tradewind-"
"""Of the names of all that is made at AWS."""


_Id = Annotated[str, Meta(pattern="^[a-z]{2,16}-[0-9a-zA-Z-]{1,64}$")]
_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_+=,.@-]{0,128}$")]
_Place = Annotated[str, Meta(pattern="^[a-z0-9-]{0,40}$")]
_Region = Annotated[str, Meta(pattern="^[a-z]{2,6}(-[a-z]{2,16}){1,3}-[0-9]{1,2}$")]
"""What is written down becomes parameters, addresses and commands."""


class Network(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of one region."""

    vpc: _Id
    security_group: _Id
    """Of machines that are alone: it lets nobody in."""
    subnets: dict[_Place, _Id]
    """By zone id, such as use1-az1: names of zones differ from account to account."""
    public: bool = True
    """Machines have an address of their own to reach the world by, and nobody may reach them."""


class Footprint(recorded.Record, frozen=True, kw_only=True):
    account: Annotated[str, Meta(pattern="^[0-9]{12}$")]
    bucket: Annotated[str, Meta(pattern="^[A-Za-z0-9._-]{0,255}$")]
    """"": it is another cloud's."""
    bucket_region: _Place
    """Of another cloud's bucket, one of its regions; "": not known, which counts as the most
    expensive."""
    instance_profile: _Name
    """Its name."""
    regions: dict[_Region, Network]
    image: Annotated[str, Meta(pattern="^(|ami-[0-9a-z]{1,40}|/[A-Za-z0-9_./-]{1,1000})$")] = ""
    """An image or an SSM parameter that is taken instead of the usual ones."""
    key_pair: Annotated[str, Meta(pattern="^[ -~]{0,255}$")] = ""
    """For `tradewind ssh --key`: the name of a key pair of each region."""

    lending_role: Annotated[
        str, Meta(pattern=r"^(|arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,512})$")
    ] = ""
    """The ARN of what is lent to machines of other clouds, for a run and for a while."""
    bucket_provider: _Place = "aws"
    """Whose bucket it is. To another cloud's, machines are lent passes."""

    @property
    def lent(self) -> bool:
        return self.bucket_provider != "aws"

    @property
    def bucket_place(self) -> tuple[str, str]:
        return self.bucket_provider, self.bucket_region

    @property
    def home(self) -> str:
        """The region where IAM and secrets are asked for: the bucket's, where it is ours."""
        return min(self.regions, default="") if self.lent else self.bucket_region

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(network.subnets) for name, network in self.regions.items()}

    def zones(self, region: str, zone: str) -> tuple[str, ...]:
        """Where machines may stand that are wanted in this zone, or anywhere in the region."""
        return (zone,) if zone else tuple(self.regions[region].subnets)


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """As AWS wants them."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def tags_of(found: Sequence[Mapping[str, str]] | None) -> dict[str, str]:
    """As AWS tells them."""
    return {each["Key"]: each["Value"] for each in found or []}


def owned(store_url: str) -> list[dict[str, object]]:
    """EC2's filter for what is ours."""
    return [{"Name": f"tag:{OWNER}", "Values": [store_url]}]


def decoded(data: bytes) -> Footprint:
    return recorded.decoded(data, Footprint, "aws")


def is_home(store_url: str) -> bool:
    """Whether the store is AWS's, and its machines are somebody there."""
    return store_url.startswith("s3://")


def bucket_of(store_url: str) -> tuple[str, str]:
    """The bucket and the prefix ("" or ending in a slash) of s3://bucket/prefix."""
    found = re.fullmatch(r"s3://([^/]+)(?:/(.*))?", store_url)
    if found is None:
        raise ValueError(store_url)
    prefix = (found[2] or "").strip("/")
    return found[1], prefix + "/" if prefix else ""


def setup_command(store_url: str, *regions: str) -> str:
    """That can be pasted: what makes, or mends, what machines of a store need."""
    store = store_url if store_url.startswith(("s3://", "gs://")) else "s3://BUCKET"
    return " ".join([f"tradewind setup aws --store {store}", *(f"--region {r}" for r in regions)])


def secrets_path(store_url: str) -> str:
    """What the names of secrets begin with that machines of a store may read: after a slash as a
    parameter of Systems Manager, as it is at Secrets Manager."""
    return name(store_url).replace("-", "/", 1) + "/"


def name(store_url: str) -> str:
    """Of the role, the instance profile and the security groups of a store. Short, since it is for
    all AWS the same in every region, and the same whoever asks."""
    return f"{PREFIX}{hashlib.sha256(store_url.rstrip('/').encode()).hexdigest()[:10]}"
