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

from tests.cloud.faces.google.control import running
from tests.providers.aws import machines
from tests.providers.gcp.machines import OTHER_ZONE, ZONE
from tests.providers.gcp.machines import REGION as THERE
from tests.providers.gcp.setups import plan_setup
from tests.store.servers import ROLE
from tests.system import google_books
from tests.system.books import DISK, is_paid_and_gone, the_store_is_paid
from tests.system.gated import shared, tradewind, undisturbed
from tests.system.google import OnGoogle
from tests.system.rented import STORE, a_world, variables
from tests.system.two_clouds import FROM_AWS, FROM_GOOGLE, HOME, World
from tests.torch.test_tiny_gpt import weights
from tradewind.model import places
from tradewind.model.event import LegOver, LegRequested, LegUp
from tradewind.providers.gcp.setup.make import Wish

pytestmark = pytest.mark.system
STEPS, EACH = 160, 30
PRICES = {("gcp", ZONE): 0.02, ("aws", "use1-az1"): 0.80, ("gcp", OTHER_ZONE): 1.60}
"""Far enough apart for what saving from Google to S3 costs."""


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
        yield World(aws, google, aws, folder / "gate")


@pytest.mark.long
def test_there_and_back(world: World, tmp_path: Path) -> None:
    run_id = world.run_id = world.submitted(tmp_path, STEPS, EACH, PRICES, lent="gcp")
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
