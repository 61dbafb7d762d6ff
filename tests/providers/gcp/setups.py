"""Setting Google Cloud up for a store and undoing that, as `tradewind setup gcp` does; and with
what goes wrong on the way."""

from __future__ import annotations

import os
from typing import Any

from tradewind import store as stores
from tradewind.api import clouds, setup
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.cloud import CLOUD
from tradewind.providers.gcp.footprint import Footprint
from tradewind.providers.gcp.setup.look import Look
from tradewind.providers.gcp.setup.make import Wish
from tradewind.providers.rest import Rest


def plan_setup(wish: Wish, google: Google | None = None) -> setup.Plan:
    return setup.plan_setup(CLOUD, wish.store_url, Look(google or Google(), wish))


def plan_teardown(
    store_url: str, *, delete_bucket: bool = False, google: Google | None = None
) -> setup.Removal:
    look = Look(google or Google(), Wish(store_url=store_url))
    return setup.plan_teardown(CLOUD, store_url, look, delete_store=delete_bucket)


def written(store_url: str) -> Footprint | None:
    """What is set up for a store, by its own record."""
    found: Footprint | None = clouds.footprint(stores.open(store_url, env=os.environ), CLOUD)
    return found


class Cut(Exception):
    """The process died here."""


class CutOff(Google):
    """Dies after so many changes; None: never. It counts them."""

    def __init__(self, after: int | None = None) -> None:
        super().__init__()
        self.after, self.changes = after, 0

    def rest(self, service: str) -> Rest:
        found = super().rest(service)
        if "send" not in vars(found):
            send = found.send

            def counted(method: str, path: str, *more: Any) -> Any:
                told = send(method, path, *more)
                asking = ":getIamPolicy", ":testIamPermissions"
                if not path.endswith(asking):
                    self.changes += 1
                    if self.changes == self.after:
                        raise Cut
                return told

            vars(found)["send"] = counted
        return found
