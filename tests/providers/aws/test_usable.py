"""Which ways an account can really take, and why not the others."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest
from msgspec import structs

from tests.providers.aws.cloud import Answer, Asked, Cloud, error, json_error, quotas_of, xml
from tradewind.model.run import Way
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.footprint import Footprint, Network
from tradewind.providers.aws.limits import prices, scores, zones
from tradewind.providers.aws.limits.usable import usable
from tradewind.providers.usable import KINDS, Usable

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
PLENTY = dict.fromkeys("L-DB2E81BA L-3819A6DF L-417A185B L-7212CCBC L-C4BD4855".split(), 1000.0)


def _network(*zones: str) -> Network:
    return Network(vpc="v", security_group="s", subnets={zone: f"subnet-{zone}" for zone in zones})


FOOTPRINT = Footprint(
    account="123456789012",
    bucket="b",
    bucket_region="us-east-1",
    instance_profile="p",
    regions={
        "us-east-1": _network("use1-az1", "use1-az2", "use1-az3"),
        "us-west-2": _network("usw2-az1"),
        "ap-east-1": _network("ape1-az1"),
    },
)


def _way(kind: str = "g5.xlarge", zone: str = "use1-az1", **other: object) -> Way:
    fields = {
        "provider": "aws",
        "region": "us-east-1",
        "zone": zone,
        "instance_type": kind,
        "market": "spot",
        "nodes": 1,
        "price": 500_000,
        "rate": 1.0,
        "start_s": 300.0,
    }
    return Way(**(fields | other))  # type: ignore[arg-type]


@pytest.fixture
def _plenty(cloud: Cloud) -> None:
    quotas_of(cloud, PLENTY)
    cloud.on("DescribeSpotPriceHistory", xml("DescribeSpotPriceHistory", spotPriceHistorySet=[]))
    cloud.on("GetSpotPlacementScores", xml("GetSpotPlacementScores", spotPlacementScoreSet=[]))


def _kinds(found: Usable) -> list[str]:
    assert all(reason.kind in KINDS for reason in found.rejected)
    return [reason.kind for reason in found.rejected]


@pytest.mark.usefixtures("_plenty")
def test_what_can_be_had_stays_as_it_is(cloud: Cloud, account: Account) -> None:
    ways = [
        _way(),
        _way(market="on_demand", zone="", price=1_006_000),
        _way(provider="local", region="here", zone=""),
        _way("p4d.24xlarge", nodes=4),
    ]
    told = usable(account, FOOTPRINT, ways, now=NOW, store_url="s3://b/team")
    assert structs.replace(told, warnings=()) == Usable(ways=tuple(ways))
    assert told.warnings == (
        "p4d.24xlarge has 4 EFA interfaces, and machines in us-east-1 use 1: their subnets are"
        " public. A network of its own uses all: tradewind setup aws --store s3://b/team --region"
        " us-east-1 --private",
    )
    alone = [structs.replace(way, nodes=1) for way in ways]
    assert usable(account, FOOTPRINT, alone, now=NOW).warnings == ()
    # One look for all of them.
    once = ["DescribeRegions", "DescribeAvailabilityZones", "DescribeInstanceTypes"]
    assert [cloud.actions().count(name) for name in once] == [1, 1, 1]


@pytest.mark.usefixtures("_plenty")
def test_places_where_it_cannot_be_had(account: Account) -> None:
    found = usable(
        account,
        FOOTPRINT,
        [
            _way(region="ap-east-1", zone="ape1-az1"),
            _way(region="eu-west-1", zone="euw1-az1"),
            _way(zone="use1-az9"),
            _way(zone="use1-az3"),
            _way(zone="use1-az6"),
            _way("p9.huge"),
            _way("p9.huge", zone=""),
            _way(region="us-west-2", zone="usw2-az4"),
        ],
        now=NOW,
        store_url="s3://b/team",
    )
    hints = {reason.kind: reason.hint for reason in found.rejected}
    paste = "tradewind setup aws --store s3://b/team --region"
    assert hints["no_setup"] == f"{paste} eu-west-1"
    assert hints["no_subnet"] == f"{paste} us-east-1 makes it"
    told = {reason.way.what: (reason.kind, reason.words) for reason in found.rejected}
    assert told["spot g5.xlarge in aws/ape1-az1"] == (
        "region_off",
        "the account has not switched ap-east-1 on",
    )
    assert told["spot g5.xlarge in aws/euw1-az1"][0] == "no_setup"
    assert told["spot g5.xlarge in aws/use1-az9"][0] == "zone_off"
    assert told["spot g5.xlarge in aws/use1-az3"] == (
        "not_offered",
        "use1-az3 does not offer g5.xlarge",
    )
    assert told["spot g5.xlarge in aws/use1-az6"][0] == "no_subnet"
    assert told["spot p9.huge in aws/use1-az1"][0] == "not_offered"
    assert told["spot p9.huge in aws/us-east-1"][1] == "no zone of us-east-1 offers p9.huge"
    assert told["spot g5.xlarge in aws/usw2-az4"][0] == "not_offered"
    assert found.ways == ()
    assert all(reason.lasting for reason in found.rejected)


@pytest.mark.usefixtures("_plenty")
def test_private_machines_talk_as_fast_as_they_can(account: Account) -> None:
    there = structs.replace(FOOTPRINT.regions["us-east-1"], public=False)
    private = structs.replace(FOOTPRINT, regions={"us-east-1": there})
    assert usable(account, private, [_way("p4d.24xlarge", nodes=4)], now=NOW).warnings == ()
    assert usable(account, FOOTPRINT, [_way("p4d.24xlarge")], now=NOW).warnings == ()


@pytest.mark.usefixtures("_plenty")
def test_a_gpu_that_our_images_cannot_drive(cloud: Cloud, account: Account) -> None:
    def gpu(name: str, maker: str = "NVIDIA", **more: object) -> dict[str, object]:
        return {"gpuInfo": {"gpus": [{"name": name, "manufacturer": maker, "count": 1, **more}]}}

    told: dict[str, dict[str, object]] = {
        "g4ad.xlarge": gpu("Radeon Pro V520", "AMD"),
        "dl1.24xlarge": gpu("Gaudi HL-205", "Habana"),
        "p3.2xlarge": gpu("V100"),
        "p2.xlarge": gpu("K80"),
        "g3.4xlarge": gpu("M60"),
        "g6f.large": gpu("L4", gpuPartitionSize=0.125, logicalGpuCount=1),
        "inf1.xlarge": {"neuronInfo": {"neuronDevices": [{"count": 1, "name": "Inferentia"}]}},
        "trn1.2xlarge": {"neuronInfo": {"neuronDevices": [{"count": 1, "name": "Trainium"}]}},
        "g4dn.xlarge": gpu("T4"),
        "g7e.2xlarge": gpu("RTX PRO Server 6000"),
        "p6-b300.48xlarge": gpu("B300"),
        "m7i.large": {},
    }
    types = [{"instanceType": name, **facts} for name, facts in told.items()]
    cloud.on("DescribeInstanceTypes", xml("DescribeInstanceTypes", instanceTypeSet=types))
    offered = [
        {"instanceType": name, "location": "use1-az1", "locationType": "availability-zone-id"}
        for name in told
    ]
    cloud.on(
        "DescribeInstanceTypeOfferings",
        xml("DescribeInstanceTypeOfferings", instanceTypeOfferingSet=offered),
    )
    ways = [_way(name, market="on_demand") for name in told]
    found = usable(account, FOOTPRINT, ways, now=NOW)
    kept = ["g4dn.xlarge", "g7e.2xlarge", "p6-b300.48xlarge", "m7i.large"]
    assert [way.instance_type for way in found.ways] == kept
    assert set(_kinds(found)) == {"no_driver"}
    words = {reason.way.instance_type: reason.words for reason in found.rejected}
    assert words["g4ad.xlarge"] == (
        "g4ad.xlarge has GPUs of AMD, and our images a driver for NVIDIA's"
    )
    assert (
        words["p3.2xlarge"]
        == "p3.2xlarge has V100s, and the driver of our images begins with the T4"
    )
    assert "a part of a L4" in words["g6f.large"]
    assert "--image" in found.rejected[0].hint
    # An image of the user's own may have any driver.
    mine = structs.replace(FOOTPRINT, image="ami-1")
    assert len(usable(account, mine, ways, now=NOW).ways) == len(told)


@pytest.mark.usefixtures("_plenty")
def test_a_type_that_is_not_sold_on_the_spot_market(cloud: Cloud, account: Account) -> None:
    told = {"instanceType": "g5.xlarge", "supportedUsageClasses": ["on-demand"]}
    cloud.on("DescribeInstanceTypes", xml("DescribeInstanceTypes", instanceTypeSet=[told]))
    found = usable(account, FOOTPRINT, [_way(), _way(market="on_demand")], now=NOW)
    assert _kinds(found) == ["no_spot"]
    assert [way.market for way in found.ways] == ["on_demand"]


def test_a_quota_that_is_too_small(cloud: Cloud, account: Account) -> None:
    quotas_of(cloud, {"L-DB2E81BA": 0.0, "L-3819A6DF": 8.0, "L-7212CCBC": 96.0})
    found = usable(
        account,
        FOOTPRINT,
        [_way(nodes=2), _way(nodes=3), _way(market="on_demand"), _way("p4d.24xlarge")],
        now=NOW,
        with_scores=False,
    )
    assert [(way.nodes, way.instance_type) for way in found.ways] == [
        (2, "g5.xlarge"),
        (1, "p4d.24xlarge"),
    ]
    assert _kinds(found) == ["quota", "quota"]
    three, on_demand = found.rejected
    assert three.words == (
        "3 × g5.xlarge spot in aws/use1-az1 needs 12 vCPUs, and the account may have 8 in"
        " us-east-1: quota 'All G and VT Spot Instance Requests' (L-3819A6DF)"
    )
    assert three.hint == (
        "aws service-quotas request-service-quota-increase --region us-east-1 --service-code ec2"
        " --quota-code L-3819A6DF --desired-value 12, or https://us-east-1.console.aws.amazon.com"
        "/servicequotas/home/services/ec2/quotas/L-3819A6DF"
    )
    assert "may have 0" in on_demand.words
    assert three.lasting


def test_a_quota_that_others_use_up(cloud: Cloud, account: Account) -> None:
    quotas_of(cloud, {"L-DB2E81BA": 8.0})
    ec2 = account.client("ec2", "us-east-1")
    image = ec2.register_image(Name="any")["ImageId"]
    ec2.run_instances(ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1)
    found = usable(
        account,
        FOOTPRINT,
        [_way(market="on_demand"), _way(market="on_demand", nodes=2)],
        now=NOW,
        with_scores=False,
    )
    assert [way.nodes for way in found.ways] == [1]
    (reason,) = found.rejected
    assert (reason.kind, reason.lasting) == ("in_use", False)
    assert "of which 4 are in use" in reason.words
    assert "--desired-value 12" in reason.hint


def _price(kind: str, zone: str, price: str, hour: int = 11) -> dict[str, str]:
    return {
        "instanceType": kind,
        "productDescription": "Linux/UNIX",
        "spotPrice": price,
        "timestamp": f"2026-11-16T{hour:02}:30:00.000Z",
        "availabilityZone": zone,
    }


def _history(cloud: Cloud, *pages: list[dict[str, str]]) -> None:
    def answer(region: str, asked: Asked) -> Answer:
        assert asked["ProductDescription.1"] == "Linux/UNIX"
        assert asked["Filter.1.Name"] == "instance-type"
        place = int(asked.get("NextToken", 0))
        more = str(place + 1) if place + 1 < len(pages) else ""
        return xml("DescribeSpotPriceHistory", spotPriceHistorySet=pages[place], nextToken=more)

    cloud.on("DescribeSpotPriceHistory", answer)


@pytest.mark.usefixtures("_plenty")
def test_spot_prices_are_those_of_now(cloud: Cloud, account: Account) -> None:
    _history(
        cloud,
        [_price("g5.xlarge", "us-east-1b", "0.40"), _price("g5.xlarge", "us-east-1b", "9", 10)],
        [
            _price("g5.xlarge", "us-east-1c", "0.4321"),
            _price("p4d.24xlarge", "us-east-1b", "30"),
            _price("g5.xlarge", "us-east-1-bos-1a", "0.01"),
            _price("g5.xlarge", "us-east-1c", "none", 12),
            _price("g5.xlarge", "us-east-1c", "0.000", 12),
        ],
    )
    ways = [
        _way(zone="use1-az1"),
        _way(zone="use1-az2", disk_price=20_000),
        _way(zone=""),
        _way("p4d.24xlarge"),
        _way("p4d.24xlarge", zone="", market="on_demand", price=21_957_642),
        _way("p4d.24xlarge", nodes=2),
    ]
    found = usable(account, FOOTPRINT, ways, now=NOW)
    assert [way.price for way in found.ways] == [400_000, 452_100, 400_000, 21_957_642, 30_000_000]
    # Dearer than on-demand, where that can be had: of two there is only spot.
    assert _kinds(found) == ["price"]
    assert found.rejected[0].words == (
        "spot costs $30.00 an hour in aws/use1-az1 now, and on-demand $21.957642"
    )


def test_how_prices_went(cloud: Cloud, account: Account) -> None:
    _history(cloud, [_price("g5.xlarge", "us-east-1b", f"0.{hour}", hour) for hour in (11, 9, 10)])
    found = prices.history(account, "us-east-1", ["g5.xlarge"], NOW, hours=24)
    assert [it.price for it in found["g5.xlarge", "use1-az1"]] == [900_000, 100_000, 110_000]
    asked = next(it for _, name, it in cloud.asked if name == "DescribeSpotPriceHistory")
    assert asked["StartTime"] == "2026-11-15T12:00:00Z"
    assert prices.history(account, "us-east-1", [], NOW, hours=24) == {}


@pytest.mark.usefixtures("_plenty")
def test_scores_are_told_best_first(cloud: Cloud, account: Account) -> None:
    def answer(region: str, asked: Asked) -> Answer:
        assert asked["SingleAvailabilityZone"] == "true"
        assert (asked["InstanceType.1"], asked["TargetCapacity"]) == ("g5.xlarge", "1")
        told = {"use1-az1": 3, "use1-az2": 9, "use1-az5": 10}
        return xml(
            "GetSpotPlacementScores",
            spotPlacementScoreSet=[
                {"region": "us-east-1", "availabilityZoneId": zone, "score": score}
                for zone, score in told.items()
            ],
        )

    cloud.on("GetSpotPlacementScores", answer)
    ways = [
        _way(zone="use1-az1"),
        _way(zone="use1-az2"),
        _way(zone="", market="on_demand", price=2**20),
    ]
    found = usable(account, FOOTPRINT, ways, now=NOW)
    assert list(found.scores.items()) == [
        ("spot g5.xlarge in aws/use1-az2", 9),
        ("spot g5.xlarge in aws/use1-az1", 3),
    ]
    assert list(found.ways) == ways
    usable(account, FOOTPRINT, ways, now=NOW)
    assert cloud.actions().count("GetSpotPlacementScores") == 1


def test_without_scores_there_is_no_trouble(cloud: Cloud, account: Account) -> None:
    cloud.on("GetSpotPlacementScores", error("MaxConfigLimitExceeded"))
    assert scores.scores(account, "g5.xlarge", 1, ["us-east-1"]) == {}


@pytest.mark.usefixtures("_plenty")
def test_a_region_that_fails_holds_nothing_against_its_ways(cloud: Cloud, account: Account) -> None:
    def denied(region: str, asked: Asked) -> Answer | None:
        return error("UnauthorizedOperation", status=403) if region == "us-west-2" else None

    cloud.on("DescribeAvailabilityZones", denied)
    ways = [_way(region="us-west-2", zone="usw2-az1"), _way(zone="use1-az3"), _way()]
    found = usable(account, FOOTPRINT, ways, now=NOW)
    assert list(found.ways) == [ways[0], ways[2]]
    assert _kinds(found) == ["not_offered"]
    assert [warning[:10] for warning in found.warnings] == ["us-west-2:"]


def test_denied_quotas_are_a_warning(cloud: Cloud, account: Account) -> None:
    cloud.on("GetServiceQuota", json_error("AccessDeniedException", "not authorized"))
    cloud.on("DescribeRegions", error("UnauthorizedOperation", status=403))
    found = usable(account, FOOTPRINT, [_way()], now=NOW, with_scores=False)
    assert len(found.ways) == 1
    assert found.warnings[0] == "which regions the account has switched on is not known"
    assert "All G and VT Spot Instance Requests is not known" in found.warnings[1]


@pytest.mark.usefixtures("_plenty")
def test_a_region_that_does_not_answer_is_not_waited_for(cloud: Cloud, account: Account) -> None:
    over = threading.Event()

    def slow(region: str, asked: Asked) -> Answer | None:
        if region == "us-west-2":
            over.wait(60)
        return None

    cloud.on("DescribeAvailabilityZones", slow)
    ways = [_way(region="us-west-2", zone="usw2-az1")]
    zones.regions(account)  # so that only the slow answer is waited for
    try:
        found = usable(account, FOOTPRINT, ways, now=NOW, patience_s=0.5)
    finally:
        over.set()
    assert list(found.ways) == ways
    assert found.warnings == ("us-west-2 has not answered within 0.5 s",)
