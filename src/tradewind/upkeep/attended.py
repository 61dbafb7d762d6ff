"""Whether somebody looks after the runs of a store: by the age of the sign that a controller
renews, or of what a tick of this computer has remembered.

One that watches renews its sign every few seconds and removes it when it ends in order: a sign that
is overdue is of one that was killed, and that is known after seconds. Ticks leave no sign, and may
be minutes apart.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from tradewind.base import clock
from tradewind.base.errors import NotFound, TooLarge, TradewindError
from tradewind.base.ownfiles import home
from tradewind.controller import loop, persist
from tradewind.controller.loop import LEASE
from tradewind.store.base import Dated, Store

LONG_S = 300.0
"""Ticks of a crontab may be so far apart."""
SOON_S = 30.0
"""A pass that buys machines takes its time, and no sign is renewed meanwhile."""


@dataclass(frozen=True, slots=True)
class Attention:
    ago_s: float | None
    """When somebody last looked; None: nobody ever did, or it cannot be told."""
    patience_s: float
    """How long whoever it was may take to look again."""

    @property
    def is_overdue(self) -> bool:
        return self.ago_s is None or self.ago_s >= self.patience_s


def attention(store: Store) -> Attention:
    signed_s, ticked_s = _sign_age(store), _tick_age(store)
    patience_s = _patience_s(store)
    if signed_s is None or patience_s is None:
        return Attention(ticked_s, LONG_S)
    # One that watches remembers as a tick does: only what came after its death is somebody else's.
    if signed_s >= patience_s and ticked_s is not None and signed_s - ticked_s >= patience_s:
        return Attention(ticked_s, LONG_S)
    return Attention(signed_s, patience_s)


def is_alone(store: Store, since: datetime) -> bool:
    """For too long, though there is something to look after `since` then. A store that cannot be
    asked, or has no clock, accuses nobody; and where this computer's clock says that somebody does,
    nothing is written to ask the store's."""
    quiet_s = (clock.now() - since).total_seconds()
    if not isinstance(store, Dated) or quiet_s < SOON_S:
        return False
    with suppress(TradewindError):
        patience_s = _patience_s(store)
        if patience_s is None:
            return quiet_s >= LONG_S and attention(store).is_overdue
        signed_s = abs(clock.epoch() - store.written_s(LEASE))
        return min(quiet_s, signed_s) >= patience_s and attention(store).is_overdue
    return False


def _patience_s(store: Store) -> float | None:
    """With whoever left a sign; None: there is none."""
    try:
        found = loop.sign(store)
    except (NotFound, TooLarge):
        return None
    return None if found is None else max(SOON_S, found.dead_after_s)


def _sign_age(store: Store) -> float | None:
    """By the store's clock alone."""
    if not isinstance(store, Dated):
        return None
    key = f"probe/{clock.new_id('lease')}"
    try:
        written = store.written_s(LEASE)
        store.replace(key, b"now")
        return max(store.written_s(key) - written, 0.0)
    except NotFound:
        return None
    finally:
        store.delete(key)


def _tick_age(store: Store) -> float | None:
    try:
        return clock.epoch() - persist.place(home(), store.url).stat().st_mtime
    except OSError:
        return None
