"""Of the ways in which a run could be done, those that an account can really take, and why it
cannot take the others.

A launch that must fail is not attempted: the way is left out, with the reason and what to do about
it. What cannot be learned is held against nothing: such a way stays, with a warning.
"""

from __future__ import annotations

from msgspec import Struct

from tradewind.model.run import Way

KINDS = {
    "closed": "nothing at all can be rented in the account as it is",
    "no_setup": "nothing of ours is in the region",
    "region_off": "the account has not switched the region on",
    "not_offered": "no zone of the region, or not this one, offers the type",
    "zone_off": "the zone is not there, or not up, for this account",
    "no_subnet": "setup has made no subnet in the zone",
    "no_driver": "our images have no driver for what the type computes with",
    "no_spot": "the type is not sold on the spot market",
    "quota": "the quota is smaller than what is needed, however little is in use",
    "in_use": "the quota would do, if others did not use so much of it",
    "apart": "machines of one request cannot reach each other",
    "no_image": "its machines are no containers, and the job names an image",
    "not_read": "what nodes there are may not be read, and nobody has told",
    "price": "spot costs as much as on-demand, which is available",
}


class Reason(Struct, frozen=True, kw_only=True):
    way: Way
    kind: str
    """One of KINDS."""
    words: str
    hint: str = ""

    @property
    def lasting(self) -> bool:
        """It will be so until somebody does something about it."""
        return self.kind not in ("in_use", "price")


class Usable(Struct, frozen=True, kw_only=True):
    ways: tuple[Way, ...]
    """In the order they came, spot prices as they are now. Those of other providers among them."""
    rejected: tuple[Reason, ...] = ()
    warnings: tuple[str, ...] = ()
    """What could not be learned, and what is slower than it need be."""
    scores: dict[str, int] = {}
    """Spot placement scores by `Way.what`, best first: information, and never in the way."""
