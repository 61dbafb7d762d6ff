"""Networks for GPUDirect on the equipment: made, used by machines, removed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google import fabric
from tests.cloud.faces.google.control import Control
from tests.providers.gcp.machines import packed, way
from tests.providers.gcp.setups import Cut, CutOff, plan_setup, plan_teardown, written
from tradewind.base.errors import InvalidValue, NotFound
from tradewind.model.finding import BROKEN
from tradewind.model.run import Request, Way
from tradewind.providers.base import Refused
from tradewind.providers.gcp.api import Compute, Google
from tradewind.providers.gcp.checks.places import network_checks
from tradewind.providers.gcp.cloud import CLOUD
from tradewind.providers.gcp.footprint import Footprint, name
from tradewind.providers.gcp.limits.usable import usable
from tradewind.providers.gcp.provider import ComputeProvider
from tradewind.providers.gcp.setup import fast
from tradewind.providers.gcp.setup.calls import Calls
from tradewind.providers.gcp.setup.make import Wish, wish_of

_stores = count()
REGION, ZONE = "us-central1", "us-central1-b"
SUITED = {"tcpx": "a3-highgpu-8g", "tcpxo": "a3-megagpu-8g", "rdma": "a4-highgpu-8g"}


@pytest.fixture
def store(cloud: Control) -> Iterator[str]:
    cloud.dials(operation_s=0.0)
    yield f"gs://fast-{next(_stores)}/tw"
    cloud.dials(operation_s=0.02)


def made(store: str, *regions: str, **wishes: Any) -> Footprint:
    record = plan_setup(Wish(store_url=store, regions=regions, **wishes)).carry_out()
    assert isinstance(record, Footprint)
    return record


def there(cloud: Control, store: str, what: str) -> list[str]:
    """What there is of a store, without what all its names begin with."""
    called = name(store)
    names = [each.rpartition("/")[2] for each in cloud.shelf(what) if f"/{called}" in each]
    return sorted(each.removeprefix(called).strip("-") for each in names)


def test_a_network_for_each_card(cloud: Control, store: str) -> None:
    record = made(store, REGION, "europe-west4", gpudirect="tcpx")
    called = name(store)
    cards = [f"gpu-{number}" for number in range(1, 5)]
    names = tuple(f"{called}-{each}" for each in cards)
    assert record.fast_subnets == {"europe-west4": names, REGION: names}
    assert there(cloud, store, "networks") == ["", *cards]
    assert there(cloud, store, "subnetworks") == sorted(2 * ["", *cards])
    with cloud.client("compute") as compute:
        asked = {"project": cloud.project}
        network = compute.networks().get(**asked, network=names[2]).execute()
        rule = compute.firewalls().get(**asked, firewall=f"{names[2]}-inside").execute()
    assert (network["mtu"], network["autoCreateSubnetworks"]) == (8244, False)
    assert rule["sourceRanges"] == ["10.80.0.0/20", "10.80.16.0/20"]
    assert rule["allowed"] == [{"IPProtocol": "all"}]


def test_they_stay_and_become_more(cloud: Control, store: str) -> None:
    first = made(store, REGION, gpudirect="tcpx")
    google = CutOff()
    again = plan_setup(Wish(store_url=store), google)
    assert (again.recorded, again.prepared.changes, google.changes) == (True, 0, 0)
    more = made(store, gpudirect="tcpxo")
    assert len(more.fast_subnets[REGION]) == 8
    assert more.fast_subnets[REGION][:4] == first.fast_subnets[REGION]
    wider = made(store, "us-east4")
    assert wider.fast_subnets["us-east4"] == wider.fast_subnets[REGION]
    both = made(store, gpudirect="rdma")
    assert set(both.fast_subnets) == {REGION, "us-east4", ZONE, "us-east4-b"}
    assert plan_setup(Wish(store_url=store)).recorded
    plan_teardown(store).carry_out()
    for what in ("networks", "subnetworks", "firewalls"):
        assert there(cloud, store, what) == []


def test_a_network_with_rdma_is_a_zones(cloud: Control, store: str) -> None:
    record = made(store, REGION, "europe-west4", gpudirect=f"rdma:{ZONE}")
    called = name(store)
    own = tuple(f"{called}-rdma-{ZONE}-{card}" for card in range(8))
    assert record.fast_subnets == {ZONE: (f"{called}-second", *own)}
    assert there(cloud, store, "networks") == ["", f"rdma-{ZONE}", "second"]
    assert there(cloud, store, "firewalls") == ["inside", "second-inside"]
    with cloud.client("compute") as compute:
        asked = {"project": cloud.project, "network": f"{called}-rdma-{ZONE}"}
        network = compute.networks().get(**asked).execute()
    assert network["networkProfile"].endswith(f"/{ZONE}-vpc-roce")
    assert network["mtu"] == 8896


def test_all_zones_that_have_it_where_none_is_named(cloud: Control, store: str) -> None:
    record = made(store, REGION, "europe-west4", gpudirect="rdma")
    assert set(record.fast_subnets) == {ZONE, "europe-west4-b"}
    assert set(record.fast_subnets) < set(fabric.ROCE_ZONES)


@pytest.mark.parametrize("gpudirect", SUITED)
def test_machines_are_launched_with_them(cloud: Control, store: str, gpudirect: str) -> None:
    record = made(store, REGION, gpudirect=gpudirect)
    provider = ComputeProvider(Compute(Google(), cloud.project), record, store, packed)
    kind = SUITED[gpudirect]
    on = way(instance_type=kind, zone=ZONE, nodes=2)
    told = usable(Google(), record, [on], store_url=store)
    assert (told.ways, told.warnings) == ((on,), ())
    request = Request(launch_id="l", run_id="run", leg=1, way=on, hard_stop_s=3600)
    provider.launch(request, 1)
    with cloud.client("compute") as compute:
        listed = compute.instances().list(project=cloud.project, zone=ZONE).execute()["items"]
    called = name(store)
    ours = [
        each for each in listed
        if called in each["networkInterfaces"][0]["subnetwork"] and each["status"] == "RUNNING"
    ]  # fmt: skip
    assert len(ours) == 2
    wanted = {"tcpx": 5, "tcpxo": 9, "rdma": 10}[gpudirect]
    assert [len(each["networkInterfaces"]) for each in ours] == [wanted] * 2
    provider.terminate([each.machine_id for each in provider.list_machines().machines])


def test_where_they_lack_it_is_said(cloud: Control, store: str) -> None:
    record = made(store, REGION, gpudirect="tcpx")

    def warned(one: Way) -> str:
        told = usable(Google(), record, [one], store_url=store)
        assert told.ways == (one,)
        return " ".join(told.warnings)

    command = f"tradewind setup gcp --store {store} --region {REGION} --gpudirect"
    mega = way(instance_type=SUITED["tcpxo"], nodes=2)
    assert f"{command} tcpxo makes them" in warned(mega)
    assert f"{command} rdma makes them" in warned(way(instance_type=SUITED["rdma"], nodes=2))
    anywhere = way(instance_type=SUITED["rdma"], nodes=2, zone="")
    assert "are a zone's" in warned(anywhere)
    for quiet in (
        way(instance_type=SUITED["tcpx"], nodes=2, zone=""),
        way(instance_type=SUITED["tcpxo"]),
        way(nodes=2),
    ):
        assert warned(quiet) == ""


def test_doctor_misses_what_is_gone(cloud: Control, store: str) -> None:
    record = made(store, REGION, gpudirect="tcpx")
    calls = Calls(Google(), cloud.project)
    assert all(each.level != BROKEN for each in network_checks(calls, record, store))
    calls.compute(
        "DELETE",
        f"regions/{REGION}/subnetworks/{record.fast_subnets[REGION][1]}",
        "compute.subnetworks.delete",
    )
    (found,) = [each for each in network_checks(calls, record, store) if each.level == BROKEN]
    assert f"{name(store)}-gpu-2" in found.what
    made(store)
    assert all(each.level != BROKEN for each in network_checks(calls, record, store))


def test_one_of_somebody_else_is_left_alone(cloud: Control, store: str) -> None:
    made(store, REGION)
    called = f"{name(store)}-gpu-1"
    with cloud.client("compute") as compute:
        body = {"name": called, "autoCreateSubnetworks": False}
        compute.networks().insert(project=cloud.project, body=body).execute()
    for plan in (
        lambda: plan_setup(Wish(store_url=store, gpudirect="tcpx")),
        lambda: plan_teardown(store),
    ):
        with pytest.raises(InvalidValue, match="is not marked as ours"):
            plan()
    with cloud.client("compute") as compute:
        compute.networks().delete(project=cloud.project, network=called).execute()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("tcp", "none that there is"),
        ("tcpx:us-central1-b", "none that there is"),
        ("rdma:", "none that there is"),
        ("rdma:us-central1", "none that there is"),
        ("rdma:us-east4-b", "us-east4-b is in none of the regions"),
        ("rdma:us-central1-f", "no network profile for RDMA in us-central1-f"),
    ],
)
def test_what_there_is_not(cloud: Control, store: str, wish: str, words: str) -> None:
    with pytest.raises((InvalidValue, NotFound), match=words):
        plan_setup(wish_of(store, [REGION], {"gpudirect": wish}))
    assert there(cloud, store, "networks") == []


def test_a_region_without_rdma(cloud: Control, store: str) -> None:
    with pytest.raises(NotFound, match="in asia-south1") as caught:
        plan_setup(Wish(store_url=store, regions=("asia-south1",), gpudirect="rdma"))
    assert ZONE in (caught.value.hint or "")


def test_zones_are_not_known_while_the_api_is_off(cloud: Control, store: str) -> None:
    cloud.service("compute", False)
    try:
        with pytest.raises(InvalidValue, match="which is off"):
            plan_setup(Wish(store_url=store, regions=(REGION,), gpudirect="rdma"))
        plan = plan_setup(Wish(store_url=store, regions=(REGION,), gpudirect="tcpx"))
    finally:
        cloud.service("compute", True)
    assert plan.carry_out().fast_subnets[REGION]


@pytest.mark.slow
@pytest.mark.parametrize("gpudirect", ["tcpx", f"rdma:{ZONE}"])
def test_cut_off_and_run_again(cloud: Control, store: str, gpudirect: str) -> None:
    made(store, REGION)
    wish = Wish(store_url=store, gpudirect=gpudirect)
    google = CutOff()
    record = plan_setup(wish, google).carry_out()
    before = {what: there(cloud, store, what) for what in ("networks", "subnetworks", "firewalls")}
    assert google.changes >= 10
    # One network is like the next: within the first, between two, and at the end.
    for after in (1, 2, 3, 4, 6, google.changes - 1, google.changes):
        own = f"{store}/{after}"
        made(own, REGION)
        one = Wish(store_url=own, gpudirect=gpudirect)
        with pytest.raises(Cut):
            plan_setup(one, CutOff(after)).carry_out()
        again = plan_setup(one).carry_out()
        assert {what: there(cloud, own, what) for what in before} == before
        assert written(own) == again
        assert set(again.fast_subnets) == set(record.fast_subnets)
        with pytest.raises(Cut):
            plan_teardown(own, google=CutOff(after)).carry_out()
        plan_teardown(own).carry_out()
        assert not any(there(cloud, own, what) for what in before)


def test_no_two_cards_of_a_machine_overlap() -> None:
    wanted = fast.Wanted(cards=8, zones=(ZONE, "us-east4-b"))
    nets = fast.networks("x", "m", wanted, [REGION, "us-east4"], {})
    usual = [each for each in nets if not each.profile]
    ranges = [subnet.range for each in usual for subnet in each.subnets]
    ranges += [subnet.range for subnet in nets[-1].subnets]
    assert len(set(ranges)) == len(ranges)
    assert not any(each.startswith("10.77.") for each in ranges)


def test_the_setting_is_one_of_the_command() -> None:
    assert "gpudirect" in {each.name for each in CLOUD.settings}
    (note,) = [each for each in CLOUD.notes("gs://b", {"gpudirect": "rdma"}) if "NCCL" in each]
    assert "plugin" in note


def test_the_equipment_refuses_wrong_cards(cloud: Control, store: str) -> None:
    """Or the tests above would prove little."""
    record = made(store, REGION, gpudirect=f"rdma:{ZONE}")
    rest = Google().rest("compute")
    called = name(store)
    network = f"projects/{cloud.project}/global/networks/{called}-rdma-{ZONE}"
    rule = {"name": f"{called}-x", "network": network, "allowed": [{"IPProtocol": "all"}]}
    with pytest.raises(Refused, match="not supported"):
        rest.send("POST", f"/projects/{cloud.project}/global/firewalls", rule, Any, "trying")
    far = {"name": f"{called}-x", "network": network, "ipCidrRange": "10.99.0.0/20"}
    path = f"/projects/{cloud.project}/regions/us-east4/subnetworks"
    with pytest.raises(Refused, match="restricts"):
        rest.send("POST", path, far, Any, "trying")
    moved = replace(record, fast_subnets={"us-central1-a": record.fast_subnets[ZONE]})
    provider = ComputeProvider(Compute(Google(), cloud.project), moved, store, packed)
    on = way(instance_type=SUITED["rdma"], zone="us-central1-a", nodes=2)
    request = Request(launch_id="l", run_id="run", leg=1, way=on, hard_stop_s=3600)
    with pytest.raises(Refused, match="restricted to zone"):
        provider.launch(request, 1)
