"""The equipment itself, without bodies, by real boto3: what moto lacks, spot, the bill."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from tests.cloud.faces.ec2.asking import KIND, ids, launch, refused
from tests.cloud.faces.ec2.control import Control
from tests.eventually import eventually

pytestmark = pytest.mark.slow

# -- what moto answers with 500 --------------------------------------------------------------------


def test_placement_groups(cloud: Control) -> None:
    ec2 = cloud.client("ec2")
    tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "owner", "Value": "me"}]}]
    made = ec2.create_placement_group(GroupName="near", Strategy="cluster", TagSpecifications=tags)[
        "PlacementGroup"
    ]
    mine = [{"Name": "tag:owner", "Values": ["me"]}]
    assert ec2.describe_placement_groups(Filters=mine)["PlacementGroups"] == [made]
    told = launch(cloud, Placement={"GroupName": "near"})
    assert told["Instances"][0]["Placement"]["GroupName"] == "near"
    assert refused(ec2.delete_placement_group, GroupName="near")[0] == "InvalidPlacementGroup.InUse"
    ec2.terminate_instances(InstanceIds=ids(told))
    ec2.delete_placement_group(GroupName="near")
    assert made["GroupId"] not in cloud.left()
    assert (
        refused(launch, cloud, Placement={"GroupName": "x"})[0] == "InvalidPlacementGroup.Unknown"
    )


def test_a_security_group_stays_while_machines_are_behind_it(cloud: Control) -> None:
    ec2 = cloud.client("ec2")
    tags = [{"ResourceType": "security-group", "Tags": [{"Key": "owner", "Value": "me"}]}]
    given = {"GroupName": "us", "Description": "x", "TagSpecifications": tags}
    group = ec2.create_security_group(**given)["GroupId"]
    assert group in cloud.left()
    told = launch(cloud, SecurityGroupIds=[group])
    assert refused(ec2.delete_security_group, GroupId=group)[0] == "DependencyViolation"
    ec2.terminate_instances(InstanceIds=ids(told))
    eventually(lambda: cloud.state(ids(told)[0]) == "terminated")
    ec2.delete_security_group(GroupId=group)
    assert group not in cloud.left()


def test_scores_and_reservations(cloud: Control) -> None:
    ec2 = cloud.client("ec2")
    cloud.score("use1-az2", 3)
    told = ec2.get_spot_placement_scores(
        InstanceTypes=[KIND],
        TargetCapacity=4,
        SingleAvailabilityZone=True,
        RegionNames=["us-east-1", "us-west-2"],
    )["SpotPlacementScores"]
    scores = {each["AvailabilityZoneId"]: each["Score"] for each in told}
    assert scores["use1-az1"] == 9
    assert any(each["Region"] == "us-west-2" for each in told)
    assert ec2.describe_capacity_reservations()["CapacityReservations"] == []
    cloud.reservation(
        "us-east-1",
        CapacityReservationId="cr-1",
        InstanceType="p5.48xlarge",
        State="active",
        AvailabilityZone="us-east-1a",
        TotalInstanceCount=2,
        AvailableInstanceCount=1,
    )
    (one,) = ec2.describe_capacity_reservations(Filters=[{"Name": "state", "Values": ["active"]}])[
        "CapacityReservations"
    ]
    assert (one["CapacityReservationId"], one["AvailableInstanceCount"]) == ("cr-1", 1)


def test_prices_over_time(cloud: Control) -> None:
    now = cloud.now()
    cloud.spot_price(KIND, "us-east-1b", 0.30, at=now - 7200)
    cloud.spot_price(KIND, "us-east-1b", 0.50, at=now - 3600)
    told = cloud.client("ec2").describe_spot_price_history(
        InstanceTypes=[KIND],
        AvailabilityZone="us-east-1b",
        ProductDescriptions=["Linux/UNIX"],
        StartTime=datetime.fromtimestamp(now - 5000, UTC),
    )["SpotPriceHistory"]
    assert [float(each["SpotPrice"]) for each in told] == [0.5, 0.3]
    assert told[0]["Timestamp"].timestamp() == int(now - 3600)


def test_images_by_public_parameters(cloud: Control) -> None:
    for region in ("us-east-1", "eu-west-1"):
        name = "/aws/service/deeplearning/ami/x86_64/"
        name += "base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
        found = cloud.client("ssm", region).get_parameter(Name=name)["Parameter"]["Value"]
        (image,) = cloud.client("ec2", region).describe_images(ImageIds=[found])["Images"]
        assert "Deep Learning" in image["Name"]
        assert image["RootDeviceName"] == "/dev/sda1"
    assert refused(launch, cloud, ImageId="ami-0123456789abcdef0")[0] == "InvalidAMIID.NotFound"


# -- ends, and what they cost ----------------------------------------------------------------------


def test_an_interruption(cloud: Control) -> None:
    told = launch(cloud, spot=True)
    (machine,) = ids(told)
    number = told["Instances"][0]["SpotInstanceRequestId"]
    ec2 = cloud.client("ec2")

    def request() -> Any:
        asked = ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[number])
        return asked["SpotInstanceRequests"][0]

    assert (request()["State"], request()["Status"]["Code"]) == ("active", "fulfilled")
    cloud.interrupt(machine, notice_s=500)
    assert request()["Status"]["Code"] == "marked-for-termination"
    cloud.advance(501)
    cloud.wait(machine, "terminated")
    after = request()
    assert after["State"] == "closed"
    assert after["Status"]["Code"] == "instance-terminated-no-capacity"
    assert abs(after["Status"]["UpdateTime"].timestamp() - cloud.now()) < 60
    gone = ec2.describe_instances(InstanceIds=[machine])["Reservations"][0]["Instances"][0]
    assert gone["StateReason"]["Code"] == "Server.SpotInstanceTermination"


def test_a_trace_takes_machines_and_gives_room_again(cloud: Control) -> None:
    here: dict[str, Any] = {"Placement": {"AvailabilityZone": "us-east-1c"}, "spot": True}
    (machine,) = ids(launch(cloud, **here))
    cloud.trace("us-east-1c", [(0, 1), (3600, 0), (7200, 5)], speed=60)
    assert refused(launch, cloud, **here)[0] == "InsufficientInstanceCapacity"
    cloud.advance(61)
    cloud.advance(2)  # the notice
    cloud.wait(machine, "terminated")
    assert refused(launch, cloud, **here)[0] == "InsufficientInstanceCapacity"
    cloud.advance(60)
    assert len(ids(launch(cloud, most=5, **here))) == 5


def test_the_bill(cloud: Control) -> None:
    cloud.on_demand_price(KIND, 3.6)
    cloud.spot_price(KIND, "us-east-1d", 0.36, at=cloud.now() - 10)
    disk = [{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3"}}]
    (short,) = ids(launch(cloud))
    there: dict[str, Any] = {"Placement": {"AvailabilityZone": "us-east-1d"}}
    (long,) = ids(launch(cloud, spot=True, BlockDeviceMappings=disk, **there))
    ec2 = cloud.client("ec2")
    ec2.terminate_instances(InstanceIds=[short])
    cloud.advance(1000)
    cloud.spot_price(KIND, "us-east-1d", 0.72)
    cloud.advance(4400)
    ec2.terminate_instances(InstanceIds=[long])
    cloud.advance(10_000)
    bill = cloud.bill()
    rows = {each["id"]: each for each in bill["machines"]}
    assert rows[short]["seconds"] == 60
    assert rows[short]["usd"] == pytest.approx(0.06)
    assert rows[long]["seconds"] == pytest.approx(5400, abs=30)
    assert rows[long]["usd"] == pytest.approx(0.36 + 0.36, rel=0.05)  # an hour, and half of one
    (volume,) = [each for each in bill["volumes"] if each["machine"] == long]
    assert volume["gb_s"] == pytest.approx(100 * 5400, rel=0.05)
    eventually(lambda: cloud.left() == [])
    assert {"machine", "volume", "network-interface"} <= {e["sort"] for e in cloud.everything()}


def test_times_are_of_its_own_clock(cloud: Control) -> None:
    told = launch(cloud)
    date = parsedate_to_datetime(told["ResponseMetadata"]["HTTPHeaders"]["date"]).timestamp()
    assert abs(date - cloud.now()) < 60
    assert told["Instances"][0]["LaunchTime"].timestamp() <= date
    cloud.client("ec2").terminate_instances(InstanceIds=ids(told))
    cloud.wait(ids(told)[0], "terminated")
    found = cloud.client("ec2").describe_instances(InstanceIds=ids(told))
    reason = found["Reservations"][0]["Instances"][0]["StateTransitionReason"]
    ended = datetime.strptime(reason[:-4] + "+0000", "User initiated (%Y-%m-%d %H:%M:%S %z")
    assert abs(ended.timestamp() - cloud.now()) < 60


def test_where_it_is_and_what_it_does_not_know(server: Control) -> None:
    assert server.env["AWS_ENDPOINT_URL"].startswith("http://127.0.0.1:")
    with pytest.raises(ValueError, match="no control 'nonsense'"):
        server._do("nonsense")


def test_a_bid_below_the_price_is_refused(cloud: Control) -> None:
    cloud.spot_price(KIND, "us-east-1f", 0.5)
    options = {"MarketType": "spot", "SpotOptions": {"MaxPrice": "0.4"}}
    wishes: dict[str, Any] = {"Placement": {"AvailabilityZone": "us-east-1f"}}
    wrong = refused(launch, cloud, InstanceMarketOptions=options, **wishes)
    assert wrong == ("SpotMaxPriceTooLow", 400)
