"""TPU slices on the equipment (tests/cloud), as several processes open them."""

from __future__ import annotations

import json
import os
from typing import Any

from msgspec.structs import replace

from tests.providers.conformance import Place
from tests.providers.gcp.machines import packed, way
from tradewind.model.run import Request, Way
from tradewind.providers.gcp.api import Compute, Google
from tradewind.providers.gcp.facts import facts_of
from tradewind.providers.gcp.footprint import decoded
from tradewind.providers.gcp.provider import Both, ComputeProvider
from tradewind.providers.gcp.tpu.api import Tpu
from tradewind.providers.gcp.tpu.kinds import by_worker
from tradewind.providers.gcp.tpu.provider import TpuProvider

BY_WORKERS = {1: "tpu-v4-8", 2: "tpu-v4-16", 3: "tpu-v4-24"}
"""Slices of so many workers."""


def slice_way(workers: int = 2, market: str = "on_demand", **more: Any) -> Way:
    kind = BY_WORKERS[workers]
    fixed = way(instance_type=kind, market=market, disk_gb=0, disk_price=0, nodes=1)
    made = by_worker(replace(fixed, price=6_000_000, facts=facts_of(market, kind)))
    return replace(made, **more)


class SlicePlace(Place):
    def request(self, leg: int = 1, nodes: int = 1, run_id: str = "run-1") -> Request:
        """So many machines are a slice of so many workers."""
        asked = super().request(leg, nodes, run_id)
        return replace(asked, way=slice_way(nodes, self.way.market))


def open_tpu(given: str) -> Both:
    """With the variables in this process's own environment: google-auth looks nowhere else."""
    env, record, owner = json.loads(given)
    os.environ.update(env)
    made = decoded(record.encode())
    google, zones = Google(), [zone for some in made.zones.values() for zone in some]
    return Both(
        ComputeProvider(Compute(google, made.project), made, owner, packed),
        TpuProvider(Tpu(google, made.project, zones), made, owner, packed),
    )
