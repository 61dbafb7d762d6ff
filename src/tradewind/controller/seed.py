"""The store's seed, from which the keys of all its machines are made (tradewind/base/signing.py).

Whoever looks after a store's runs reads it; whoever comes first makes it. Machines in a cloud have
no right to read it. Without it nobody could tell what machines really say, so a store whose seed
cannot be read is not looked after.
"""

from __future__ import annotations

from tradewind.base import clock
from tradewind.base.errors import BadFile, NotFound
from tradewind.base.signing import SEED, SEED_BYTES
from tradewind.model import bounds
from tradewind.store.base import Store


def find(store: Store) -> bytes:
    """Empty where there is none: then no machine of this store signs."""
    try:
        found = store.get(SEED, most=bounds.POINTER)
    except NotFound:
        return b""
    if len(found) != SEED_BYTES:
        raise BadFile(
            f"{SEED} in {store.url} is damaged: it has {len(found)} bytes and not {SEED_BYTES}",
            hint="restore it from a version of the bucket or a backup; deleted, a new one is made,"
            " and the machines that are up now are given up as lost",
        )
    return found


def find_or_make(store: Store) -> bytes:
    found = find(store)
    if not found:
        store.create(SEED, clock.secret(SEED_BYTES))
        found = find(store)
    return found
