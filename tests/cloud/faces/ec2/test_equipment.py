"""The equipment itself, without bodies, by real boto3: tokens, limits, faults and late listings."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from tests.cloud.faces.ec2.asking import KIND, ids, launch, listed, refused
from tests.cloud.faces.ec2.control import Control

pytestmark = pytest.mark.slow

# -- tokens ----------------------------------------------------------------------------------------


def test_a_token_buys_once_however_many_ask(cloud: Control) -> None:
    told: list[Any] = []
    asking = [
        threading.Thread(target=lambda: told.append(launch(cloud, "once", most=2)))
        for _ in range(8)
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert len({tuple(ids(each)) for each in told}) == 1
    assert len({each["ReservationId"] for each in told}) == 1
    assert sorted(listed(cloud)) == sorted(ids(told[0]))


def test_a_token_is_remembered_after_the_end_and_for_other_wishes(cloud: Control) -> None:
    first = launch(cloud, "kept")
    cloud.client("ec2").terminate_instances(InstanceIds=ids(first))
    cloud.wait(ids(first)[0], "terminated")
    assert ids(launch(cloud, "kept")) == ids(first)
    assert refused(launch, cloud, "kept", most=2) == ("IdempotentParameterMismatch", 400)
    found = cloud.client("ec2").describe_instances(
        Filters=[{"Name": "client-token", "Values": ["kept"]}]
    )
    assert ids(found["Reservations"][0]) == ids(first)


def test_a_lost_answer_was_carried_out(cloud: Control) -> None:
    cloud.lose("RunInstances")
    with pytest.raises(ConnectionClosedError):
        launch(cloud, "lost")
    assert len(listed(cloud)) == 1
    assert ids(launch(cloud, "lost")) == listed(cloud)


# -- limits ----------------------------------------------------------------------------------------


def test_capacity_is_all_or_none(cloud: Control) -> None:
    cloud.capacity(3, zone="us-east-1a", kind=KIND, market="spot")
    here: dict[str, Any] = {"Placement": {"AvailabilityZone": "us-east-1a"}}
    assert len(ids(launch(cloud, most=2, spot=True, **here))) == 2
    wrong = refused(launch, cloud, most=2, spot=True, **here)
    assert wrong == ("InsufficientInstanceCapacity", 500)
    assert len(listed(cloud)) == 2
    assert len(ids(launch(cloud, least=1, most=2, spot=True, **here))) == 1
    assert len(ids(launch(cloud, most=2, **here))) == 2  # of the other market
    elsewhere = launch(cloud, most=4, spot=True)  # no zone named: EC2 chooses one with room
    assert elsewhere["Instances"][0]["Placement"]["AvailabilityZone"] != "us-east-1a"
    cloud.capacity(None, zone="us-east-1a", kind=KIND, market="spot")


def test_boto_asks_again_when_there_is_no_capacity(cloud: Control) -> None:
    cloud.capacity(0)
    before = len(cloud.calls("RunInstances"))
    assert refused(launch, cloud, attempts=2)[0] == "InsufficientInstanceCapacity"
    assert len(cloud.calls("RunInstances")) == before + 2


def test_quotas_count_vcpus_of_a_family(cloud: Control) -> None:
    cloud.quota("L-DB2E81BA", 8)
    cloud.quota("L-3819A6DF", 4)
    launch(cloud, most=2)
    assert refused(launch, cloud) == ("VcpuLimitExceeded", 400)
    launch(cloud, spot=True)
    assert refused(launch, cloud, spot=True) == ("MaxSpotInstanceCountExceeded", 400)
    quotas = cloud.client("service-quotas")
    told = quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-DB2E81BA")["Quota"]
    assert (told["Value"], told["QuotaName"]) == (8, "Running On-Demand G and VT instances")
    listing = quotas.get_paginator("list_service_quotas").paginate(ServiceCode="ec2")
    found = {each["QuotaCode"]: each["Value"] for page in listing for each in page["Quotas"]}
    assert found["L-3819A6DF"] == 4
    assert found["L-417A185B"] == 100_000
    nothing = refused(quotas.get_service_quota, ServiceCode="ec2", QuotaCode="L-0")
    assert nothing[0] == "NoSuchResourceException"
    cloud.quota("L-DB2E81BA", 10_000)
    cloud.quota("L-3819A6DF", 10_000)


def test_errors_on_request(cloud: Control) -> None:
    ec2 = cloud.client("ec2")
    cloud.fail("DescribeInstances", count=2)
    assert refused(ec2.describe_instances) == ("RequestLimitExceeded", 503)
    assert ec2.describe_vpcs()["Vpcs"]
    assert refused(ec2.describe_instances) == ("RequestLimitExceeded", 503)
    assert "Reservations" in ec2.describe_instances()
    cloud.fail("GetParameter", "ThrottlingException")
    ssm = cloud.client("ssm")
    assert refused(ssm.get_parameter, Name="x") == ("ThrottlingException", 400)
    cloud.fail("GetCallerIdentity", "ExpiredToken", status=403)
    assert refused(cloud.client("sts").get_caller_identity) == ("ExpiredToken", 403)


def test_a_dry_run_does_nothing(cloud: Control) -> None:
    assert refused(launch, cloud, DryRun=True) == ("DryRunOperation", 412)
    ec2 = cloud.client("ec2")
    asked = {"GroupName": "g", "Strategy": "cluster", "DryRun": True}
    assert refused(ec2.create_placement_group, **asked) == ("DryRunOperation", 412)
    assert ec2.describe_placement_groups()["PlacementGroups"] == []
    assert listed(cloud) == []


def test_listings_are_late_when_told_so(cloud: Control) -> None:
    cloud.dials(lag_s=1000)
    (machine,) = ids(launch(cloud))
    assert listed(cloud) == []
    ec2 = cloud.client("ec2")
    unknown = refused(ec2.describe_instances, InstanceIds=[machine])
    assert unknown == ("InvalidInstanceID.NotFound", 400)
    cloud.advance(1001)
    assert listed(cloud) == [machine]
    ec2.terminate_instances(InstanceIds=[machine])
    assert cloud.state(machine) == "running"
    cloud.advance(1001)
    cloud.wait(machine, "terminated")


def test_what_is_named_must_be_there(cloud: Control) -> None:
    profile: dict[str, Any] = {"IamInstanceProfile": {"Name": "late"}}
    wrong = [
        refused(launch, cloud, InstanceType="g5.nothing"),
        refused(launch, cloud, **profile),
        refused(launch, cloud, Placement={"AvailabilityZoneId": "use1-az99"}),
    ]
    assert wrong == [("InvalidParameterValue", 400)] * 3
    assert refused(launch, cloud, KeyName="nobody's") == ("InvalidKeyPair.NotFound", 400)
    assert refused(launch, cloud, SubnetId="subnet-0") == ("InvalidSubnetID.NotFound", 400)
    cloud.dials(iam_lag_s=100)
    iam = cloud.client("iam")
    iam.create_role(RoleName="late", AssumeRolePolicyDocument="{}")
    iam.create_instance_profile(InstanceProfileName="late")
    iam.add_role_to_instance_profile(InstanceProfileName="late", RoleName="late")
    assert refused(launch, cloud, **profile) == ("InvalidParameterValue", 400)
    cloud.advance(101)
    told = launch(cloud, most=2, **profile)
    assert all(each["IamInstanceProfile"]["Arn"].endswith("/late") for each in told["Instances"])
    cloud.dials(iam_lag_s=0)


def test_what_is_launched_together_is_tagged_and_ends_together(cloud: Control) -> None:
    ec2 = cloud.client("ec2")
    (subnet,) = ec2.describe_subnets(
        Filters=[{"Name": "availability-zone-id", "Values": ["use1-az4"]}]
    )["Subnets"]
    sorts = ("instance", "volume", "network-interface", "spot-instances-request")
    group = ec2.create_security_group(GroupName="g", Description="g", VpcId=subnet["VpcId"])
    card = {"DeviceIndex": 0, "SubnetId": subnet["SubnetId"], "Groups": [group["GroupId"]]}
    tags = [{"Key": "owner", "Value": "me"}]
    told = launch(
        cloud,
        most=2,
        spot=True,
        NetworkInterfaces=[card],
        TagSpecifications=[{"ResourceType": sort, "Tags": tags} for sort in sorts],
    )
    (one, two) = told["Instances"]
    assert one["Placement"]["AvailabilityZoneId"] == "use1-az4"
    assert [one["AmiLaunchIndex"], two["AmiLaunchIndex"]] == [0, 1]
    assert [each["GroupId"] for each in one["SecurityGroups"]] == [group["GroupId"]]
    mine = [{"Name": "tag:owner", "Values": ["me"]}]
    assert len(ec2.describe_volumes(Filters=mine)["Volumes"]) == 2
    assert len(ec2.describe_network_interfaces(Filters=mine)["NetworkInterfaces"]) == 2
    assert len(ec2.describe_spot_instance_requests(Filters=mine)["SpotInstanceRequests"]) == 2
    ec2.terminate_instances(InstanceIds=ids(told))
    assert ec2.describe_volumes(Filters=mine)["Volumes"] == []
    assert ec2.describe_network_interfaces(Filters=mine)["NetworkInterfaces"] == []
    ec2.delete_security_group(GroupId=group["GroupId"])
