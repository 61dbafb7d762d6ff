"""Setting AWS up for a store and undoing that, as `tradewind setup aws` does, with any account."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tradewind import store as stores
from tradewind.api import clouds, setup
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.cloud import CLOUD
from tradewind.providers.aws.footprint import Footprint
from tradewind.providers.aws.setup.look import Look
from tradewind.providers.aws.setup.make import Wish


def plan_setup(wish: Wish, account: Account | None = None) -> setup.Plan:
    return setup.plan_setup(CLOUD, wish.store_url, Look(account or Account(), wish))


def plan_teardown(
    store_url: str,
    regions: Sequence[str] = (),
    *,
    delete_bucket: bool = False,
    account: Account | None = None,
) -> setup.Removal:
    look = Look(account or Account(), Wish(store_url=store_url, regions=tuple(regions)))
    return setup.plan_teardown(CLOUD, store_url, look, delete_store=delete_bucket)


def written(store_url: str, bucket_region: str) -> Footprint | None:
    """What is set up for a store, by its own record."""
    opened = stores.open(store_url, env={**os.environ, "AWS_REGION": bucket_region})
    found: Footprint | None = clouds.footprint(opened, CLOUD)
    return found
