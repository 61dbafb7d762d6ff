"""One run on EC2, on Lambda and on this computer: taken away from each, it goes on at the next, and
ends with the weights of a training that nothing happened to. There is one journal, one log, and one
ledger, which has what both clouds and the store's cloud charge for.

EC2's machines have a role, Lambda's are lent passes. The bucket is in another region than both. The
job goes as far as the test lets it, so that no machine is done before it is taken; Lambda's clock
stands still but for what the test adds, so that its minutes are not a matter of luck.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.cloud import server
from tests.cloud.control import Control
from tests.providers.aws import machines
from tests.providers.lambda_cloud import machines as small_machines
from tests.store.servers import ROLE
from tests.system.books import DISK, USED, is_paid_and_gone, the_store_is_paid
from tests.system.gated import Gated, shared, tradewind, undisturbed
from tests.system.rented import STORE, Rented, a_world
from tests.torch.test_tiny_gpt import weights
from tradewind.api import fleet, rented, submit
from tradewind.base.ownfiles import home
from tradewind.ledger.postings import MACHINE
from tradewind.model import places
from tradewind.model.event import LegOver, LegRequested, LegUp
from tradewind.providers.base import Refused
from tradewind.providers.local.provider import LocalProvider
from tradewind.providers.rest import Rest
from tradewind.store import meter

pytestmark = pytest.mark.system
STEPS, EACH = 240, 50
REGION = "us-west-2"
BETWEEN_REGIONS, TO_THE_WORLD = 20_000, 90_000
"""Micro-dollars for a gigabyte that leaves a bucket of us-east-1."""
WORK = f"""
name: tiny-gpt
work: {{on: 1xA10G, step: 10s, steps: {STEPS}, memory: 2GB}}
checkpoint: {{every: 5s, size: 3MB}}
limits: {{deadline: 3h, budget: $40, accelerators: [A10G, A10], max_accelerators: 1}}
run:
  command: python train.py --steps {STEPS}
  env: {{PATH: "BIN:/usr/bin:/bin", GATE: GATE}}
"""


class World(Gated):
    def __init__(self, aws: Rented, small: Control, gate: Path) -> None:
        super().__init__(aws, gate)
        self.aws, self.small = aws, small


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    face = "tests.cloud.faces.lambda_cloud"
    with (
        a_world(tmp_path, lends=True) as aws,
        server.running(tmp_path / "lambda", face, Control, "netns") as small,
        shared() as folder,
    ):
        made = machines.footprint(aws.cloud, REGION, store_url=STORE)
        made = replace(made, account=ROLE.split(":")[4], lending_role=ROLE)
        aws.store.replace(places.footprint("aws"), made.encoded())
        there = replace(small_machines.footprint(small), bucket_region="us-east-1")
        aws.store.replace(places.footprint("lambda"), there.encoded())
        hosts = f"{aws.cloud.host},{small.host}"
        env = {**small_machines.env(small.url), "TRADEWIND_PLAIN_HTTP": hosts}
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        small.on_demand_price(small_machines.KIND, 0.2)  # less than spot, so that it is preferred
        small.dials(pending_s=0, pace_s={})
        small.hold()
        monkeypatch.setattr(Rest, "at_s", _told_s)
        try:
            yield World(aws, small, folder / "gate")
        finally:
            here = fleet.local(aws.store)
            here.terminate([each.machine_id for each in here.list_machines().machines])


def _told_s(rest: Rest) -> int:
    """Nothing is added for what has passed here since: that clock stands still."""
    assert rest._told is not None
    return int(rest._told[0])


def submitted(world: World, folder: Path) -> str:
    """As `tradewind run work.yaml --on aws,lambda,local` does it."""
    job = world.job(folder, WORK, EACH)
    path = job / "work.yaml"
    on = rented.On(world.aws.store, ["aws", "lambda", "local"])
    spec = submit.spec_of(submit.wanted(str(path), on), local=False, on=on)
    assert {way.provider for way in spec.ways} == {"aws", "lambda", "local"}
    # The equipment tells at once what there is. After two interruptions within minutes the policy
    # may well think spot machines too dear, and here they are to be taken.
    ways = [
        replace(w, facts=replace(w.facts, listing_lag_s=min(w.facts.listing_lag_s, 5)))
        for w in spec.ways
        if (w.provider, w.market) != ("aws", "on_demand")
    ]
    return submit.submit(world.aws.store, replace(spec, ways=tuple(ways)), job)


def taken(world: World, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its provider does it; there is nothing of the kind to be had there afterwards. The job has
    ended when this returns."""
    over = len(world.events(LegOver))
    provider = machine.partition("-")[0]
    if provider == "local":

        def busy(*_: object) -> None:
            raise Refused("no_capacity", "somebody else needs this computer")

        monkeypatch.setattr(LocalProvider, "launch", busy)
        fleet.local(world.aws.store).interrupt([machine], notice_s=3600)
    elif provider == "aws":
        (row,) = world.aws.cloud.bill()["machines"]
        world.aws.cloud.capacity(0, zone=row["zone"])
        world.aws.cloud.interrupt(row["id"], notice_s=3600)
    else:  # without notice, and paid until somebody terminates it
        (row,) = world.small.bill()["machines"]
        world.small.capacity(0)
        world.small.advance(100)
        world.small.ask_to_end(row["id"])
        world.attend(lambda: world.small.left() == [])
        world.small.advance(60)  # until it is shown so
    world.attend(lambda: len(world.events(LegOver)) > over)


