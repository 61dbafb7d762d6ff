"""Whether somebody looks after the runs of a store: by the age of the sign that a controller
renews, or of what a tick of this computer has remembered."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from msgspec import json

from tradewind import clock
from tradewind.controller import persist
from tradewind.controller.loop import LEASE
from tradewind.decoding import UNREADABLE
from tradewind.errors import NotFound, TooLarge, TradewindError
from tradewind.model import bounds
from tradewind.ownfiles import home
from tradewind.store.base import Dated, Store

LONG_S = 300.0
"""Ticks of a crontab may be so far apart."""


def ago_s(store: Store) -> float | None:
    """None: nobody ever did, or it cannot be told."""
    ages = (_lease_age(store), _tick_age(store))
    return min((age for age in ages if age is not None), default=None)


def is_alone(store: Store, since: datetime) -> bool:
    """For long, though there is something to look after `since` then. A store that cannot be asked,
    or has no clock, accuses nobody; and where this computer's clock says that somebody does,
    nothing is written to ask the store's."""
    if not isinstance(store, Dated) or (clock.now() - since).total_seconds() < LONG_S:
        return False
    with suppress(TradewindError):
        try:
            if abs(clock.epoch() - store.written_s(LEASE)) < LONG_S:
                return False
        except NotFound:
            pass
        ago = ago_s(store)
        return ago is None or ago >= LONG_S
    return False


def _lease_age(store: Store) -> float | None:
    """By the store's clock alone."""
    if not isinstance(store, Dated):
        return None
    key = f"probe/{clock.new_id('lease')}"
    try:
        json.decode(store.get(LEASE, most=bounds.RECORD))
        written = store.written_s(LEASE)
        store.replace(key, b"now")
        return max(store.written_s(key) - written, 0.0)
    except (NotFound, TooLarge, *UNREADABLE):
        return None
    finally:
        store.delete(key)


def _tick_age(store: Store) -> float | None:
    try:
        return clock.epoch() - persist.place(home(), store.url).stat().st_mtime
    except OSError:
        return None
