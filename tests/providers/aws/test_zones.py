"""Zones, and what they offer, as moto's copy of AWS has them."""

from __future__ import annotations

import threading

import pytest

from tests.providers.aws.cloud import Answer, Cloud, error, xml
from tradewind.base.errors import NoAccess
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Network
from tradewind.providers.aws.limits import zones
from tradewind.providers.base import OutcomeUnknown, Refused

HERE = "us-east-1"


def test_zones_by_id_and_name(account: Account) -> None:
    found = zones.zones(account, HERE)
    assert found["use1-az6"] == zones.Zone(id="use1-az6", name="us-east-1a", region=HERE)
    assert len(found) == 6


def test_zones_that_are_not_for_us(cloud: Cloud, account: Account) -> None:
    def zone(name: str, **other: str) -> dict[str, str]:
        return {"zoneId": name, "zoneName": name, "zoneState": "available"} | other

    cloud.on(
        "DescribeAvailabilityZones",
        xml(
            "DescribeAvailabilityZones",
            availabilityZoneInfo=[
                zone("up", zoneType="availability-zone", optInStatus="opt-in-not-required"),
                zone("down", zoneState="impaired"),
                zone("off", optInStatus="not-opted-in"),
                zone("local", zoneType="local-zone", optInStatus="opted-in"),
            ],
        ),
    )
    found = zones.zones(account, HERE)
    assert {name: zone.usable for name, zone in found.items()} == {
        "up": True,
        "down": False,
        "off": False,
    }


def test_regions_that_are_switched_off(account: Account) -> None:
    found = zones.regions(account)
    assert found[HERE]
    assert found["ap-east-1"] is False


def test_which_zones_offer_a_type(account: Account) -> None:
    found = zones.offering(account, HERE, ["g5.xlarge", "p4d.24xlarge", "p9.huge"])
    assert found["p4d.24xlarge"] < found["g5.xlarge"] | {"use1-az3"}
    assert "use1-az3" not in found["g5.xlarge"]
    assert found["p9.huge"] == frozenset()


def test_what_a_launch_must_know_of_a_type(account: Account) -> None:
    names = [
        "p4d.24xlarge",
        "p6-b300.48xlarge",
        "g5g.xlarge",
        "trn1.32xlarge",
        "m7i.large",
        "p9.huge",
    ]
    found = zones.facts(account, HERE, names)
    assert "p9.huge" not in found
    p4d = found["p4d.24xlarge"]
    assert (p4d.vcpus, p4d.efa, p4d.efa_cards, p4d.efa_first) == (96, True, (0, 1, 2, 3), True)
    b300 = found["p6-b300.48xlarge"]
    assert (b300.efa_cards, b300.efa_first) == (tuple(range(1, 17)), False)
    assert (p4d.gpus, p4d.gpu, p4d.gpu_maker, p4d.accelerator) == (8, "A100", "NVIDIA", "gpu")
    assert (found["g5g.xlarge"].architecture, found["g5g.xlarge"].efa) == ("arm64", False)
    assert (found["trn1.32xlarge"].neurons, found["trn1.32xlarge"].accelerator) == (16, "neuron")
    assert found["m7i.large"].accelerator == "cpu"


def test_cards_that_do_not_tell_what_they_take(cloud: Cloud, account: Account) -> None:
    network = {
        "efaSupported": True,
        "maximumNetworkCards": 17,
        "efaInfo": {"maximumEfaInterfaces": 16},
    }
    told = {"instanceType": "p9.huge", "networkInfo": network}
    cloud.on("DescribeInstanceTypes", xml("DescribeInstanceTypes", instanceTypeSet=[told]))
    found = zones.facts(account, HERE, ["p9.huge"])["p9.huge"]
    assert (found.efa_cards, found.efa_first) == (tuple(range(1, 17)), False)


def test_places_have_a_subnet_and_the_type(account: Account) -> None:
    network = Network(
        vpc="vpc-1",
        security_group="sg-1",
        subnets={"use1-az3": "subnet-3", "use1-az6": "subnet-6", "use1-az1": "subnet-1"},
    )
    assert zones.places(account, HERE, network, "g5.xlarge") == ["use1-az1", "use1-az6"]
    assert zones.places(account, HERE, network, "g5.xlarge", "use1-az6") == ["use1-az6"]
    assert zones.places(account, HERE, network, "g5.xlarge", "use1-az3") == []
    assert zones.places(account, HERE, network, "p9.huge") == []


def test_asked_once_though_many_threads_want_it(cloud: Cloud, account: Account) -> None:
    zones.offering(account, HERE, ["g5.xlarge"])
    answers = []

    def ask() -> None:
        answers.append(zones.offering(account, HERE, ["g5.xlarge", "p4d.24xlarge"]))
        zones.zones(account, HERE)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert all(answer == answers[0] for answer in answers)
    before = len(cloud.asked)
    ask()
    assert len(cloud.asked) == before
    # What is known already is not asked for again, even by threads that raced.
    asked = [fields for _, _, fields in cloud.asked if "Filter.1.Value.1" in fields]
    assert [fields["Filter.1.Value.1"] for fields in asked].count("g5.xlarge") == 1


def test_another_account_is_asked_anew(cloud: Cloud, account: Account) -> None:
    zones.zones(account, HERE)
    zones.zones(Account(), HERE)
    assert cloud.actions().count("DescribeAvailabilityZones") == 2


def test_a_failure_is_not_remembered(cloud: Cloud, account: Account) -> None:
    cloud.on("DescribeAvailabilityZones", error("UnauthorizedOperation", status=403))
    with pytest.raises(Refused, match="zones of us-east-1: UnauthorizedOperation") as refused:
        zones.zones(account, HERE)
    assert refused.value.kind == "not_allowed"
    cloud.on("DescribeAvailabilityZones", error("AuthFailure", status=401))
    with pytest.raises(NoAccess):
        zones.zones(account, HERE)
    cloud.on("DescribeAvailabilityZones", Answer("<html>sorry", 502))
    with pytest.raises(OutcomeUnknown):
        zones.zones(account, HERE)
    cloud.on("DescribeAvailabilityZones", lambda region, asked: None)
    assert len(zones.zones(account, HERE)) == 6


def test_throttled_once_is_asked_again(cloud: Cloud, account: Account) -> None:
    left = [1]

    def answer(region: str, asked: dict[str, str]) -> Answer | None:
        return error("RequestLimitExceeded", status=503) if left and left.pop() else None

    cloud.on("DescribeAvailabilityZones", answer)
    assert len(zones.zones(account, HERE)) == 6
    assert cloud.actions().count("DescribeAvailabilityZones") == 2
