"""What a rented front is told to do. A controller puts it into the store, signed with the key of
the front's launch; the front carries out the newest, and goes on with the last one that it has."""

from __future__ import annotations

from msgspec import Struct

from tradewind.model.service import FrontSpec


class Backend(Struct, frozen=True):
    """A replica, as the front is to have it."""

    name: str
    host: str
    port: int
    at_once: int
    draining: bool


class FrontOrder(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    number: int
    """Each is the one before and one more: an older one that is put back is not carried out."""
    front: FrontSpec
    health: str
    backends: tuple[Backend, ...]
    in_time_s: float
    fronts: int = 1
    """So many share the rates of keys."""
    ending: bool = False
    """The port is free at once; running answers finish."""

    def without(self, name: str) -> bool:
        """Whether a replica gets no new requests by this."""
        return all(each.draining for each in self.backends if each.name == name)
