"""A whole world of Google Cloud on this computer: Compute Engine with bodies, its Cloud Storage,
a store that `tradewind setup gcp` has set up there, and runs on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.cloud.faces.google.control import Control, running
from tests.providers.gcp import machines
from tests.providers.gcp.setups import plan_setup
from tests.system.rented import ROOT, Runs, variables
from tradewind import store as stores
from tradewind.catalog import ratecard
from tradewind.model.run import Spec, Way
from tradewind.providers import charges
from tradewind.providers.gcp.facts import FACTS
from tradewind.providers.gcp.labels import MOST, shortened
from tradewind.providers.gcp.setup.make import Wish

STORE = "gs://runs-of-a-team/tw"
REGION = machines.REGION
ZONES = (machines.ZONE, machines.OTHER_ZONE)
SPOT, ON_DEMAND, DISK_GB = 300_000, 750_000, 100
HOME = ("gcp", REGION)
ADDRESS = charges.address_hour(ratecard.card(), HOME)
DISK = charges.disk_hour(ratecard.card(), HOME, DISK_GB)
RATES = charges.store(ratecard.card(), HOME, HOME, kept_s=86_400)
DELAY_S = 5
"""In which a new machine is listed: the equipment does so at once."""


class OnGoogle(Runs[Control]):
    provider = "gcp"

    def ways(self, nodes: int) -> tuple[Way, ...]:
        return tuple(
            machines.way(
                facts=replace(FACTS, listing_lag_s=DELAY_S),
                market=market,
                zone=zone,
                price=price + address + DISK,
                nodes=nodes,
                rate=5.0,
                disk_gb=DISK_GB,
                disk_price=DISK,
                address_price=address,
                rates=RATES,
                start_s=20.0,
            )
            for market, price, address in (
                ("spot", SPOT, ADDRESS // 2),
                ("on_demand", ON_DEMAND, ADDRESS),
            )
            for zone in ZONES
        )

    def bills(self, spec: Spec) -> Spec:
        """The equipment asks what the catalog says, and the run is told how it tells."""
        began = self.cloud.now()
        for way in spec.ways:
            if way.provider == self.provider:
                usd = (way.price - way.disk_price - way.address_price) / 1e6
                if way.market == "spot":
                    self.cloud.spot_price(way.instance_type, way.zone, usd, at=began - 7200)
                else:
                    self.cloud.on_demand_price(way.instance_type, usd)
        ways = [replace(w, facts=replace(w.facts, listing_lag_s=DELAY_S)) for w in spec.ways]
        return replace(spec, ways=tuple(ways))

    def billed(self, run_id: str) -> dict[str, dict[str, Any]]:
        """Rows of the bill, by the names of the run's machines."""
        called = f"-{shortened(run_id, MOST)}-"
        rows = self.cloud.bill()["machines"]
        return {each["name"]: each for each in rows if called in each["name"]}

    def machines(self, run_id: str) -> list[str]:
        """Of the leg that goes on, as Compute Engine names them."""
        return [each[each.index("tw-") :] for each in self.loaded(run_id).state.claimed]


@contextmanager
def a_world(folder: Path) -> Iterator[OnGoogle]:
    with ExitStack() as stack:
        cloud = stack.enter_context(running(folder / "google", bodies="netns"))
        env = cloud.env | {
            "TRADEWIND_HOME": str(folder / "home"),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }
        stack.enter_context(variables(env))
        cloud.dials(operation_s=0.1)
        for zone in ZONES:
            cloud.spot_price(machines.KIND, zone, SPOT / 1e6, at=cloud.now() - 7200)
        cloud.on_demand_price(machines.KIND, ON_DEMAND / 1e6)
        plan_setup(Wish(store_url=STORE, regions=(REGION,))).carry_out()
        yield OnGoogle(cloud, env, folder, stores.open(STORE))
