"""How machines end, and what is told of it once they are gone. On equipment of its own: its clock
is put forward, and a token of before would not be one then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google import discovery
from tests.cloud.faces.google.control import Control, running
from tests.eventually import eventually
from tests.providers.conformance import Place
from tests.providers.gcp.machines import ZONE, argument, footprint, open_gcp, prepare, way
from tradewind.model.bill import bill, charged
from tradewind.model.run import Machine, Way
from tradewind.providers.gcp.facts import FACTS
from tradewind.providers.gcp.machines.order import SPARE_S
from tradewind.providers.gcp.provider import Both, ComputeProvider


@pytest.fixture(scope="module")
def equipment_ahead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("ahead"), bodies="process") as control:
        control.dials(pending_s=0, shutting_down_s=0, operation_s=0.02)
        yield control


@pytest.fixture
def cloud(equipment_ahead: Control, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    for name, value in equipment_ahead.env.items():
        monkeypatch.setenv(name, value)
    prepare(equipment_ahead)
    monkeypatch.setattr(ComputeProvider, "_script", lambda *given: "#!/bin/sh\nsleep 600\n")
    yield equipment_ahead
    equipment_ahead.end_all()


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> str:
    return f"gs://b/{request.node.name}"


@pytest.fixture
def rented(cloud: Control, owner: str) -> Both:
    return open_gcp(argument(cloud, footprint(), owner))


def at(rented: Both, on: Way | None = None) -> Place:
    return Place(rented, on or way())


def billed(cloud: Control, machine: Machine) -> dict[str, Any]:
    name = machine.machine_id.partition(f"{ZONE}-")[2]
    (found,) = [each for each in cloud.bill()["machines"] if each["name"] == name]
    return dict(found)


def test_a_machine_that_google_takes_has_ended_when_it_was_taken(
    cloud: Control, rented: Both, owner: str
) -> None:
    bought = rented.launch(at(rented, way(market="spot")).request(nodes=2), 1)
    cloud.advance(100)
    cloud.interrupt(billed(cloud, bought[1])["id"], notice_s=30)
    cloud.advance(31)
    # Another controller, that has never listed it, knows all of it by its name.
    for looks in (rented, open_gcp(argument(cloud, footprint(), owner))):
        (ended,) = [each for each in looks.list_machines().machines if each.ended_s is not None]
        assert abs(ended.launched_s - bought[1].launched_s) <= 1  # when it was asked for, or ran
        assert ended == replace(bought[1], launched_s=ended.launched_s, ended_s=ended.ended_s)
        assert ended.ended_s == int(billed(cloud, bought[1])["ended"])
    assert (ended.ended_s or 0) - ended.launched_s >= 130


def test_one_that_is_taken_within_a_minute_costs_nothing(cloud: Control, rented: Both) -> None:
    (bought,) = rented.launch(at(rented, way(market="spot")).request(), 1)
    cloud.interrupt(billed(cloud, bought)["id"], notice_s=0)
    ended = eventually(lambda: [m for m in rented.list_machines().machines if m.ended_s])
    assert ended[0].prices == ((bought.launched_s, 0),)


def test_one_that_has_shut_itself_down_is_deleted_and_paid_for_its_disk_until_then(
    cloud: Control, rented: Both, owner: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    over = tmp_path / "over"  # else it may be off before it is bought
    script = f"#!/bin/sh\nuntil [ -e {over} ]; do sleep 0.1; done\nshutdown -h now\n"
    monkeypatch.setattr(ComputeProvider, "_script", lambda *given: script)
    (bought,) = rented.launch(at(rented).request(), 1)
    over.touch()
    eventually(lambda: billed(cloud, bought)["ended"])
    cloud.advance(50)
    assert rented.list_machines().machines  # which deletes it
    assert eventually(lambda: cloud.left() == [])
    (ended,) = rented.list_machines().machines
    assert ended.ended_s is not None
    assert ended.ended_s - bought.launched_s >= 50
    paid = billed(cloud, bought)
    assert ended.off_s == int(paid["ended"])
    disk = bill(13_889, ended.ended_s - bought.launched_s, FACTS)
    assert charged(way(), ended, ended.ended_s - bought.launched_s) == disk + bill(
        750_000 - 13_889, ended.off_s - bought.launched_s, FACTS
    )
    (volume,) = [each for each in cloud.bill()["volumes"] if each["machine"] == paid["id"]]
    assert ended.ended_s == int(volume["gone"])
    assert rented.list_machines().machines == (ended,)
    # And so it is for whom it was never listed to.
    (other,) = open_gcp(argument(cloud, footprint(), owner)).list_machines().machines
    assert replace(other, launched_s=ended.launched_s) == ended


def test_google_ends_what_nobody_looks_after(cloud: Control, rented: Both) -> None:
    (bought,) = rented.launch(replace(at(rented).request(), hard_stop_s=60), 1)
    cloud.advance(60 + SPARE_S + 1)
    eventually(lambda: billed(cloud, bought)["ended"])
    (ended,) = rented.list_machines().machines
    assert ended.ended_s is not None
    assert ended.ended_s - bought.launched_s == pytest.approx(60 + SPARE_S, abs=2)
    assert cloud.left() == []


def test_google_tells_nowhere_when_a_slice_was_taken() -> None:
    """Times that its API has of what we look at. Where one is added, the end of a slice that was
    taken may be known by it (tpu/listing.py)."""
    schemas = discovery.document("tpu", "v2")["schemas"]

    def times(name: str) -> set[str]:
        found = set()
        for key, told in schemas[name].get("properties", {}).items():
            if told.get("format") == "google-datetime" or key.endswith(("Time", "Timestamp")):
                found.add(f"{name}.{key}")
            for other in (told.get("$ref"), told.get("items", {}).get("$ref")):
                found |= times(other) if other and other != name else set()
        return found

    assert times("Node") == {
        "Node.createTime",
        "Symptom.createTime",
        "UpcomingMaintenance.latestWindowStartTime",
        "UpcomingMaintenance.windowStartTime",
        "UpcomingMaintenance.windowEndTime",
    }
    symptoms = schemas["Symptom"]["properties"]["symptomType"]["enum"]
    assert not [each for each in symptoms if "PREEMPT" in each]
    assert times("QueuedResourceState") == set()
    assert times("OperationMetadata") == {
        "OperationMetadata.createTime",
        "OperationMetadata.endTime",
    }
