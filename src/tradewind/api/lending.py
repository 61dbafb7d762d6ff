"""Passes to a store, lent as whoever uses this computer: for machines that are nobody to it.

Which role is lent where a kind of bucket needs one, the record of that bucket's own cloud says:
`tradewind setup aws --lend` has made it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tradewind.model import buckets

if TYPE_CHECKING:
    from tradewind.store.base import Store
    from tradewind.store.lending import Lender, Pass


class Lending:
    """Nothing is asked of anybody before a pass is wanted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._lender: Lender | None = None

    def __call__(self, run_id: str, for_s: int) -> Pass:
        return self.lender.lend(run_id, for_s)

    @property
    def lender(self) -> Lender:
        """InvalidValue: for this store no pass can be lent; it says what would do."""
        from tradewind.store import lending

        with self._lock:
            if self._lender is None:
                self._lender = lending.lender(self._store.url, role=self._role())
            return self._lender

    def _role(self) -> str:
        from tradewind.api import clouds
        from tradewind.providers import registry
        from tradewind.providers.cloud import Lends

        home = buckets.home(self._store.url)
        if home not in registry.RENTED:
            return ""
        cloud = registry.rentable(home)
        record = clouds.footprint(self._store, cloud)
        return cloud.lent_role(record) if record is not None and isinstance(cloud, Lends) else ""
