"""What a machine needs of the store before it can ask for anything itself."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tradewind.model.run import Request


class Luggage(Struct, frozen=True, kw_only=True):
    kit: str
    """A link to it."""
    sha256: str
    tell: tuple[str, ...]
    """Links by which machines may leave word that they could not begin, one a rank."""
    first_pass: str = ""
    """A link to the pass that they begin with, where they are nobody to the store: the pass itself
    is in nothing that a machine is told. Empty: they are somebody."""
    environment: dict[str, str] = {}


Pack = Callable[[Request, str], Luggage]
"""For a request's machines, of this architecture."""
