"""What a replica says of itself: one object in its machine's heartbeat, and so a claim like it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from tradewind.model.plausible import Amount, Count, Label

Port = Annotated[int, Meta(ge=0, le=65535)]


class FrontTold(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a front's machine says of its front."""

    order: Count = 0
    """The newest that it has carried out."""
    finished: bool = False
    """It was told to end, and its last answer is given."""
    current: Count = 0
    queued: Count = 0
    held: Count = 0
    total: Count = 0
    """Since its HAProxy was started."""
    denied: Count = 0
    busy: dict[Label, Count] = {}
    """Requests at each replica that has some, by its name."""
    up: tuple[Label, ...] = ()


class Serving(Struct, frozen=True, kw_only=True, omit_defaults=True):
    state: Annotated[str, Meta(pattern="^(starting|warming|ready|draining)$")] = "starting"
    host: Label = ""
    """Where its engine listens: an address of the machine."""
    public: Label = ""
    """The machine's address in the world, where it has one."""
    port: Port = 0
    up_s: Amount = 0.0
    """Since the engine was started."""
    answered_s: Amount = 0.0
    """From the engine's start until its health check passed first; 0: it has not yet."""
    warm_s: Amount = 0.0
    """What warming up took after that."""
    running: Count | None = None
    """Requests at work, by the engine's own metrics; None: it does not tell."""
    waiting: Count | None = None
    cache: Amount | None = None
    """Share of its KV cache that is used."""
    tokens_in: Count = 0
    """Since the engine was started, where it counts them."""
    tokens_out: Count = 0
    front: FrontTold | None = None
    """Where its job is no engine but a front."""

    @property
    def news(self) -> tuple[object, ...]:
        """What is told at once when it changes, and not with the next heartbeat."""
        front = self.front
        if front is None:
            return (self.state,)
        return (self.state, front.order, front.finished, bool(front.held), bool(front.busy))
