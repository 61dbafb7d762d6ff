"""What a machine needs of the store before it can ask for anything itself."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tradewind.model.run import Request


class Luggage(Struct, frozen=True, kw_only=True):
    kit: str
    """A link to it."""
    sha256: str
    tell: str
    """A link by which it may leave word that it could not begin."""
    environment: dict[str, str] = {}


Pack = Callable[[Request, str], Luggage]
"""For a request's machines, of this architecture."""
