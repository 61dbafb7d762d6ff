"""What `tradewind setup lambda` has made for one store, and where that is written down.

The record lies in the store itself (`providers/lambda.json`). It has no key in it: whoever looks
after the runs of a store brings one of the same account.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from tradewind.model import buckets
from tradewind.model import places as keys
from tradewind.providers import recorded
from tradewind.providers.lambda_cloud.facts import IMAGE
from tradewind.providers.lambda_cloud.names import owner_of

KEY = keys.footprint("lambda")

_Name = Annotated[str, Meta(pattern="^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
_Region = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,39}$")]


class Footprint(recorded.Record, frozen=True, kw_only=True):
    ssh_key: Annotated[str, Meta(min_length=1, max_length=256)]
    """Its name at Lambda, which launches no machine without one."""
    ssh_key_id: _Name
    """By which the account is known again: Lambda does not tell whose a key is."""
    regions: tuple[_Region, ...]
    image: _Name = IMAGE
    admit: Annotated[str, Meta(max_length=64)] = ""
    """The network from which machines let each other in; "": they cannot talk, and runs have one
    machine."""
    bucket_provider: str
    bucket_region: str = ""
    """Where the store's bucket is, for what traffic costs; "": not known."""

    @property
    def account(self) -> str:
        return self.ssh_key_id

    @property
    def places(self) -> dict[str, tuple[str, ...]]:
        """Lambda has no zones."""
        return dict.fromkeys(self.regions, ("",))


def decoded(data: bytes) -> Footprint:
    return recorded.decoded(data, Footprint, "lambda")


def setup_command(store_url: str, *regions: str) -> str:
    """That can be pasted: what makes, or mends, what machines of a store need."""
    known = store_url.partition("://")[0] in buckets.STORES
    store = store_url if known else "s3://BUCKET"
    return " ".join(
        [f"tradewind setup lambda --store {store}", *(f"--region {each}" for each in regions)]
    )


def called(store_url: str) -> str:
    """What is made at Lambda for a store: its SSH key and its firewall rule."""
    return f"tradewind-{owner_of(store_url)}"
