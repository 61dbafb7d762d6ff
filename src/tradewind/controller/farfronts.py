"""Rented fronts are told what to do through the store: an order each, signed with the key of its
machine's launch, so that nobody who can write there makes one send requests elsewhere.

An order is replaced only when what it says changes. Two controllers may do that at once: the one
that came later finds the other's in its next pass, and what both want is the same by then.
"""

from __future__ import annotations

from msgspec import json
from msgspec.structs import replace

from tradewind.base import signing
from tradewind.base.decoding import decoder
from tradewind.base.errors import TooLarge
from tradewind.base.steps import Steps
from tradewind.lifecycle.state import RunState
from tradewind.model import bounds, places
from tradewind.model.frontorder import FrontOrder
from tradewind.store.steps import Find, Replace

_decode = decoder(FrontOrder)


def key_of(state: RunState, seed: bytes) -> str | None:
    """Of the machine of a front's run; None: it has none now, that could be told anything."""
    if state.leg is None or state.phase != "active":
        return None
    request = state.requests[state.leg.number]
    return signing.key_of(seed, request.launch_id) if request.signed else ""


def find(run_id: str, key: str) -> Steps[FrontOrder | None]:
    """The newest that somebody with the key has given; anything else is none."""
    data: bytes | None
    try:
        data = yield Find(places.front_order(run_id), bounds.RECORD)
    except TooLarge:
        return None
    body = signing.opened(data, key, signing.FRONT) if data is not None else None
    return _decode(body) if body is not None else None


def tell(
    run_id: str, key: str, wanted: FrontOrder, before: FrontOrder | None, done: int
) -> Steps[FrontOrder]:
    """`done`: the number of the last that it says to have carried out."""
    same = before is not None and replace(wanted, number=before.number) == before
    if before is not None and same and before.number >= done:
        return before
    number = max(before.number if before is not None else 0, done) + 1
    order = replace(wanted, number=number)
    data = signing.signed(json.encode(order), key, signing.FRONT)
    yield Replace(places.front_order(run_id), data)
    return order
