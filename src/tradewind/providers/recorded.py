"""What is set up at a cloud, as it is recorded in the store: JSON, which people may read too."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, json

from tradewind.base.decoding import UNREADABLE
from tradewind.base.errors import BadFile
from tradewind.model import places

F = TypeVar("F", bound=Struct)


def encoded(footprint: Struct) -> bytes:
    return json.format(json.encode(footprint), indent=1)


def decoded(data: bytes, kind: type[F], cloud: str) -> F:
    try:
        return json.decode(data, type=kind)
    except UNREADABLE as error:
        raise BadFile(
            f"{places.footprint(cloud)} in the store cannot be read: {error}",
            hint=f"tradewind setup {cloud} writes it again",
        ) from None
