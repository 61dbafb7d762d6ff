"""What `tradewind setup gcp` has made for one store, and where that is written down.

The record lies in the store itself (`providers/gcp.json`), so that whoever can look after its runs
knows where machines may be launched; what to remove is told by labels and names, not by it.
"""

from __future__ import annotations

import hashlib
import re

from msgspec import field

from tradewind.base.errors import InvalidValue
from tradewind.model import places as keys
from tradewind.providers import recorded

KEY = keys.footprint("gcp")
PREFIX = "tradewind-"
"""Of the names of all that setup makes."""


class Footprint(recorded.Record, frozen=True, kw_only=True):
    project: str
    bucket: str
    bucket_location: str
    """In small letters: a region such as us-central1, or us, eu, asia. Of another cloud's bucket,
    one of its regions; "": not known, which is reckoned as the dearest."""
    service_account: str
    """Its email: who machines are."""
    network: str
    """Its name."""
    subnets: dict[str, str]
    """By region, the subnetwork's name."""
    zones: dict[str, tuple[str, ...]]
    """By region, where machines may be."""
    image: str = ""
    """A family or an image that is taken instead of the usual ones:
    projects/PROJECT/global/images/family/FAMILY."""
    role: str = ""
    """The custom role's id, of whoever looks after runs."""
    public: bool = True
    """Machines have an address of their own to reach the world by, and nobody may reach them."""

    bucket_provider: str = "gcp"
    """Whose bucket it is. To another cloud's, machines are lent passes."""

    fast_subnets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Of other networks, for GPUDirect between machines of one leg (setup/fast.py); mostly none. By
    region those of gVNIC networks; by zone that of its machines' second card, and then those of
    its RoCE network."""

    @property
    def lent(self) -> bool:
        return self.bucket_provider != "gcp"

    @property
    def bucket_place(self) -> tuple[str, str]:
        return self.bucket_provider, self.bucket_location

    @property
    def account(self) -> str:
        return self.project

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        return self.zones


def decoded(data: bytes) -> Footprint:
    return recorded.decoded(data, Footprint, "gcp")


def bucket_of(store_url: str) -> tuple[str, str]:
    """The bucket and the prefix ("" or ending in a slash) of gs://bucket/prefix."""
    found = re.fullmatch(r"gs://([^/]+)(?:/(.*))?", store_url)
    if found is None:
        raise InvalidValue(
            f"{store_url} is no bucket of Cloud Storage", hint="--store gs://BUCKET/PREFIX"
        )
    prefix = (found[2] or "").strip("/")
    return found[1], prefix + "/" if prefix else ""


def is_home(store_url: str) -> bool:
    """Whether the store is Google's, and its machines are somebody there."""
    return store_url.startswith("gs://")


ANY = "REGION"
"""For the user to fill in: where nothing is set up yet, setup asks for one."""


def setup_command(store_url: str, *regions: str) -> str:
    """That can be pasted: what makes, or mends, what machines of a store need."""
    store = store_url if store_url.startswith(("gs://", "s3://")) else "gs://BUCKET"
    return " ".join([f"tradewind setup gcp --store {store}", *(f"--region {r}" for r in regions)])


def digest(store_url: str, size: int) -> str:
    """Hexadecimal, the same for whoever asks."""
    return hashlib.sha256(store_url.rstrip("/").encode()).hexdigest()[:size]


def owner_of(store_url: str) -> str:
    """Of the store: what machines are labelled with, and what their names begin with. Whoever
    shares a store shares its machines."""
    return digest(store_url, 8)


def name(store_url: str) -> str:
    """Of the network, the service account and the rest that setup makes for a store: at most 30
    characters, as a service account may have."""
    return PREFIX + digest(store_url, 10)
