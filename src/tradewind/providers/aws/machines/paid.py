"""What spot machines are charged at: their price changes while they live, by the hour ("the Spot
price that's in effect at the beginning of each instance-hour", AWS, 2017-11-28).

Of those that live it is asked every ten minutes, and once more when they have ended. EC2 takes no
money for one that it took itself within its first hour. What could not be asked for is asked again
with the next listing; until then a machine cost what it was bought at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Any

from msgspec.structs import replace

from tradewind.base import clock
from tradewind.base.errors import TradewindError
from tradewind.model.run import Machine
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits import prices, zones
from tradewind.providers.aws.machines.listing import machine_id

_FREE_S = _HOUR_S = 3600
_NEWS_S = 600.0
_TAKEN = "Server.SpotInstanceTermination"


class Paid:
    def __init__(self, account: Account) -> None:
        self._account = account
        self._known: dict[str, tuple[tuple[int, int], ...]] = {}
        self._final: set[str] = set()
        """Of `_known`, machines that have ended."""
        self._asked: dict[str, float] = {}
        """By region, when prices of those that live were last asked for."""

    def priced(
        self,
        region: str,
        instances: Sequence[Mapping[str, Any]],
        machines: Sequence[Machine],
        now_s: int,
    ) -> list[Machine]:
        """`now_s`: when EC2 listed them."""
        spot = {
            machine_id(region, each["InstanceId"]): each
            for each in instances
            if each.get("InstanceLifecycle") == "spot"
        }
        ours = [machine for machine in machines if machine.machine_id in spot]
        asked = [machine for machine in ours if self._is_due(region, machine)]
        if asked:
            self._ask(region, asked, spot, now_s)
        return [
            replace(machine, prices=self._known.get(machine.machine_id, ())) for machine in machines
        ]

    def _is_due(self, region: str, machine: Machine) -> bool:
        if machine.ended_s is not None:
            return machine.machine_id not in self._final
        return clock.epoch() - self._asked.get(region, -inf) >= _NEWS_S

    def _ask(
        self,
        region: str,
        machines: Sequence[Machine],
        spot: Mapping[str, Mapping[str, Any]],
        now_s: int,
    ) -> None:
        first = datetime.fromtimestamp(min(m.launched_s for m in machines), UTC)
        kinds = {spot[machine.machine_id]["InstanceType"] for machine in machines}
        try:
            told = prices.since(self._account, region, kinds, first - timedelta(hours=1))
            there = zones.zones(self._account, region).values()
            names = {zone.name: zone.id for zone in there}
        except TradewindError:
            return
        if any(machine.ended_s is None for machine in machines):
            self._asked[region] = clock.epoch()
        for machine in machines:
            name, instance = machine.machine_id, spot[machine.machine_id]
            zone = instance.get("Placement", {}).get("AvailabilityZone", "")
            history = told.get((instance["InstanceType"], names.get(zone, "")), [])
            free = ((machine.launched_s, 0),)
            found = free if _was_free(instance, machine) else held(machine, history, now_s)
            if found:
                self._known[name] = found
                if machine.ended_s is not None:
                    self._final.add(name)


def _was_free(instance: Mapping[str, Any], machine: Machine) -> bool:
    taken = instance.get("StateReason", {}).get("Code") == _TAKEN
    return taken and (machine.ended_s or 0) - machine.launched_s < _FREE_S


def held(
    machine: Machine, history: Sequence[prices.SpotPrice], now_s: int = 0
) -> tuple[tuple[int, int], ...]:
    """From when on it cost how much, until now or its end: each hour of its own costs, by the
    second, what the price was when that hour began. Empty: nobody tells what it cost at its
    launch."""
    found: list[tuple[int, int]] = []
    first, end = machine.launched_s, now_s if machine.ended_s is None else machine.ended_s
    for hour_s in range(first, max(end, first + 1), _HOUR_S):
        before = [each for each in history if each.at_s <= hour_s]
        if not before:
            return ()
        price = int(before[-1].price)
        if not found or found[-1][1] != price:
            found.append((hour_s, price))
    return tuple(found)
