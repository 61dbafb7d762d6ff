"""Which quota governs a machine, what it is, and how much of it is used."""

from __future__ import annotations

import pytest

from tests.providers.aws.cloud import Cloud, error, json_error, quotas_of, xml
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits import quotas
from tradewind.providers.aws.limits.quotas import Key, governing

HERE = "us-east-1"


@pytest.mark.parametrize(
    ("kind", "on_demand", "spot"),
    [
        ("g4dn.xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("g6e.48xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("vt1.3xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("p3dn.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p4de.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5en.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("p6-b200.48xlarge", "L-417A185B", ""),
        ("trn1n.32xlarge", "L-2C3B7624", "L-6B0D517C"),
        ("inf2.xlarge", "L-1945791B", "L-B5D1601B"),
        ("dl1.24xlarge", "L-6E869C2A", "L-85EED4F7"),
        ("f2.12xlarge", "L-74FC7D96", "L-88CF9481"),
        ("x2idn.32xlarge", "L-7295265B", "L-E3A00192"),
        ("m7i.large", "L-1216C47A", "L-34B43A08"),
        ("c8g.large", "L-1216C47A", "L-34B43A08"),
        ("im4gn.large", "L-1216C47A", "L-34B43A08"),
        ("is4gen.large", "L-1216C47A", "L-34B43A08"),
        ("i4i.large", "L-1216C47A", "L-34B43A08"),
        ("u7i-12tb.224xlarge", "L-43DA4232", None),
        ("hpc7a.12xlarge", "L-F7808C92", None),
        ("q1.large", None, None),
        ("", None, None),
    ],
)
def test_the_code_of_each_family(kind: str, on_demand: str | None, spot: str | None) -> None:
    for market, code in (("on_demand", on_demand), ("reserved_1y", on_demand), ("spot", spot)):
        key = governing(kind, market)
        assert (key.code if key else None) == code


def test_names_are_those_of_aws() -> None:
    p5 = governing("p5.48xlarge", "spot")
    assert p5 == Key("L-C4BD4855", "All P5 Spot Instance Requests")
    assert governing("p6-b300.48xlarge", "spot") == Key("", "All P6 Spot Instance Requests")
    g = governing("g5.xlarge", "on_demand")
    assert g
    assert g.name == "Running On-Demand G and VT instances"


def test_how_to_raise_it() -> None:
    quota = quotas.Quota(region="eu-west-1", code="L-DB2E81BA", name="G", limit=8, used=12)
    assert quota.free == 0
    assert quota.link == (
        "https://eu-west-1.console.aws.amazon.com/servicequotas/home/services/ec2/quotas/L-DB2E81BA"
    )
    assert quota.raising(16) == (
        "aws service-quotas request-service-quota-increase --region eu-west-1 --service-code ec2"
        " --quota-code L-DB2E81BA --desired-value 16"
    )


def _run(account: Account, kind: str, number: int, **options: object) -> None:
    ec2 = account.client("ec2", HERE)
    image = ec2.register_image(Name=f"{kind}{number}{options}")["ImageId"]
    ec2.run_instances(ImageId=image, InstanceType=kind, MinCount=number, MaxCount=number, **options)


def test_what_runs_is_counted_by_family_and_market(cloud: Cloud, account: Account) -> None:
    _run(account, "g5.xlarge", 2)
    _run(account, "g6.2xlarge", 1)
    _run(account, "g5.xlarge", 3, InstanceMarketOptions={"MarketType": "spot"})
    _run(account, "m7i.large", 1)
    ec2 = account.client("ec2", HERE)
    _run(account, "p4d.24xlarge", 1)
    p4d = ec2.describe_instances(Filters=[{"Name": "instance-type", "Values": ["p4d.24xlarge"]}])
    ec2.terminate_instances(InstanceIds=[p4d["Reservations"][0]["Instances"][0]["InstanceId"]])
    used = quotas.in_use(account, HERE)
    assert {key.code: vcpus for key, vcpus in used.items()} == {
        "L-DB2E81BA": 16,
        "L-3819A6DF": 12,
        "L-1216C47A": 2,
    }
    assert quotas.in_use(account, "eu-west-1") == {}


def test_what_is_asked_of_the_spot_market_counts_too(cloud: Cloud, account: Account) -> None:
    """EC2 refuses with MaxSpotInstanceCountExceeded by them as well. Those that have their machine
    are counted by it."""
    rows = [
        {"state": "open", "launchSpecification": {"instanceType": "g5.xlarge"}},
        {"state": "open", "launchSpecification": {"instanceType": "g5.2xlarge"}},
        {"state": "open", "launchSpecification": {"instanceType": "g5.2xlarge"}, "instanceId": "i"},
    ]
    cloud.on(
        "DescribeSpotInstanceRequests",
        xml("DescribeSpotInstanceRequests", spotInstanceRequestSet=rows),
    )
    key = quotas.governing("g5.xlarge", "spot")
    assert key is not None
    assert quotas.in_use(account, HERE) == {key: 4 + 8}
    (asked,) = [f for _, action, f in cloud.asked if action == "DescribeSpotInstanceRequests"]
    assert "open" in asked.values() or ["open"] in asked.values()


def test_cores_as_they_were_asked_for(cloud: Cloud, account: Account) -> None:
    """moto tells no cores; and what has a quota of its own does not count."""

    def instance(kind: str, cores: int, threads: int, **other: object) -> dict[str, object]:
        options = {"coreCount": cores, "threadsPerCore": threads}
        return {"instanceType": kind, "cpuOptions": options} | other

    cloud.on(
        "DescribeInstances",
        xml(
            "DescribeInstances",
            reservationSet=[
                {
                    "instancesSet": [
                        instance("p5.48xlarge", 96, 1, instanceLifecycle="spot"),
                        instance("p5.48xlarge", 96, 2, instanceLifecycle="capacity-block"),
                        instance("g5.xlarge", 2, 2, placement={"tenancy": "host"}),
                        instance("q9.large", 1, 2),
                    ]
                }
            ],
        ),
    )
    used = quotas.in_use(account, HERE)
    assert used == {Key("L-C4BD4855", "All P5 Spot Instance Requests"): 96}


def test_limits_and_use_together(cloud: Cloud, account: Account) -> None:
    quotas_of(cloud, {"L-DB2E81BA": 64.0}, {"L-DB2E81BA": "G and others"})
    _run(account, "g5.xlarge", 2)
    (quota,) = quotas.quotas(account, HERE, [("g5.xlarge", "on_demand")]).values()
    # The name is what AWS calls it now.
    assert (quota.limit, quota.used, quota.free) == (64, 8, 56)
    assert (quota.name, quota.trouble) == ("G and others", "")


@pytest.mark.parametrize(
    "name", ["All P6 Spot Instance Requests", "All P5 and P6 Spot Instance Requests"]
)
def test_a_quota_without_a_code_is_found_by_name(cloud: Cloud, account: Account, name: str) -> None:
    names = {"L-00000001": "Other", "L-00000002": "All P60 Spot Instance Requests"}
    quotas_of(cloud, dict.fromkeys([*names, "L-00000003"], 192.0), names | {"L-00000003": name})
    (quota,) = quotas.quotas(account, HERE, [("p6-b200.48xlarge", "spot")]).values()
    assert (quota.code, quota.name, quota.limit) == ("L-00000003", name, 192)
    assert cloud.actions().count("ListServiceQuotas") == 3


def test_a_code_that_is_no_more_is_found_by_name(cloud: Cloud, account: Account) -> None:
    quotas_of(cloud, {"L-11111111": 24.0}, {"L-11111111": "Running On-Demand Trn instances"})
    (quota,) = quotas.quotas(account, HERE, [("trn1.32xlarge", "on_demand")]).values()
    assert (quota.code, quota.limit) == ("L-11111111", 24)


def test_what_may_not_be_seen_is_unknown(cloud: Cloud, account: Account) -> None:
    cloud.on("GetServiceQuota", json_error("AccessDeniedException", "not authorized"))
    cloud.on("DescribeInstances", error("UnauthorizedOperation", status=403))
    (quota,) = quotas.quotas(account, HERE, [("g5.xlarge", "spot")]).values()
    assert (quota.limit, quota.used, quota.free) == (None, None, None)
    assert "AccessDeniedException" in quota.trouble
    quotas_of(cloud, {"L-3819A6DF": 8.0})
    (quota,) = quotas.quotas(account, HERE, [("g5.xlarge", "spot")]).values()
    assert (quota.limit, quota.used, quota.free) == (8, None, 8)
