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
from tests.system.gated import shared, undisturbed
from tests.system.google import STORE, OnGoogle
from tests.system.rented import ROOT, Rented, variables
from tests.system.two_clouds import FROM_AWS, FROM_GOOGLE, HOME, World
from tests.torch.test_tiny_gpt import weights
from tradewind import store as stores
from tradewind.ledger.postings import MACHINE
from tradewind.model import places
from tradewind.model.event import LegRequested, LegUp
from tradewind.providers.gcp.setup.make import Wish

pytestmark = [pytest.mark.system, pytest.mark.long]
STEPS, EACH = 80, 20
PRICES = {("gcp", ZONE): 0.02, ("aws", "use1-az1"): 0.80}


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
        yield World(google, google, Rented(ec2, env, tmp_path, store), folder / "gate")


@pytest.mark.long
def test_machines_of_ec2_at_a_bucket_of_google_s(world: World, tmp_path: Path) -> None:
    run_id = world.run_id = world.submitted(tmp_path, STEPS, EACH, PRICES, lent="aws")
    first = world.next(40)
    world.taken(first)
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
