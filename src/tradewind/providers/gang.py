"""All machines of a request or none, where a cloud sells them one by one.

They are bought in the order of their ranks. The first that is refused ends the purchase: those that
were bought are given back, and the refusal is raised as the cloud's own. What could not be given
back carries the request's names, so it is listed under a leg that is over, and controllers end it.

Where an answer is lost in the middle, nobody knows what was bought, and nothing is given back here:
OutcomeUnknown. What there is comes to light in a listing, and the run ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from tradewind.base.errors import TradewindError
from tradewind.model.run import Listing, Machine, Request
from tradewind.providers.base import OutcomeUnknown


class Singles(Protocol):
    """A cloud that sells machines one by one (base.py says what each call promises)."""

    def list_machines(self) -> Listing: ...

    def launch_one(self, request: Request, rank: int, after: int, key: str) -> Machine: ...

    def terminate(self, machine_ids: Sequence[str]) -> None: ...


class Gang:
    """A Provider made of them. As safe from several threads as they are."""

    def __init__(self, singles: Singles) -> None:
        self._singles = singles

    def list_machines(self) -> Listing:
        return self._singles.list_machines()

    def terminate(self, machine_ids: Sequence[str]) -> None:
        self._singles.terminate(machine_ids)

    def launch(self, request: Request, after: int, key: str = "") -> Sequence[Machine]:
        if found := self._bought(request):
            return found
        bought: list[Machine] = []
        for rank in range(request.way.nodes):
            try:
                bought.append(self._singles.launch_one(request, rank, after, key))
            except OutcomeUnknown as error:
                raise _unknown(request, rank, error) from error
            except TradewindError:  # nothing was done, as all others say
                self._give_back(bought)
                raise
        return bought

    def _bought(self, request: Request) -> list[Machine]:
        """By an earlier try, as far as it is listed."""
        machines = self._singles.list_machines().machines
        found = [each for each in machines if each.launch_id == request.launch_id]
        if found and {each.rank for each in found} != set(range(request.way.nodes)):
            raise OutcomeUnknown(
                f"of {request.way.nodes} machines of {request.launch_id} {len(found)} are listed"
            )
        return sorted(found, key=lambda each: each.rank)

    def _give_back(self, machines: Sequence[Machine]) -> None:
        if machines:
            with suppress(
                TradewindError
            ):  # controllers end what is listed under a leg that is over
                self._singles.terminate([each.machine_id for each in machines])


def _unknown(request: Request, rank: int, error: OutcomeUnknown) -> OutcomeUnknown:
    if request.way.nodes == 1:
        return error
    return OutcomeUnknown(
        f"{error.message} (machine {rank + 1} of {request.way.nodes})", hint=error.hint
    )
