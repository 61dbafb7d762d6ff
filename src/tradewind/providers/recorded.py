"""What is set up at a cloud, as it is recorded in the store: JSON, which people may read too."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile
from tradewind.model import places

F = TypeVar("F", bound="Record")


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A footprint (providers/cloud.py). No credentials are in it: who shares the store reads it."""

    def encoded(self) -> bytes:
        return json.format(json.encode(self), indent=1)


def differs(cloud: str, what: str, again: str) -> BadFile:
    """From what setup writes. Whoever may write the store may write there, and whoever makes the
    next pass may do more at that cloud than they. `again`: the command that mends it."""
    return BadFile(
        f"{places.footprint(cloud)} in the store is not what setup has written: {what}",
        hint=f"nothing is launched by it; {again} writes it again",
    )


def decoded(data: bytes, kind: type[F], cloud: str) -> F:
    try:
        return json.decode(data, type=kind)
    except UNREADABLE as error:
        raise BadFile(
            f"{places.footprint(cloud)} in the store cannot be read: {error}",
            hint=f"tradewind setup {cloud} writes it again",
        ) from None
