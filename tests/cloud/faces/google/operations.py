"""Operations of Compute Engine, as they are asked after: get, wait, list.

Known lies: they are remembered for ever (the real ones for two weeks at least), and `wait` answers
the moment that one is done, or after a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cloud.face import NotYet
from tests.cloud.faces.google import listing
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.problems import unknown
from tests.cloud.faces.google.state import Operation, State

_PATIENCE_S = 60.0


class Operations:
    def __init__(self, state: State) -> None:
        self._state = state

    def does(self) -> dict[str, Callable[[GoogleCall], Any]]:
        found: dict[str, Callable[[GoogleCall], Any]] = {
            "compute.globalOperations.aggregatedList": self.aggregated
        }
        for scope in ("zone", "region", "global"):
            found[f"compute.{scope}Operations.get"] = lambda call: self._named(call).told
            found[f"compute.{scope}Operations.wait"] = self.wait
            found[f"compute.{scope}Operations.list"] = self.list_
        return found

    def _scope(self, call: GoogleCall) -> str:
        for name in ("zone", "region"):
            if name in call.params:
                return f"{name}s/{call.params[name]}"
        return "global"

    def _named(self, call: GoogleCall) -> Operation:
        name = call.params["operation"]
        found = self._state.operations.get(name)
        if found is None:
            by_number = [
                each for each in self._state.operations.values() if each.told["id"] == name
            ]
            found = by_number[0] if by_number else None
        if found is None or (found.project, found.scope) != (call.project, self._scope(call)):
            raise unknown(f"projects/{call.project}/{self._scope(call)}/operations/{name}")
        return found

    def wait(self, call: GoogleCall) -> dict[str, Any]:
        found = self._named(call)
        now = self._state.world.now()
        call.until = now + _PATIENCE_S if call.until is None else call.until
        if found.told["status"] != "DONE" and now < call.until:
            raise NotYet
        return found.told

    def list_(self, call: GoogleCall) -> dict[str, Any]:
        scope = self._scope(call)
        there = [
            each.told
            for each in self._state.operations.values()
            if (each.project, each.scope) == (call.project, scope)
        ]
        told = listing.page(listing.kept(there, call.params.get("filter", "")), call.params)
        return {"kind": "compute#operationList", **told}

    def aggregated(self, call: GoogleCall) -> dict[str, Any]:
        there = [
            (each.scope, each.told)
            for each in self._state.operations.values()
            if each.project == call.project
        ]
        told = listing.aggregated(there, "operations", (), call.params)
        return {"kind": "compute#operationAggregatedList", **told}
