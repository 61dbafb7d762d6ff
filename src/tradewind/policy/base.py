"""What a policy is told, and what it answers. A policy holds nothing between two questions."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from tradewind.model.run import Way

Spell = tuple[bool | None, float]
"""Whether it could be had, and for how many seconds that was seen; None: nobody looked."""

MEASURED, UNMEASURED = 0.02, 0.1
"""By what share work may take longer than thought: where its speed was measured, and before."""


class Option(Struct, frozen=True):
    """One way to hold, with its speed as measured by now.

    What is known of its capacity is `up`, since `up_s` seconds, and before that `history`. A
    benchmark sees every change; a run sees a launch that succeeded, a refusal, an interruption, and
    None in between. Nothing at all is fine too.
    """

    place: str
    market: str
    price: int
    """Micro-dollars an hour, all machines together, and for what they write into the store."""
    rate: float
    """Units of work a second."""
    start_s: float
    """From the decision to the first new step; 0 for what is held."""
    start_cost: int = 0
    """Micro-dollars for bringing the work there; 0 for what is held."""
    refused_s: float | None = None
    """How long ago it was last refused or taken; None: never, as far as is remembered."""
    way: Way | None = None
    """What it stands for, where it was made from one."""
    again_s: float | None = None
    """What `start_s` would be if it were not held; None: the same."""
    up: bool | None = None
    """Whether it can be had now; None: that is not known."""
    up_s: float = 0.0
    sure: bool = True
    """Whether it starts when it is asked to. In a queue nobody knows when that is."""
    history: tuple[Spell, ...] = ()
    """What was seen before that, the oldest first, without a break."""
    again_cost: int | None = None
    """What every later start there costs; None: the same as `start_cost`."""


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
    held_s: float = 0.0
    """For so long it has been."""
    tick_s: float = 600.0
    """The next question comes then; what is chosen is held until then, if it is not taken."""
    all_work: float = 0.0
    """Units of the whole work, of which `work` is left; 0: not known."""
    all_s: float = 0.0
    """Time from its start to its deadline; 0: not known."""
    doubt: float = 0.0
    """By this share the work may take longer than the rates say."""
    notice_s: float = 0.0
    """So long it may take until anybody knows that a machine was lost."""
    unsaved: float = 0.0
    """Units that were done and would be lost with what is held, if it were taken without notice."""
    between: float = 0.0
    """Units that are done from one save to the next: so many would be lost elsewhere."""
    late: int = 0
    """Micro-dollars that an hour past the deadline costs."""


class Choice(Struct, frozen=True, gc=False):
    option: int | None
    """None: hold nothing for now."""
    reason: str


Policy = Callable[[Known], Choice]
