"""Who has fetched what a run has left: no store tells when an object was read last.

A mark for each run, whose time of writing is what counts. Where it cannot be written nothing is
lost but that: whoever may only read fetches as before.
"""

from __future__ import annotations

from contextlib import suppress

from tradewind.base.errors import TradewindError
from tradewind.model import places
from tradewind.store.base import Store


def note(store: Store, run_id: str) -> None:
    with suppress(TradewindError):
        store.replace(places.read(run_id), b"{}")
