"""What a provider does for us, whoever it is.

- `list_machines` gives every machine with our owner's tag, those that ended lately among them. It
  may lag: a machine shows up within `Facts.listing_lag_s`, and may for a while be shown as it was.
- `launch` buys all machines of a request or none. Each carries run, leg, rank and launch id as
  tags, and the id goes along as the idempotency token where the provider has one.
  Their ids begin with the provider's name, so that no two providers have the same.
- `terminate` may be repeated, and does not mind machines that are gone.
- Where launches may wait (`Facts.queues`), `launch` answers with no machines, listings have what
  waits as queued, and `withdraw` takes it back: it may be repeated, too.

Refused         nothing was bought or done: no_capacity, no_quota, not_allowed, not_found, throttled
OutcomeUnknown  it may have been done or not
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from tradewind.base.errors import SourceFailed, TradewindError
from tradewind.model.circle import Circle
from tradewind.model.finding import Finding
from tradewind.model.run import Listing, Machine, Request, Way

KINDS = ("no_capacity", "no_quota", "not_allowed", "not_found", "throttled")


class Refused(SourceFailed):
    def __init__(self, kind: str, message: str, *, hint: str | None = None) -> None:
        assert kind in KINDS
        super().__init__(message, hint=hint)
        self.kind = kind


class OutcomeUnknown(SourceFailed):
    pass


class Provider(Protocol):
    def list_machines(self) -> Listing: ...

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        """`after` is the commit that recorded the request: supervisors read on from there. `key` is
        what they sign with: it is for these machines alone, and goes into no store."""

    def terminate(self, machine_ids: Sequence[str]) -> None: ...


@runtime_checkable
class Queue(Protocol):
    """A provider whose launches may wait."""

    def withdraw(self, launch_ids: Sequence[str]) -> None: ...


class Leftover(Struct, frozen=True, kw_only=True):
    """What lies about at a provider and need not be kept."""

    kind: str
    name: str
    words: str
    run_id: str = ""
    """Only once this run is over; empty: whatever becomes of any run."""


@runtime_checkable
class Upkeep(Protocol):
    """What a provider may do besides: tell how it is, and tidy up. Neither rents anything."""

    def checks(self) -> Sequence[Finding]:
        """Whether it can be rented from here, and what is in the way."""

    def leftovers(self) -> Sequence[Leftover]: ...

    def remove(self, leftover: Leftover) -> bool:
        """False: it is needed after all, or is another's just now."""


@runtime_checkable
class Tidy(Protocol):
    """A provider that makes more than machines for a leg."""

    def tidy(self) -> None:
        """After a pass: removes what legs have left that were over when machines were last listed.
        What cannot be removed now is tried again, and is a leftover at last."""


@runtime_checkable
class Admits(Protocol):
    """A provider whose networks can say who reaches a machine: without that it has no services."""

    def admit(self, region: str, circle: Circle) -> str:
        """Makes what keeps this circle there, or finds it; a launch whose request has a circle does
        it by itself. Its name at the provider. May be repeated."""

    def dismiss(self, name: str) -> bool:
        """Of this circle nothing is left, anywhere. False: machines are behind it still."""


@runtime_checkable
class Quotes(Protocol):
    """A provider whose prices change while runs go on."""

    def prices(self, ways: Sequence[Way]) -> Mapping[str, int]:
        """By `Way.what`: micro-dollars an hour for one machine, bare, as it costs now. What is not
        told costs what was planned."""


# The same as steps (see tradewind/base/steps.py).


class ListMachines(Struct, frozen=True, gc=False):
    provider: str


class ListAll(Struct, frozen=True, gc=False):
    """All of these at once: a listing of each, or why there is none."""

    providers: tuple[str, ...]


Listed = Mapping[str, Listing | TradewindError]
"""What `ListAll` answers, by provider."""


class AskPrices(Struct, frozen=True):
    """Answered with what these ways cost now, as in `Quotes`."""

    ways: tuple[Way, ...]


class LaunchMachines(Struct, frozen=True):
    request: Request
    after: int
    key: str = ""


class WithdrawLaunches(Struct, frozen=True):
    provider: str
    launch_ids: tuple[str, ...]


class TerminateMachines(Struct, frozen=True):
    provider: str
    machine_ids: tuple[str, ...]


class DismissCircle(Struct, frozen=True):
    """Answered with whether nothing is left of it."""

    provider: str
    name: str
