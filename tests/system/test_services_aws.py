"""A service on rented machines, on the emulated EC2 whose machines are processes: replicas and
front come up, are taken and killed, and cost to the micro-dollar what the equipment says."""

from __future__ import annotations

import http.client
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from msgspec import json
from msgspec.structs import replace

from tests.eventually import eventually
from tests.providers.aws import machines
from tests.served import engine
from tests.system.books import DISK
from tests.system.rented import ADDRESS, ZONES, Rented, a_world
from tradewind.api import fleet, served, servedon
from tradewind.api.services import Service
from tradewind.base import signing
from tradewind.ledger.postings import MACHINE
from tradewind.model import places
from tradewind.model.service import FrontGone, FrontReady, ReplicaGone, ServiceSpec
from tradewind.providers.aws.footprint import KEY, SERVICE, decoded

pytestmark = pytest.mark.system

FILE = """\
name: chat
serve: {{model: llama-3.1-8b, rate: 1/s, input: 200, output: 50, ttft: 1s, warm: 2}}
limits: {{accelerators: [A10G]}}
run:
  command: python engine.py $PORT
service:
  port: 8080
  fronts: {fronts}
  allow: [10.0.0.0/8, 203.0.113.0/24]
  at_once: 4
  drain: 30s
  up_within: 120s
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rented]:
    monkeypatch.setattr(fleet, "CLOUD_PASS_S", 1.0)
    with a_world(tmp_path) as made:
        whole = decoded(made.store.get(KEY))
        (region,) = whole.regions
        network = whole.regions[region]
        subnets = {zone: network.subnets[zone] for zone in ZONES}
        regions = {region: replace(network, subnets=subnets)}
        made.store.replace(KEY, replace(whole, regions=regions).encoded())
        yield made


def brought_up(world: Rented, folder: Path, fronts: int = 1) -> Service:
    """As `tradewind serve chat.yaml --on aws` does it."""
    job = folder / "job"
    job.mkdir()
    shutil.copy(engine.__file__, job / "engine.py")
    (job / "chat.yaml").write_text(FILE.format(fronts=fronts))
    on = servedon.on(world.store, ["aws"])
    plans = served.planned(job / "chat.yaml", on=on)
    assert plans.best is not None
    kind = plans.best.pools[0].instance_type
    for zone in world.cloud.zone_names().values():
        world.cloud.spot_price(kind, zone, 0.4, at=world.cloud.now() - 7200)
    spec = served.spec_of(plans, on=on)
    for way in (*spec.ways, *spec.front_ways):
        if way.market == "on_demand":
            bare = way.price - way.disk_price - way.address_price
            world.cloud.on_demand_price(way.instance_type, bare / 1e6)
    served.check(spec)
    return Service(served.submit(world.store, at_once_listed(spec), job), world.store)


def at_once_listed(spec: ServiceSpec) -> ServiceSpec:
    """The equipment tells at once what there is."""

    def listed(ways: Any) -> Any:
        return tuple(replace(w, facts=replace(w.facts, listing_lag_s=5)) for w in ways)

    return replace(spec, ways=listed(spec.ways), front_ways=listed(spec.front_ways))


def ask(url: str, body: dict[str, Any]) -> tuple[int, bytes]:
    there = urlsplit(url)
    assert there.hostname
    link = http.client.HTTPConnection(there.hostname, there.port or 80, timeout=60)
    try:
        link.request("POST", "/v1/completions", json.encode(body))
        answer = link.getresponse()
        return answer.status, answer.read()
    finally:
        link.close()


def machines_of(world: Rented, run_id: str) -> list[str]:
    return [f"i-{name}" for name in world.instances(run_id)]


def groups(world: Rented) -> list[Any]:
    filters = [{"Name": "tag-key", "Values": [SERVICE]}]
    found: list[Any] = world.cloud.client("ec2").describe_security_groups(Filters=filters)[
        "SecurityGroups"
    ]
    return found


def is_paid_and_gone(world: Rented, service: Service) -> None:
    assert world.cloud.left() == []
    assert groups(world) == []
    told = world.cloud.bill()
    bill = {each["id"]: each for each in told["machines"]}
    runs = [*service.state.every, *service.state.every_front]
    postings = {
        f"i-{posting.machine_id.rpartition('-i-')[2]}": posting
        for run_id in runs
        for posting in world.cost(run_id).postings
        if posting.kind == MACHINE
    }
    assert set(bill) == set(postings)
    for name, row in bill.items():
        seconds = max(int(row["ended"]) - int(row["launched"]), 60)
        price = round(1e6 * row["usd"] / row["seconds"] * 3600)
        due = 0 if row["waived"] else -(-price * seconds // 3600)
        due += -(-ADDRESS * seconds // 3600) - (-DISK * seconds // 3600)
        assert postings[name].micros == due, (row, postings[name])
    assert service.cost().micros == sum(world.cost(run_id).micros for run_id in runs) > 0


def until(service: Service, holds: Callable[[Service], bool], within_s: float = 400.0) -> None:
    assert service.wait(holds, within_s), told(service)


def told(service: Service) -> str:
    lines = [f"{at:%H:%M:%S} {event}"[:600] for at, event in service.events]
    return "\n".join([*lines, service.trouble])


def test_up_taken_and_gone(world: Rented, tmp_path: Path) -> None:
    service = brought_up(world, tmp_path)
    until(service, lambda each: len(each.ready) >= 2 and bool(each.url))
    (group,) = groups(world)
    rules = {
        (rule["FromPort"], rule["ToPort"]): (
            sorted(each["CidrIp"] for each in rule["IpRanges"]),
            [each["GroupId"] for each in rule["UserIdGroupPairs"]],
        )
        for rule in group["IpPermissions"]
    }
    assert rules == {
        (8000, 8000): ([], [group["GroupId"]]),
        (8080, 8080): (["10.0.0.0/8", "203.0.113.0/24"], []),
    }
    assert ask(service.url, {"prompt": "x"})[0] == 200
    # Somebody who may write into the store, and does not hold the key, changes nothing.
    (front,) = service.state.fronts
    place = places.front_order(front)
    right = world.store.get(place)
    order = json.decode(right[:-65])
    for each in order["backends"]:
        each["host"], each["port"] = "127.0.0.1", 9
    order["number"] += 100
    forged = signing.signed(json.encode(order), "0" * 64, signing.FRONT)
    # A replica is taken under load, with two minutes of notice, and another comes.
    done, lost, over = [0], list[Any](), Event()

    def load() -> None:
        while not over.is_set():
            try:
                status, said = ask(service.url, {"prompt": "x", "takes_s": 0.2})
            except (OSError, http.client.HTTPException) as error:
                lost.append(error)
                continue
            done[0] += status == 200
            if status != 200:
                lost.append((status, said))

    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(load)
        try:
            world.store.replace(place, forged)
            spot = next(each for each in service.ready if each.market == "spot")
            (machine,) = machines_of(world, spot.run_id)
            world.cloud.interrupt(machine, notice_s=120)
            until(service, lambda each: spot.run_id not in each.state.replicas)
            until(service, lambda each: len(each.ready) >= 2)
            had = done[0]
            assert eventually(lambda: done[0] > had + 5, within_s=120)
        finally:
            over.set()
    assert lost == []
    assert world.store.get(place) != forged
    assert service.stop(400), told(service)
    assert service.outcome == "stopped"
    is_paid_and_gone(world, service)


@pytest.mark.long
def test_a_front_that_dies_is_replaced_and_the_other_goes_on(world: Rented, tmp_path: Path) -> None:
    service = brought_up(world, tmp_path, fronts=2)
    until(service, lambda each: len(each.ready) >= 2 and len(each.urls) == 2)
    first, second = service.state.staying_fronts
    urls = dict(zip((first.run_id, second.run_id), service.urls, strict=True))
    (machine,) = machines_of(world, first.run_id)
    world.cloud.crash(machine)
    for _ in range(5):
        assert ask(urls[second.run_id], {"prompt": "x"})[0] == 200
    until(service, lambda each: first.run_id not in each.state.fronts)
    until(service, lambda each: len(each.urls) == 2 and len(each.ready) >= 2)
    assert urls[second.run_id] in service.urls
    for url in service.urls:
        assert ask(url, {"prompt": "x"})[0] == 200
    kinds = [type(event) for _, event in service.events]
    assert kinds.count(FrontReady) == 3
    assert kinds.count(ReplicaGone) == 0
    assert kinds.count(FrontGone) == 1
    assert service.stop(400), told(service)
    is_paid_and_gone(world, service)


@pytest.mark.long
def test_by_the_command(world: Rented, tmp_path: Path) -> None:
    """Brought up by `tradewind serve`, kept by a controller in the background, stopped by
    `services stop`."""
    job = tmp_path / "job"
    job.mkdir()
    shutil.copy(engine.__file__, job / "engine.py")
    path = job / "chat.yaml"
    path.write_text(FILE.format(fronts=1).replace("warm: 2", "warm: 1"))
    for zone in world.cloud.zone_names().values():
        world.cloud.spot_price(machines.KIND, zone, 0.4, at=world.cloud.now() - 7200)
    world.cloud.on_demand_price("m7i.large", 0.1008)

    def tradewind(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "tradewind", *words, "--store", world.store.url],
            capture_output=True, text=True, timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    said = tradewind("serve", str(path), "--on", "aws", "--detach", "--yes")
    assert "1 machine, m7i.large or the like" in said
    service = Service("chat", world.store)
    assert eventually(lambda: bool(service.refresh().ready and service.url), within_s=600)
    assert ask(service.url, {"prompt": "x"})[0] == 200
    shown = tradewind("services", "show", "chat")
    assert service.url in shown
    assert "f1" in shown
    assert "engine: listening" in tradewind("services", "logs", "chat")
    tradewind("services", "stop", "chat")
    assert service.refresh().state.phase == "closed"
    is_paid_and_gone(world, service)
    assert "f1" in tradewind("services", "cost", "chat")
