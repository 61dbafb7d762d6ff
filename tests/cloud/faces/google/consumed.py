"""Quotas of TPU VMs, as Service Usage tells them: a metric for each generation, its usual limit,
and those of the zones that have another. Known lies: real metrics are more, and called otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cloud.faces.google import places, tputypes
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.state import State

_TPU = "tpu.googleapis.com"


class Consumed:
    def __init__(self, state: State) -> None:
        self._state = state

    def does(self) -> dict[str, Callable[[GoogleCall], Any]]:
        return {"serviceusage.services.consumerQuotaMetrics.list": self.metrics}

    def metrics(self, call: GoogleCall) -> dict[str, Any]:
        parent = call.params["parent"]
        if not parent.endswith(f"/{_TPU}"):
            return {}
        return {"metrics": [self._metric(parent, each) for each in tputypes.LIMITS]}

    def _metric(self, parent: str, quota: str) -> dict[str, Any]:
        name = f"{parent}/consumerQuotaMetrics/{_TPU}%2F{quota}"
        limit = {"name": f"{name}/limits/%2Fproject%2Fzone", "unit": "1/{project}/{zone}"}
        return {
            "name": name,
            "metric": f"{_TPU}/{quota}",
            "displayName": quota,
            "consumerQuotaLimits": [{**limit, "quotaBuckets": self._buckets(quota)}],
        }

    def _buckets(self, quota: str) -> list[dict[str, Any]]:
        by_zone = {
            zone: int(self._state.world.quotas.value(region, quota))
            for region in places.ZONES
            for zone in places.zones(region)
        }
        usual = max(by_zone.values())
        others = [(zone, limit) for zone, limit in by_zone.items() if limit != usual]
        return [_bucket(usual), *(_bucket(limit, zone=zone) for zone, limit in others)]


def _bucket(limit: int, **dimensions: str) -> dict[str, Any]:
    return {"effectiveLimit": str(limit), "dimensions": dimensions}
