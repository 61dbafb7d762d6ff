"""Whose affair it is: to each run its own referee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tradewind.model.run import Request
from tradewind.sim.referee import Referee

if TYPE_CHECKING:
    from tradewind.sim.cloud import SimCloud


class Court:
    def __init__(self, referees: Mapping[str, Referee]) -> None:
        self._referees = referees

    def of(self, run_id: str) -> Referee:
        return self._referees[run_id]

    def watch(self, clouds: Mapping[str, SimCloud]) -> None:
        for referee in self._referees.values():
            referee.rented.clouds = clouds

    def created(self, key: str, data: bytes) -> None:
        if key[:5] == "runs/":
            _, run_id, kind, *rest = key.split("/")
            self._referees[run_id].created(kind, rest, data)

    def replaced(self, key: str, data: bytes) -> None:
        if key[:7] == "passes/":
            self._referees[key.split("/")[1]].lends()
            return
        _, run_id, kind, *rest = key.split("/")
        self._referees[run_id].replaced(kind, rest, data)

    def buys(self, request: Request) -> None:
        self._referees[request.run_id].buys(request)

    def sells(self, request: Request) -> None:
        self._referees[request.run_id].sells(request)
