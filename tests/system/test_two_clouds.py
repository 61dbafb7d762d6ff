"""One run over two clouds: on Google's spot machines, preempted; on EC2's, interrupted; and back
on Google's. There is one journal, one log and one ledger, which has what both clouds charge for,
traffic between them among it, and the weights are those of a training that nothing happened to.

The store is in S3. EC2's machines have a role there, Google's are lent passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google.control import Control, running
from tests.providers.aws import machines
from tests.providers.gcp.machines import OTHER_ZONE, ZONE
from tests.providers.gcp.machines import REGION as THERE
from tests.providers.gcp.setups import plan_setup
from tests.store.servers import ROLE
from tests.system import google_books
from tests.system.books import DISK, is_paid_and_gone, the_store_is_paid
from tests.system.gated import Gated, shared, tradewind, undisturbed
from tests.system.google import OnGoogle
from tests.system.rented import STORE, Rented, a_world, variables
from tests.torch.test_tiny_gpt import weights
from tradewind.api import rented, submit
from tradewind.model import places
from tradewind.model.event import LegOver, LegRequested, LegUp
from tradewind.model.run import Way
from tradewind.providers.gcp.setup.make import Wish

pytestmark = pytest.mark.system
STEPS, EACH = 160, 30
HOME = "us-east-1"
FROM_GOOGLE, FROM_AWS = 120_000, 90_000
"""Micro-dollars for a gigabyte that goes from one to the other."""
PRICES = {("gcp", ZONE): 0.02, ("aws", "use1-az1"): 0.80, ("gcp", OTHER_ZONE): 1.60}
"""Of spot machines, far enough apart for what saving from Google to S3 costs. What is not named is
not taken."""
WORK = f"""
name: tiny-gpt
work: {{on: 1xA10G, step: 10s, steps: {STEPS}, memory: 2GB}}
checkpoint: {{every: 5s, size: 3MB}}
limits: {{deadline: 3h, budget: $40, accelerators: [A10G, L4], max_accelerators: 1}}
run:
  command: python train.py --steps {STEPS}
  env: {{PATH: "BIN:/usr/bin:/bin", GATE: GATE}}
"""


class World(Gated):
    def __init__(self, aws: Rented, google: OnGoogle, gate: Path) -> None:
        super().__init__(aws, gate)
        self.aws, self.google = aws, google

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


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with (
        a_world(tmp_path, lends=True) as aws,
        running(tmp_path / "google", bodies="netns") as cloud,
        variables(cloud.env | {"TRADEWIND_PLAIN_HTTP": f"{aws.cloud.host},{cloud.host}"}),
        shared() as folder,
    ):
        made = machines.footprint(aws.cloud, HOME, store_url=STORE)
        made = replace(made, account=ROLE.split(":")[4], lending_role=ROLE)
        aws.store.replace(places.footprint("aws"), made.encoded())
        cloud.dials(operation_s=0.1)
        plan_setup(Wish(store_url=STORE, regions=(THERE,), bucket_region=HOME)).carry_out()
        google = OnGoogle(cloud, aws.env, tmp_path, aws.store)
        yield World(aws, google, folder / "gate")


def submitted(world: World, folder: Path) -> str:
    """As `tradewind run work.yaml --on gcp,aws` does it, at the prices of this test."""
    job = world.job(folder, WORK, EACH)
    on = rented.On(world.aws.store, ["gcp", "aws"])
    spec = submit.spec_of(submit.wanted(str(job / "work.yaml"), on), local=False, on=on)
    assert {way.provider for way in spec.ways} == {"gcp", "aws"}
    assert {way.provider for way in spec.ways if way.pass_s} == {"gcp"}
    chosen = [
        way for way in spec.ways if way.market == "spot" and (way.provider, way.zone) in PRICES
    ]
    names, began = world.aws.cloud.zone_names(), world.aws.cloud.now()
    for way in chosen:
        usd = PRICES[way.provider, way.zone]
        if way.provider == "gcp":
            world.google.cloud.spot_price(way.instance_type, way.zone, usd, at=began - 7200)
        else:
            world.aws.cloud.spot_price(way.instance_type, names[way.zone], usd, at=began - 7200)
    return submit.submit(world.aws.store, replace(spec, ways=tuple(map(priced, chosen))), job)


def priced(way: Way) -> Way:
    micros = round(1e6 * PRICES[way.provider, way.zone])
    facts = replace(way.facts, listing_lag_s=5)  # the equipment tells at once what there is
    return replace(way, facts=facts, price=micros + way.disk_price + way.address_price)


@pytest.mark.long
def test_there_and_back(world: World, tmp_path: Path) -> None:
    run_id = world.run_id = submitted(world, tmp_path)
    on = [world.next(40)]
    for step in (80, 120):
        world.taken(on[-1])
        on.append(world.next(step))
    world.go_to(STEPS + 1)
    world.attend(lambda: world.aws.closed(run_id))
    assert world.aws.loaded(run_id).state.outcome == "succeeded", world.aws.told(run_id)

    # One run: a journal that has all of its legs, and a log that has all that they said.
    asked = {event.request.leg: event.request.way for event in world.events(LegRequested)}
    up = [asked[event.leg] for event in world.events(LegUp)]
    assert [(way.provider, way.zone) for way in up] == list(PRICES)
    assert [name.partition("-")[0] for name in on] == [way.provider for way in up]
    over = [event.cause for event in world.events(LegOver)]
    assert over == ["interrupted", "interrupted", "finished"]
    assert {key.split("/")[1] for key in world.aws.store.list_after("runs/")} == {run_id}
    log = tradewind("logs", run_id, "--store", STORE)
    first, second = map(int, re.findall(r"resuming from step (\d+)", log))
    assert (first >= 40, second >= 80) == (True, True), log  # all that was done
    assert weights(log) == undisturbed(tmp_path, STEPS)

    # And one ledger, which has what both charge for, and what moves between them.
    is_paid_and_gone(world.aws, run_id, disk=DISK)
    google_books.machines_are_paid(world.google, run_id)
    told = world.aws.cloud.bill()["s3"]
    rows = {each["name"]: each for each in world.google.cloud.bill()["machines"]}
    for name in (on[0], on[2]):
        row = told[rows[name[name.index("tw-") :]]["address"]]
        assert row["bytes_in"] > 0
        assert row["bytes_out"] > 0
        the_store_is_paid(world.aws, run_id, name, row, gb_in=FROM_GOOGLE, gb_out=FROM_AWS)
    assert world.aws.store.list_after("passes/") == []
