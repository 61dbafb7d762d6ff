"""One run over two clouds whose store is Google's: on Google's spot machines, preempted, and then
on EC2's, which are nobody to Cloud Storage and hold passes. test_two_clouds.py is the other way
round."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cloud.faces.ec2.control import running as running_ec2
from tests.cloud.faces.google.control import running
from tests.providers.aws import machines
from tests.providers.gcp.machines import REGION, ZONE
from tests.providers.gcp.setups import plan_setup
from tests.system import google_books
from tests.system.books import the_store_is_paid
from tests.system.gated import Gated, shared, undisturbed
from tests.system.google import STORE, OnGoogle
from tests.system.rented import ROOT, Rented, variables
from tests.torch.test_tiny_gpt import weights
from tradewind import store as stores
from tradewind.api import rented, submit
from tradewind.ledger.postings import MACHINE
from tradewind.model import places
from tradewind.model.event import LegOver, LegRequested, LegUp
from tradewind.model.run import Way
from tradewind.providers.gcp.setup.make import Wish

pytestmark = [pytest.mark.system, pytest.mark.long]
STEPS, EACH = 80, 20
HOME, EC2_ZONE = "us-east-1", "use1-az1"
FROM_GOOGLE, FROM_AWS = 120_000, 90_000
"""Micro-dollars for a gigabyte that goes from one to the other."""
PRICES = {("gcp", ZONE): 0.02, ("aws", EC2_ZONE): 0.80}
"""Of spot machines. What is not named is not taken."""
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
    def __init__(self, google: OnGoogle, aws: Rented, gate: Path) -> None:
        super().__init__(google, gate)
        self.google, self.aws = google, aws

    def taken(self) -> None:
        """The machine at Google, with its notice, and there is nothing more in that zone."""
        over = len(self.events(LegOver))
        (row,) = [each for each in self.google.cloud.bill()["machines"] if each["ended"] is None]
        self.google.cloud.capacity(0, zone=row["zone"])
        self.google.cloud.interrupt(row["id"])
        self.attend(lambda: len(self.events(LegOver)) > over)
        self.attend(lambda: self.google.cloud.bill()["machines"][-1]["ended"] is not None)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    own = {
        "TRADEWIND_HOME": str(tmp_path / "home"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
    }
    with (
        running_ec2(tmp_path / "ec2", bodies="netns") as ec2,
        running(tmp_path / "google", bodies="netns") as cloud,
        variables(ec2.env | cloud.env | own),
        variables({"TRADEWIND_PLAIN_HTTP": f"{ec2.host},{cloud.host}"}),
        shared() as folder,
    ):
        cloud.dials(operation_s=0.1)
        plan_setup(Wish(store_url=STORE, regions=(REGION,))).carry_out()
        store = stores.open(STORE)
        made = machines.footprint(ec2, HOME, store_url=STORE)
        made = replace(made, bucket_region=REGION, bucket_provider="gcp")
        store.replace(places.footprint("aws"), made.encoded())
        env = dict(os.environ)
        google = OnGoogle(cloud, env, tmp_path, store)
        yield World(google, Rented(ec2, env, tmp_path, store), folder / "gate")


def submitted(world: World, folder: Path) -> str:
    """As `tradewind run work.yaml --on gcp,aws` does it, at the prices of this test."""
    job = world.job(folder, WORK, EACH)
    on = rented.On(world.google.store, ["gcp", "aws"])
    spec = submit.spec_of(submit.wanted(str(job / "work.yaml"), on), local=False, on=on)
    assert {way.provider for way in spec.ways if way.pass_s} == {"aws"}
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
    ways = tuple(priced(way) for way in chosen)
    return submit.submit(world.google.store, replace(spec, ways=ways), job)


def priced(way: Way) -> Way:
    micros = round(1e6 * PRICES[way.provider, way.zone])
    facts = replace(way.facts, listing_lag_s=5)  # the equipment tells at once what there is
    return replace(way, facts=facts, price=micros + way.disk_price + way.address_price)


@pytest.mark.long
def test_machines_of_ec2_at_a_bucket_of_google_s(world: World, tmp_path: Path) -> None:
    run_id = world.run_id = submitted(world, tmp_path)
    first = world.next(40)
    world.taken()
    second = world.next(60)
    assert [name.partition("-")[0] for name in (first, second)] == ["gcp", "aws"]
    world.go_to(STEPS + 1)
    world.attend(lambda: world.google.closed(run_id))
    assert world.google.loaded(run_id).state.outcome == "succeeded", world.google.told(run_id)
    asked = {event.request.leg: event.request.way for event in world.events(LegRequested)}
    up = [asked[event.leg] for event in world.events(LegUp)]
    assert [(way.provider, way.zone) for way in up] == list(PRICES)
    assert weights(world.google.output(run_id)) == undisturbed(tmp_path, STEPS)

    # Both bills, and what moves between the two; nothing is left, and no pass either.
    google_books.machines_are_paid(world.google, run_id)
    (row,) = world.aws.cloud.bill()["machines"]
    (machine,) = [
        p for p in world.google.cost(run_id).postings if p.kind == MACHINE and p.provider == "aws"
    ]
    seconds = max(int(row["ended"]) - int(row["launched"]), 60)
    prices = (800_000, up[1].address_price, up[1].disk_price)
    assert machine.micros == sum(-(-price * seconds // 3600) for price in prices)
    assert world.aws.cloud.left() == []
    told = world.google.cloud.bill()["s3"][row["address"]]
    assert min(told["bytes_in"], told["bytes_out"]) > 0
    the_store_is_paid(world.google, run_id, second, told, gb_in=FROM_AWS, gb_out=FROM_GOOGLE)
    assert world.google.store.list_after("passes/") == []
