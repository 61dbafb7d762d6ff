"""A training on Google's machines and on EC2's, whichever of the two has the store."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.cloud.faces.google.control import Control
from tests.system.gated import Gated
from tests.system.google import OnGoogle
from tests.system.rented import Rented
from tradewind.api import rented, submit
from tradewind.model.event import LegOver
from tradewind.model.run import Way

HOME = "us-east-1"
"""Of EC2's machines."""
FROM_GOOGLE, FROM_AWS = 120_000, 90_000
"""Micro-dollars for a gigabyte that goes from one to the other."""
_WORK = """
name: tiny-gpt
work: {{on: 1xA10G, step: 10s, steps: {steps}, memory: 2GB}}
checkpoint: {{every: 5s, size: 3MB}}
limits: {{deadline: 3h, budget: $40, accelerators: [A10G, L4], max_accelerators: 1}}
run:
  command: python train.py --steps {steps}
  env: {{PATH: "BIN:/usr/bin:/bin", GATE: GATE}}
"""

Prices = Mapping[tuple[str, str], float]
"""Of spot machines, by provider and zone. What is not named is not taken."""


class World(Gated):
    def __init__(self, runs: OnGoogle | Rented, google: OnGoogle, aws: Rented, gate: Path) -> None:
        """`runs`: those of the two in whose store they are."""
        super().__init__(runs, gate)
        self.google, self.aws = google, aws

    def taken(self, machine: str) -> None:
        """With the cloud's notice, and there is nothing more in that zone."""
        over = len(self.events(LegOver))
        if machine.startswith("gcp-"):
            cloud: Control | None = self.google.cloud
            (row,) = [e for e in self.google.cloud.bill()["machines"] if e["ended"] is None]
            self.google.cloud.capacity(0, zone=row["zone"])
            self.google.cloud.interrupt(row["id"])
        else:
            cloud = None
            (row,) = self.aws.cloud.bill()["machines"]
            self.aws.cloud.capacity(0, zone=row["zone"])
            self.aws.cloud.interrupt(row["id"], notice_s=3600)
        self.attend(lambda: len(self.events(LegOver)) > over)
        if cloud is not None:
            self.attend(lambda: cloud.bill()["machines"][-1]["ended"] is not None)

    def submitted(self, folder: Path, steps: int, each: int, prices: Prices, *, lent: str) -> str:
        """As `tradewind run work.yaml --on gcp,aws` does it, at these prices. `lent`: whose
        machines hold passes."""
        job = self.job(folder, _WORK.format(steps=steps), each)
        on = rented.On(self.runs.store, ["gcp", "aws"])
        spec = submit.spec_of(submit.wanted(str(job / "work.yaml"), on), local=False, on=on)
        assert {way.provider for way in spec.ways} == {"gcp", "aws"}
        assert {way.provider for way in spec.ways if way.pass_s} == {lent}
        chosen = [
            way for way in spec.ways if way.market == "spot" and (way.provider, way.zone) in prices
        ]
        names, began = self.aws.cloud.zone_names(), self.aws.cloud.now()
        for way in chosen:
            usd = prices[way.provider, way.zone]
            cloud: Any = self.google.cloud if way.provider == "gcp" else self.aws.cloud
            zone = way.zone if way.provider == "gcp" else names[way.zone]
            cloud.spot_price(way.instance_type, zone, usd, at=began - 7200)
        ways = tuple(_priced(way, prices) for way in chosen)
        return submit.submit(self.runs.store, replace(spec, ways=ways), job)


def _priced(way: Way, prices: Prices) -> Way:
    micros = round(1e6 * prices[way.provider, way.zone])
    facts = replace(way.facts, listing_lag_s=5)  # the equipment tells at once what there is
    return replace(way, facts=facts, price=micros + way.disk_price + way.address_price)
