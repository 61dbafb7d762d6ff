"""What a policy is told, and what it answers. A policy holds nothing between two questions."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tradewind.model.run import Way


class Option(Struct, frozen=True):
    """One way to hold, with its speed as measured by now."""

    place: str
    market: str
    price: int
    """Micro-dollars an hour, all machines together."""
    rate: float
    """Units of work a second."""
    start_s: float
    """From the decision to the first new step; 0 for what is held."""
    start_cost: int = 0
    refused_s: float | None = None
    """How long ago it was last refused or taken; None: never, as far as is remembered."""
    way: Way | None = None
    """What it stands for, where it was made from one."""


class Known(Struct, frozen=True):
    work: float
    """Units left to do."""
    options: tuple[Option, ...]
    time_s: float | None = None
    """Until the deadline; None where there is none."""
    budget: int | None = None
    """Micro-dollars that may still be spent; None where that is not limited."""
    holding: int | None = None
    """The option that is held."""


class Choice(Struct, frozen=True, gc=False):
    option: int | None
    """None: hold nothing for now."""
    reason: str


Policy = Callable[[Known], Choice]