def test_taken_away_at_each_of_three(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aws, small = world.aws, world.small
    run_id = world.run_id = submitted(world, tmp_path)
    on = [world.next(60)]
    for step in (120, 160, 210):
        taken(world, on[-1], monkeypatch)
        on.append(world.next(step))
    world.go_to(STEPS + 1)
    world.attend(lambda: aws.closed(run_id))
    assert aws.loaded(run_id).state.outcome == "succeeded", aws.told(run_id)

    # One run: a journal that has all of its legs, and a log that has all that they said.
    asked = {event.request.leg: event.request.way for event in world.events(LegRequested)}
    up = [asked[event.leg] for event in world.events(LegUp)]
    assert [way.provider for way in up] == ["local", "lambda", "aws", "aws"]
    assert [name.partition("-")[0] for name in on] == [way.provider for way in up]
    assert [way.market for way in up[2:]] == ["spot", "spot"]
    over = [event.cause for event in world.events(LegOver)]
    assert over == ["interrupted", "stopped", "interrupted", "finished"]
    assert {key.split("/")[1] for key in aws.store.list_after("runs/")} == {run_id}
    log = tradewind("logs", run_id, "--store", STORE)
    first, second, third = map(int, re.findall(r"resuming from step (\d+)", log))
    # Without notice, it is what was saved; else all that was done.
    assert (first >= 60, second, third >= 160) == (True, 100, True), log
    assert weights(log) == undisturbed(tmp_path, STEPS)

    # And one ledger, which has what both clouds charge for, and what the bucket's does.
    is_paid_and_gone(aws, run_id, disk=DISK, moved=BETWEEN_REGIONS)
    told, asked_here = aws.cloud.bill()["s3"], meter.total(home() / "used", "runs")
    (row,) = small.bill()["machines"]
    assert (row["seconds"], small.left()) == (120, [])
    posted = {each.machine_id: each for each in aws.cost(run_id).postings if each.kind == MACHINE}
    assert {*posted} == {*on}
    assert posted[on[1]].micros == round(1e6 * row["usd"])
    assert posted[on[0]].micros == 0
    the_store_is_paid(aws, run_id, on[1], told[row["address"]], gb_out=TO_THE_WORLD, lost=1)
    # Of this computer the books have all that was asked from here, by the machine and by us.
    here = {name: told[""][name] - getattr(asked_here, name) for name in USED}
    the_store_is_paid(aws, run_id, on[0], here, gb_out=TO_THE_WORLD)
    assert aws.store.list_after("passes/") == []
