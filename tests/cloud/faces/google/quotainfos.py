"""Cloud Quotas, of the one quota that Compute Engine's regions do not tell: of newer GPUs on
demand, by family and region.

Off in a project until somebody enables it. As people have published its answers: one entry for all
regions that have the usual number, and one for each that has another. Known lies: there is no other
quota here, and entries for all families together are not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cloud.faces.google import places
from tests.cloud.faces.google.calls import GoogleCall
from tests.cloud.faces.google.problems import unknown
from tests.cloud.faces.google.state import State

QUOTA = "GPUS-PER-GPU-FAMILY-per-project-region"


class QuotaInfos:
    def __init__(self, state: State) -> None:
        self._state = state

    def does(self) -> dict[str, Callable[[GoogleCall], Any]]:
        return {"cloudquotas.projects.locations.services.quotaInfos.get": self.get}

    def get(self, call: GoogleCall) -> dict[str, Any]:
        name = call.params["name"]
        if name.rpartition("/")[2] != QUOTA:
            raise unknown(name)
        infos: list[dict[str, Any]] = []
        for gpu in places.GPUS.values():
            if not places.listed(gpu.quota):
                infos += self._of(gpu.quota)
        return {
            "name": name,
            "quotaId": QUOTA,
            "service": "compute.googleapis.com",
            "dimensions": ["region", "gpu_family"],
            "dimensionsInfos": infos,
        }

    def _of(self, quota: str) -> list[dict[str, Any]]:
        value = self._state.world.quotas.value
        by_region = {each: int(value(each, quota)) for each in places.ZONES}
        usual, family = max(by_region.values()), {"gpu_family": quota.removesuffix("_GPUS")}
        most = [each for each, limit in by_region.items() if limit == usual]
        found = [_info(family, usual, most)]
        for region, limit in by_region.items():
            if region not in most:
                found.append(_info({**family, "region": region}, limit, [region]))
        return found


def _info(dimensions: dict[str, str], limit: int, where: list[str]) -> dict[str, Any]:
    details = {"value": str(limit)}
    return {"dimensions": dimensions, "details": details, "applicableLocations": where}
