"""Orders, held against Google's own discovery documents."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.cloud.faces.google import discovery
from tests.providers.conformance import Place
from tests.providers.gcp.machines import OTHER_ZONE, REGION, ZONE, footprint, way
from tradewind.model.run import Way
from tradewind.providers.base import Refused
from tradewind.providers.gcp.machines import order as orders
from tradewind.providers.gcp.machines.order import Order, Reserved
from tradewind.providers.gcp.machines.types import kind

STORE = "gs://runs/team"


def ordered(on: Way, nodes: int = 1, *, script: str = "#!/bin/sh\n", **more: Any) -> Order:
    request = Place(None, on).request(nodes=nodes)  # type: ignore[arg-type]
    place = more.pop("footprint", footprint())
    made = orders.order(request, STORE, place, kind=kind(on.instance_type), script=script, **more)
    where = "regionInstances" if made.place.startswith("regions/") else "instances"
    method = f"compute.{where}.bulkInsert" if made.bulk else "compute.instances.insert"
    discovery.check("compute", method, made.body)
    return made


def properties(made: Order) -> dict[str, Any]:
    found: dict[str, Any] = made.body["instanceProperties"] if made.bulk else made.body
    return found


def test_one_machine_is_inserted_into_its_zone() -> None:
    made = ordered(way())
    body = made.body
    assert (made.place, made.bulk, len(made.names)) == (f"zones/{ZONE}", False, 1)
    assert body["name"] == made.names[0]
    assert body["machineType"] == f"zones/{ZONE}/machineTypes/g2-standard-4"
    (disk,) = body["disks"]
    assert disk["autoDelete"]
    assert disk["initializeParams"]["diskSizeGb"] == "100"
    assert disk["initializeParams"]["diskType"] == f"zones/{ZONE}/diskTypes/pd-balanced"
    assert "nvidia" in disk["initializeParams"]["sourceImage"]
    assert body["scheduling"] == {
        "provisioningModel": "STANDARD",
        "instanceTerminationAction": "DELETE",
        "maxRunDuration": {"seconds": str(3600 + orders.SPARE_S)},
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE",
    }
    assert body["reservationAffinity"] == {"consumeReservationType": "NO_RESERVATION"}
    (account,) = body["serviceAccounts"]
    assert account["scopes"] == ["https://www.googleapis.com/auth/cloud-platform"]
    items = {each["key"]: each["value"] for each in body["metadata"]["items"]}
    assert items["startup-script"] == "#!/bin/sh\n"
    assert items["tradewind-launch"] == "run-1-1"


def test_several_are_bought_in_bulk_all_or_none() -> None:
    made = ordered(way(market="spot"), 3)
    assert made.bulk
    assert (made.body["count"], made.body["minCount"]) == ("3", "3")
    assert list(made.body["perInstanceProperties"]) == list(made.names)
    assert [name.rpartition("-")[2] for name in made.names] == ["0", "1", "2"]
    assert properties(made)["machineType"] == "g2-standard-4"
    assert properties(made)["scheduling"]["provisioningModel"] == "SPOT"
    assert properties(made)["scheduling"]["instanceTerminationAction"] == "DELETE"


def test_where_no_zone_is_asked_for_google_chooses_one_that_is_set_up() -> None:
    made = ordered(way(zone=""), 2)
    assert made.place == f"regions/{REGION}"
    assert made.body["locationPolicy"] == {
        "targetShape": "ANY_SINGLE_ZONE",
        "locations": {
            f"zones/{ZONE}": {"preference": "ALLOW"},
            f"zones/{OTHER_ZONE}": {"preference": "ALLOW"},
        },
    }
    assert ordered(way(zone="")).bulk


def test_gpus_of_n1_are_attached() -> None:
    one = ordered(way(instance_type="n1-standard-16+2xV100-16GB"))
    assert one.body["machineType"].endswith("/n1-standard-16")
    (gpu,) = one.body["guestAccelerators"]
    assert gpu["acceleratorType"].endswith(f"zones/{ZONE}/acceleratorTypes/nvidia-tesla-v100")
    assert gpu["acceleratorCount"] == 2
    two = properties(ordered(way(instance_type="n1-standard-8+1xT4"), 2))
    assert two["guestAccelerators"] == [
        {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}
    ]
    assert "nicType" not in two["networkInterfaces"][0]
    with pytest.raises(Refused, match="no Z9"):
        kind("n1-standard-8+1xZ9")


@pytest.mark.parametrize(
    ("name", "disk", "cards"),
    [
        ("a2-ultragpu-8g", "pd-balanced", []),
        ("a3-highgpu-8g", "pd-balanced", ["GVNIC gpu-0", "GVNIC gpu-3"]),
        ("a3-megagpu-8g", "pd-balanced", ["GVNIC gpu-0", "GVNIC gpu-7"]),
        ("a3-ultragpu-8g", "hyperdisk-balanced", ["GVNIC second", "MRDMA rdma-7"]),
        ("a4-highgpu-8g", "hyperdisk-balanced", ["GVNIC second", "MRDMA rdma-7"]),
        ("g4-standard-48", "hyperdisk-balanced", []),
    ],
)
def test_fast_types_have_their_cards_and_disks(name: str, disk: str, cards: list[str]) -> None:
    fast = replace(
        footprint(),
        fast_subnets={
            REGION: tuple(f"gpu-{n}" for n in range(8)),
            ZONE: ("second", *(f"rdma-{n}" for n in range(8))),
        },
    )
    of = properties(ordered(way(instance_type=name), 2, footprint=fast))
    first, *others = of["networkInterfaces"]
    assert first["nicType"] == "GVNIC"
    found = [f"{each['nicType']} {each['subnetwork'].rpartition('/')[2]}" for each in others]
    assert found[:1] + found[-1:] == cards
    assert len(set(found)) == len(kind(name).cards)
    assert all("accessConfigs" not in each for each in others)
    asked = of["disks"][0]["initializeParams"]
    assert asked["diskType"] == disk
    speed = {key: asked[key] for key in asked if key.startswith("provisioned")}
    wanted = {"provisionedIops": "3000", "provisionedThroughput": "140"}
    assert speed == (wanted if disk == "hyperdisk-balanced" else {})
    alone = properties(ordered(way(instance_type=name), footprint=fast))
    assert len(alone["networkInterfaces"]) == 1
    plain = properties(ordered(way(instance_type=name), 2))
    assert len(plain["networkInterfaces"]) == 1


def test_too_few_fast_networks_are_not_used() -> None:
    few = replace(footprint(), fast_subnets={REGION: ("a", "b", "c", "d"), OTHER_ZONE: ("e",) * 9})
    for name, cards in (("a3-highgpu-8g", 5), ("a3-megagpu-8g", 1), ("a4-highgpu-8g", 1)):
        of = properties(ordered(way(instance_type=name), 2, footprint=few))
        assert len(of["networkInterfaces"]) == cards


def test_machines_without_gpus_have_another_image_and_are_moved() -> None:
    made = ordered(way(instance_type="n2-standard-8"))
    assert made.body["scheduling"]["onHostMaintenance"] == "MIGRATE"
    assert made.body["disks"][0]["initializeParams"]["sourceImage"].endswith("2404-lts-amd64")
    arm = ordered(way(instance_type="c4a-standard-4"))
    assert arm.body["disks"][0]["initializeParams"]["sourceImage"].endswith("2404-lts-arm64")
    with pytest.raises(Refused, match="none of our images"):
        ordered(way(instance_type="a4x-highgpu-4g"))
    own = replace(footprint(), image="projects/me/global/images/family/mine", public=False)
    mine = ordered(way(), footprint=own).body
    assert mine["disks"][0]["initializeParams"]["sourceImage"] == own.image
    assert "accessConfigs" not in mine["networkInterfaces"][0]


def test_flex_start_waits_two_hours_and_holds_seven_days() -> None:
    made = ordered(way(market="flex_start"))
    assert made.body["params"] == {"requestValidForDuration": {"seconds": "7200"}}
    assert made.body["scheduling"]["provisioningModel"] == "FLEX_START"
    request = replace(
        Place(None, way(market="flex_start")).request(),  # type: ignore[arg-type]
        hard_stop_s=10 * 86_400,
    )
    long = orders.order(request, STORE, footprint(), kind=kind("g2-standard-4"), script="")
    assert long.body["scheduling"]["maxRunDuration"] == {"seconds": str(7 * 86_400)}
    assert "params" not in ordered(way(market="flex_start"), 2).body


def test_reservations_and_policies_are_named() -> None:
    named = ordered(way(market="reserved"), reservation=Reserved(name="held", specific=True)).body
    assert named["reservationAffinity"] == {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["held"],
    }
    open_ = ordered(way(market="reserved"), reservation=Reserved(name="held", specific=False)).body
    assert open_["reservationAffinity"] == {"consumeReservationType": "ANY_RESERVATION"}
    made = properties(ordered(way(), 2, policy="tw-x"))
    assert made["resourcePolicies"] == ["tw-x"]
    request = Place(None, way()).request(nodes=2)  # type: ignore[arg-type]
    body = orders.policy_body(request, STORE)
    discovery.check("compute", "compute.resourcePolicies.insert", body)
    assert orders.wants_policy(request, kind("a3-highgpu-8g"), None)
    assert not orders.wants_policy(request, kind("n2-standard-4"), None)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (way(region="mars-1", zone="mars-1-a"), "nothing is set up in mars-1"),
        (way(zone="us-central1-z"), "machines are not set up for us-central1-z"),
        (way(market="lottery"), "Google sells nothing on the lottery market"),
    ],
)
def test_what_cannot_be_ordered_is_said(wrong: Way, words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        ordered(wrong)
    assert caught.value.kind == "not_found"


def test_a_script_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(Refused, match="more than Compute Engine takes"):
        ordered(way(), script="x" * (256 * 1024 + 1))
