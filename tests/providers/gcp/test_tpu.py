"""TPU slices by plain REST: the promises of every provider, and those of slices alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google.control import Control
from tests.eventually import eventually
from tests.providers.conformance import Conformance, Place
from tests.providers.gcp.machines import OTHER_ZONE, ZONE, argument, footprint
from tests.providers.gcp.metadata_server import serving
from tests.providers.gcp.slices import BY_WORKERS, SlicePlace, open_tpu, slice_way
from tradewind import catalog
from tradewind.model.run import Machine
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.providers.boot.first import fetch
from tradewind.providers.gcp import shell, who
from tradewind.providers.gcp.api import Google
from tradewind.providers.gcp.facts import QUEUED
from tradewind.providers.gcp.provider import Both
from tradewind.providers.gcp.tpu import kinds, listing
from tradewind.providers.gcp.tpu.api import PERMISSIONS, Node, Tpu


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> str:
    return f"gs://b/tpu-{request.node.name}"  # conformance's tests have the same names elsewhere


@pytest.fixture
def tpus(cloud: Control) -> Iterator[Control]:
    yield cloud
    cloud.service("tpu", True)
    for kind in BY_WORKERS.values():
        for zone in (ZONE, OTHER_ZONE):
            cloud.capacity(None, kind=kind, zone=zone)


@pytest.fixture
def rented(tpus: Control, owner: str) -> Both:
    return open_tpu(argument(tpus, footprint(), owner))


class TestSlices(Conformance):
    safety = "token"

    @pytest.fixture
    def place(self, tpus: Control, rented: Both, owner: str) -> Place:
        def room(workers: int) -> None:
            """For one slice of three, or for none."""
            tpus.capacity(workers // 3, kind=BY_WORKERS[3], zone=ZONE)

        given = argument(tpus, footprint(), owner)
        return SlicePlace(
            rented,
            slice_way(),
            others=open_tpu(argument(tpus, footprint(), owner + "-2")),
            again=lambda: open_tpu(given),
            client=("tests.providers.gcp.slices:open_tpu", given),
            crashes=8,
            room=room,
        )

    def test_one_of_several_machines_can_be_terminated(self, place: Place) -> None:
        """And the others of its slice end with it."""
        bought = place.provider.launch(place.request(nodes=3), 1)
        other = place.provider.launch(place.request(leg=2), 1)
        eventually(lambda: len(place.running()) == 4)
        place.provider.terminate([bought[1].machine_id])
        place.is_gone(bought)
        assert place.running() == list(other)


def node_of(cloud: Control, machine: Machine) -> Node:
    parts = listing.parted(machine.machine_id)
    assert parts is not None
    found = Tpu(Google(), cloud.project).node(*parts[0])
    assert found is not None
    return found


def test_a_slice_is_asked_for_by_its_type_and_told_the_same(tpus: Control, rented: Both) -> None:
    request = replace(SlicePlace(rented, slice_way()).request(nodes=2), waits=True)
    bought = rented.launch(request, 7, "sign-with-this")
    node = node_of(tpus, bought[0])
    assert node.accelerator_type == "v4-16"
    assert len(node.network_endpoints) == len(bought) == 2
    script = node.metadata["startup-script"]
    (line,) = [each for each in script.splitlines() if each.startswith('{"kit"')]
    boot = json.loads(line)["boot"]
    assert (boot["nodes"], boot["key"], boot["waits"]) == (2, "sign-with-this", True)
    assert "rank" not in boot
    assert [each.machine_id for each in bought] == [
        f"gcp-tpu-{ZONE}-{node.metadata['tradewind-slice']}-w{rank}" for rank in (0, 1)
    ]


def test_a_worker_costs_its_part_of_the_slice() -> None:
    way = slice_way(3)
    assert (way.nodes, way.units, way.price) == (3, 1, 2_000_000)
    assert way.words == f"tpu-v4-24 on-demand in gcp/{ZONE}"


def test_a_spot_slice_is_taken_whole_and_removed(tpus: Control, rented: Both) -> None:
    place = SlicePlace(rented, slice_way(market="spot"))
    bought = rented.launch(place.request(nodes=2), 1)
    name = listing.parted(bought[0].machine_id)
    assert name is not None
    tpus.interrupt(f"{name[0][1]}-w-0", 0)
    place.is_gone(bought)
    ended = eventually(lambda: [m for m in place.listed() if m.ended_s is not None])
    assert {each.rank for each in ended} == {0, 1}
    eventually(lambda: (place.listed(), Tpu(Google(), tpus.project).node(*name[0]) is None)[1])
    assert {m.ended_s for m in place.listed()} == {m.ended_s for m in ended}
    # Who was not there when it was taken sees it as it was deleted, no later than a listing.
    assert list(rented.launch(place.request(nodes=2), 1)) == place.listed()
    assert place.running() == []


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (8, 'There is no more capacity in the zone "z"; you can try in another', "no_capacity"),
        (8, "Quota limit 'TPUV4PodPerProjectPerZoneForTPUAPI' has been exceeded.", "no_quota"),
        (7, "The caller does not have permission", "not_allowed"),
    ],
)
def test_what_was_accepted_and_fails_later_is_refused(
    tpus: Control, rented: Both, code: int, message: str, kind: str
) -> None:
    action = "tpu.projects.locations.nodes.create"
    tpus.fail_late(action, str(code), status=code, message=message)
    place = SlicePlace(rented, slice_way())
    with pytest.raises(Refused) as caught:
        rented.launch(place.request(nodes=2), 1)
    assert caught.value.kind == kind
    assert place.running() == []
    assert len(rented.launch(place.request(nodes=2), 1)) == 2  # nothing was bought by that name


def test_an_internal_error_is_unknown(tpus: Control, rented: Both) -> None:
    action = "tpu.projects.locations.nodes.create"
    tpus.fail_late(action, "13", status=13, message="an internal error has occurred")
    with pytest.raises(OutcomeUnknown):
        rented.launch(SlicePlace(rented, slice_way()).request(nodes=2), 1)


@pytest.mark.slow  # it is asked again, twice
def test_a_quota_that_is_too_small_is_one(tpus: Control, rented: Both) -> None:
    name = "TPUV4PodPerProjectPerZoneForTPUAPI"
    tpus.quota(name, 4, region="us-central1")
    try:
        with pytest.raises(Refused) as caught:
            rented.launch(SlicePlace(rented, slice_way()).request(nodes=2), 1)
    finally:
        tpus.quota(name, 1_000_000, region="us-central1")
    assert caught.value.kind == "no_quota"


def test_lost_answers_buy_once(tpus: Control, rented: Both, owner: str) -> None:
    place = SlicePlace(rented, slice_way())
    request = place.request(nodes=2)
    tpus.lose("tpu.projects.locations.nodes.create")
    with pytest.raises(OutcomeUnknown):
        rented.launch(request, 1)
    other = open_tpu(argument(tpus, footprint(), owner))
    bought = eventually(lambda: other.launch(request, 1))
    assert len(bought) == 2
    eventually(lambda: len(place.running()) == 2)


def test_nothing_is_bought_that_is_no_slice(rented: Both) -> None:
    place = SlicePlace(rented, slice_way())
    request = place.request(nodes=2)
    for way, kind in (
        (replace(request.way, nodes=4), "not_allowed"),
        (replace(request.way, instance_type="tpu-v9-16"), "not_found"),
        (replace(request.way, market="flex_start"), "not_found"),
        (replace(request.way, zone=""), "not_found"),
        (replace(request.way, region="us-east5", zone="us-east5-a"), "not_found"),
    ):
        with pytest.raises(Refused) as caught:
            rented.launch(replace(request, way=way), 1)
        assert caught.value.kind == kind
    assert place.listed() == []


def test_where_the_api_is_off_there_are_no_slices(tpus: Control, rented: Both) -> None:
    tpus.service("tpu", False)
    assert rented.list_machines().machines == ()
    with pytest.raises(Refused) as caught:
        rented.launch(SlicePlace(rented, slice_way()).request(nodes=2), 1)
    assert caught.value.kind == "not_allowed"
    assert "setup gcp" in (caught.value.hint or "")


@pytest.mark.parametrize("market", ["on_demand", QUEUED])
def test_zones_are_asked_one_by_one_where_all_are_not_told_at_once(
    tpus: Control, owner: str, market: str
) -> None:
    """Else a queued slice would not be found, and be bought again."""
    tpus.dials(tpu_by_zone=True)
    try:
        place = SlicePlace(open_tpu(argument(tpus, footprint(), owner)), slice_way(market=market))
        tpus.capacity(0 if market == QUEUED else None, kind=BY_WORKERS[2], zone=ZONE)
        request = place.request(nodes=2)
        bought = list(place.provider.launch(request, 1))
        if market == QUEUED:
            (waiting,) = place.provider.list_machines().queued
            assert (waiting.launch_id, bought) == (request.launch_id, [])
            tpus.capacity(None, kind=BY_WORKERS[2], zone=ZONE)
            bought = list(eventually(place.running))
        place.provider.terminate([bought[0].machine_id])
        place.is_gone(bought)
    finally:
        tpus.dials(tpu_by_zone=False)


def test_a_zone_that_does_not_answer_hides_nothing(tpus: Control, rented: Both) -> None:
    tpus.unreachable(ZONE)
    with pytest.raises(OutcomeUnknown):
        rented.list_machines()


class TestQueue:
    @pytest.fixture
    def place(self, rented: Both) -> Place:
        return SlicePlace(rented, slice_way(market=QUEUED))

    def test_what_waits_is_listed_and_then_there(self, tpus: Control, place: Place) -> None:
        kind = BY_WORKERS[2]
        tpus.capacity(0, kind=kind, zone=ZONE)
        request = place.request(nodes=2)
        assert list(place.provider.launch(request, 1)) == []
        assert list(place.provider.launch(request, 1)) == []
        (waiting,) = place.provider.list_machines().queued
        assert (waiting.launch_id, waiting.leg) == (request.launch_id, 1)
        assert waiting.reason == "WAITING_FOR_RESOURCES"
        assert place.listed() == []
        tpus.capacity(None, kind=kind, zone=ZONE)
        machines = eventually(place.running)
        assert [each.rank for each in machines] == [0, 1]
        assert place.provider.list_machines().queued == ()
        assert list(place.provider.launch(request, 1)) == machines
        place.provider.terminate([machines[1].machine_id])
        place.is_gone(machines)
        eventually(lambda: Tpu(Google(), tpus.project).queue() == [])

    def test_it_can_be_withdrawn(self, tpus: Control, rented: Both, place: Place) -> None:
        tpus.capacity(0, kind=BY_WORKERS[2], zone=ZONE)
        request = place.request(nodes=2)
        assert list(rented.launch(request, 1)) == []
        for _ in range(2):
            rented.withdraw([request.launch_id, "run-of-nobody-1"])
        eventually(lambda: rented.list_machines().queued == ())
        tpus.capacity(None, kind=BY_WORKERS[2], zone=ZONE)
        assert place.running() == []

    def test_one_that_fails_is_not_waited_for(self, tpus: Control, place: Place) -> None:
        tpus.capacity(0, kind=BY_WORKERS[2], zone=ZONE)
        assert list(place.provider.launch(place.request(nodes=2), 1)) == []
        tpus.fail_late("tpu.projects.locations.queuedResources.create", "8")
        eventually(lambda: place.provider.list_machines().queued == ())
        eventually(lambda: Tpu(Google(), tpus.project).queue() == [])


def test_what_a_slice_is_allowed_is_what_the_table_says(tpus: Control, rented: Both) -> None:
    before = len(tpus.permissions())
    one = SlicePlace(rented, slice_way())
    two = SlicePlace(rented, slice_way(market=QUEUED))
    bought = [*rented.launch(one.request(nodes=2), 1), *rented.launch(two.request(leg=2), 1)]
    bought += eventually(lambda: two.running("run-1-2"))
    rented.terminate([each.machine_id for each in bought])
    one.is_gone(bought)
    seen: dict[str, set[str]] = {}
    for each in tpus.permissions()[before:]:
        if each["call"].startswith("tpu."):
            seen.setdefault(each["call"], set()).add(each["permission"])
    assert seen == {call: set(names) for call, names in PERMISSIONS.items()}


def test_a_worker_knows_which_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as server:
        server.say(
            instance__name="t1v-n-0123abcd-w-1",
            instance__zone="projects/123/zones/us-central2-b",
            **{
                "instance__network_interfaces/0/ip": "10.9.0.8",
                "instance__attributes/tradewind_slice": "tw-0123abcd-run-1-7-1",
                "instance__attributes/agent_worker_number": "1",
                "instance__attributes/worker_network_endpoints": (
                    "unknown:unknown:10.9.0.7,unknown:unknown:10.9.0.8"
                ),
            },
        )
        monkeypatch.setattr(who, "METADATA", server.host)
        known = who.who(fetch)
    assert known == {
        "machine_id": "gcp-tpu-us-central2-b-tw-0123abcd-run-1-7-1-w1",
        "rank": 1,
        "host": "10.9.0.8",
        "variables": {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "10.9.0.7,10.9.0.8"},
    }
    parts = listing.parted(known["machine_id"])
    assert parts is not None
    assert (parts[0], parts[2]) == (("us-central2-b", "tw-0123abcd-run-1-7-1"), 1)
    machine = Machine(
        machine_id=known["machine_id"], launch_id="l", run_id="r", leg=7, rank=1, launched_s=0
    )
    assert shell.command(machine, "p", "", ["ls"]) == [
        *("gcloud", "alpha", "compute", "tpus", "tpu-vm", "ssh", "tw-0123abcd-run-1-7-1"),
        *("--worker", "1", "--zone", "us-central2-b", "--project", "p"),
        *("--tunnel-through-iap", "--command", "ls"),
    ]


@pytest.mark.parametrize(
    ("name", "workers", "runtime"),
    [
        ("tpu-v2-8", 1, "tpu-ubuntu2204-base"),
        ("tpu-v3-32", 4, "tpu-ubuntu2204-base"),
        ("tpu-v4-4096", 512, "tpu-ubuntu2204-base"),
        ("tpu-v5litepod-1", 1, "v2-alpha-tpuv5-lite"),
        ("tpu-v5litepod-8", 1, "v2-alpha-tpuv5-lite"),
        ("tpu-v5litepod-16", 4, "v2-alpha-tpuv5-lite"),
        ("tpu-v5p-8", 1, "v2-alpha-tpuv5"),
        ("tpu-v5p-128", 16, "v2-alpha-tpuv5"),
        ("tpu-v6e-8", 1, "v2-alpha-tpuv6e"),
        ("tpu-v6e-256", 64, "v2-alpha-tpuv6e"),
    ],
)
def test_what_a_slice_is(name: str, workers: int, runtime: str) -> None:
    found = kinds.kind(name)
    assert (found.workers, found.runtime) == (workers, runtime)
    assert f"tpu-{found.accelerator_type}" == name


def test_every_slice_of_the_catalog_is_known() -> None:
    names = {each.name for each in catalog.load().facts.instances if each.provider == "gcp"}
    slices = [each for each in names if each.startswith("tpu-")]
    assert len(slices) > 40
    for each in slices:
        assert kinds.kind(each).workers >= 1
