"""EC2 by real boto3, on equipment that has its tokens, limits, lags and lost answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from msgspec.structs import replace

from tests.ec2.control import Control
from tests.ec2.server import running
from tests.eventually import eventually
from tests.providers.aws.machines import KIND, REGION, ZONE, argument, footprint, open_aws, way
from tests.providers.conformance import Conformance, Place
from tradewind import clock
from tradewind.model.run import Way
from tradewind.providers.aws import provider
from tradewind.providers.aws.machines import groups, reservations
from tradewind.providers.aws.machines.order import Reservation
from tradewind.providers.aws.provider import AwsProvider
from tradewind.providers.base import OutcomeUnknown, Refused


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Control]:
    with running(tmp_path_factory.mktemp("ec2"), bodies="none") as control:
        control.dials(pending_s=0, shutting_down_s=0)
        yield control


@pytest.fixture
def cloud(server: Control, monkeypatch: pytest.MonkeyPatch) -> Iterator[Control]:
    """As nobody has used it before: everything of earlier tests is another owner's."""
    for name, value in server.env.items():
        monkeypatch.setenv(name, value)
    yield server
    server.dials(lag_s=0)
    server.capacity(None, zone=ZONE, kind=KIND)
    server.end_all()


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> str:
    return f"s3://b/{request.node.name[:60]}".replace("[", "-").replace("]", "")


@pytest.fixture
def aws(cloud: Control, owner: str) -> AwsProvider:
    return open_aws(argument(cloud, footprint(cloud), owner))


class TestAws(Conformance):
    @pytest.fixture
    def place(self, cloud: Control, aws: AwsProvider, owner: str) -> Place:
        made = footprint(cloud)
        return Place(
            aws,
            way(),
            others=open_aws(argument(cloud, made, owner + "-2")),
            client=("tests.providers.aws.machines:open_aws", argument(cloud, made, owner)),
            crashes=6,
        )


def at(aws: AwsProvider, on: Way | None = None, nodes: int = 1) -> Place:
    return Place(aws, replace(on or way(), nodes=nodes))


def test_the_account_is_asked_for_nothing_that_was_not_set_up(aws: AwsProvider) -> None:
    with pytest.raises(Refused, match="nothing is set up in eu-west-1") as caught:
        aws.launch(at(aws, way(region="eu-west-1", zone="euw1-az1")).request(), 1)
    assert caught.value.kind == "not_found"
    with pytest.raises(Refused, match=r"there is no p9\.huge") as caught:
        aws.launch(at(aws, way(instance_type="p9.huge")).request(), 1)
    assert caught.value.kind == "not_found"


def test_no_gpu_is_bought_that_the_image_cannot_drive(cloud: Control, owner: str) -> None:
    old = way(instance_type="p3dn.24xlarge")
    aws = open_aws(argument(cloud, footprint(cloud), owner))
    with pytest.raises(Refused, match="has V100s, and the driver of our images") as caught:
        aws.launch(at(aws, old).request(), 1)
    assert caught.value.kind == "not_allowed"
    assert "--image" in str(caught.value.hint)
    assert not aws.list_machines().machines


def test_all_regions_are_listed_at_once(cloud: Control, owner: str) -> None:
    made = footprint(cloud, REGION, "eu-west-1")
    both = open_aws(argument(cloud, made, owner))
    zone = sorted(made.regions["eu-west-1"].subnets)[0]
    (here,) = both.launch(at(both).request(leg=1), 1)
    (there,) = both.launch(at(both, way(region="eu-west-1", zone=zone)).request(leg=2), 1)
    assert there.machine_id.startswith("aws-eu-west-1-i-")
    eventually(lambda: set(both.list_machines().machines) == {here, there})
    cloud.fail("DescribeInstances", "InternalError", count=8, status=500)
    with pytest.raises(OutcomeUnknown):  # what cannot be seen there may well live
        both.list_machines()
    eventually(lambda: not _fails(both))
    both.terminate([here.machine_id, there.machine_id])
    eventually(lambda: all(m.ended_s is not None for m in both.list_machines().machines))


def _fails(aws: AwsProvider) -> bool:
    try:
        aws.list_machines()
    except OutcomeUnknown:
        return True
    return False


def test_no_capacity_buys_none_of_a_gang(cloud: Control, aws: AwsProvider) -> None:
    cloud.capacity(1, zone=ZONE, kind=KIND)
    with pytest.raises(Refused, match="InsufficientInstanceCapacity") as caught:
        aws.launch(at(aws).request(nodes=2), 1)
    assert caught.value.kind == "no_capacity"
    assert aws.list_machines().machines == ()
    elsewhere = way(zone="use1-az2")
    assert len(aws.launch(at(aws, elsewhere).request(leg=2, nodes=2), 1)) == 2


def test_a_quota_is_told_as_one(cloud: Control, aws: AwsProvider) -> None:
    cloud.quota("L-DB2E81BA", 4)
    with pytest.raises(Refused) as caught:
        aws.launch(at(aws).request(nodes=2), 1)
    assert caught.value.kind == "no_quota"
    cloud.quota("L-DB2E81BA", 10_000)


def test_a_lost_answer_is_found_out(cloud: Control, aws: AwsProvider) -> None:
    """By asking again, with the same token and another link: we, and not boto3 by itself, whose
    last answer, such as that of a throttled call, would stand for all."""
    cloud.lose(count=1)
    asked = at(aws).request(nodes=2)
    with pytest.raises(OutcomeUnknown):
        aws.launch(asked, 1)
    bought = aws.launch(asked, 1)
    assert [machine.rank for machine in bought] == [0, 1]
    assert len(aws.list_machines().machines) == 2


def test_what_is_not_listed_yet_is_not_bought_again(
    cloud: Control, aws: AwsProvider, owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.dials(lag_s=3)
    asked = at(aws).request(nodes=2)
    first = aws.launch(asked, 1)
    assert aws.list_machines().machines == ()
    other = open_aws(argument(cloud, footprint(cloud), owner))
    assert list(other.launch(asked, 1)) == list(first)  # its link differs; it waits until it sees
    assert len(cloud.bill()["machines"]) == len({m["id"] for m in cloud.bill()["machines"]})
    monkeypatch.setattr(provider, "_WAIT_S", 0.1)
    asked = at(aws).request(leg=2)
    aws.launch(asked, 1)
    with pytest.raises(OutcomeUnknown, match="IdempotentParameterMismatch"):
        other.launch(asked, 1)


def test_a_machine_that_is_not_listed_yet_can_be_terminated(
    cloud: Control, aws: AwsProvider
) -> None:
    cloud.dials(lag_s=2)
    (machine,) = aws.launch(at(aws).request(), 1)
    aws.terminate([machine.machine_id])
    cloud.dials(lag_s=0)
    ended = eventually(lambda: [m for m in aws.list_machines().machines if m.ended_s is not None])
    assert [m.machine_id for m in ended] == [machine.machine_id]


def test_a_spot_machine_that_was_taken_says_when(cloud: Control, aws: AwsProvider) -> None:
    (machine,) = aws.launch(at(aws, way(market="spot")).request(), 1)
    cloud.interrupt(machine.machine_id.removeprefix(f"aws-{REGION}-"), notice_s=0)

    def ended() -> int:
        (listed,) = aws.list_machines().machines
        return listed.ended_s or 0

    at_s = eventually(ended)
    assert machine.launched_s <= at_s <= aws.list_machines().at_s
    assert ended() == at_s  # and says the same each time


def test_being_throttled_is_no_reason_to_think_anything(cloud: Control, aws: AwsProvider) -> None:
    cloud.fail("RunInstances", "RequestLimitExceeded", count=1, status=503)
    with pytest.raises(Refused) as caught:
        aws.launch(at(aws).request(), 1)
    assert caught.value.kind == "throttled"
    assert aws.list_machines().machines == ()
    eventually(lambda: _bought(aws))


def _bought(aws: AwsProvider) -> bool:
    try:
        return len(aws.launch(at(aws).request(), 1)) == 1
    except Refused:
        return False


def test_machines_of_a_leg_stand_together(cloud: Control, aws: AwsProvider, owner: str) -> None:
    fast = way(instance_type="p4d.24xlarge")
    cloud.quota("L-417A185B", 1000)
    bought = aws.launch(at(aws, fast).request(nodes=2), 1)
    account = aws._account
    ((name, _),) = groups.owned(account, REGION, owner)
    assert name.startswith("tradewind-run-1-1-")
    assert not groups.remove(account, REGION, name)  # it is in use
    aws.terminate([m.machine_id for m in bought])
    eventually(lambda: groups.remove(account, REGION, name))
    assert groups.remove(account, REGION, name)  # as often as one likes


@pytest.mark.parametrize("kind", ["p4d.24xlarge", "p5.48xlarge", "p6-b300.48xlarge"])
@pytest.mark.parametrize("public", [True, False])
def test_interfaces_are_as_the_cards_have_them(
    cloud: Control, owner: str, kind: str, public: bool
) -> None:
    """The equipment knows which card takes what, and how many."""
    made = footprint(cloud)
    there = replace(made.regions[REGION], public=public)
    aws = open_aws(argument(cloud, replace(made, regions={REGION: there}), owner))
    cloud.quota("L-417A185B", 1000)
    ec2 = cloud.client("ec2", REGION)
    (it,) = ec2.describe_instance_type_offerings(
        LocationType="availability-zone-id",
        Filters=[{"Name": "instance-type", "Values": [kind]}],
    )["InstanceTypeOfferings"][:1]
    bought = aws.launch(at(aws, way(instance_type=kind, zone=it["Location"])).request(nodes=2), 1)
    assert len(bought) == 2


def test_what_is_reserved_is_used(cloud: Control, aws: AwsProvider) -> None:
    kept = way(market="reserved")
    with pytest.raises(Refused, match="no reservation of"):
        aws.launch(at(aws, kept).request(), 1)
    cloud.reservation(
        REGION,
        CapacityReservationId="cr-0123456789abcdef0",
        InstanceType=KIND,
        AvailabilityZoneId=ZONE,
        AvailabilityZone="us-east-1a",
        TotalInstanceCount=2,
        AvailableInstanceCount=2,
        State="active",
    )
    assert len(aws.launch(at(aws, kept).request(leg=2, nodes=2), 1)) == 2


def _reserve(cloud: Control, kind: str, name: str, **told: object) -> None:
    usual: dict[str, object] = {
        "CapacityReservationId": name,
        "InstanceType": kind,
        "AvailabilityZoneId": ZONE,
        "AvailableInstanceCount": 1,
        "State": "active",
        "InstancePlatform": "Linux/UNIX",
        "Tenancy": "default",
    }
    cloud.reservation(REGION, **(usual | told))


def test_a_reservation_must_be_for_such_machines(cloud: Control, aws: AwsProvider) -> None:
    kept = at(aws, way(instance_type="g5.2xlarge", market="reserved"))
    _reserve(cloud, "g5.2xlarge", "cr-1", InstancePlatform="Windows")
    _reserve(cloud, "g5.2xlarge", "cr-2", Tenancy="dedicated")
    with pytest.raises(Refused, match="no reservation of"):
        aws.launch(kept.request(), 1)
    arn = f"arn:aws:ec2:{REGION}:123456789012:placement-group/theirs"
    _reserve(cloud, "g5.2xlarge", "cr-3", PlacementGroupArn=arn)
    found = reservations.find(aws._account, kept.request())
    assert found == Reservation(reservation_id="cr-3", block=False, group="theirs")


def test_a_block_that_ends_too_soon_is_left_alone(cloud: Control, aws: AwsProvider) -> None:
    """EC2 takes its machines half an hour before its end."""
    kept = at(aws, way(instance_type="g5.4xlarge", market="reserved"))
    request = replace(kept.request(), hard_stop_s=2 * 3600)
    now = clock.now()

    def block(name: str, minutes: int) -> None:
        end = (now + timedelta(minutes=minutes)).isoformat()
        _reserve(cloud, "g5.4xlarge", name, ReservationType="capacity-block", EndDate=end)

    block("cr-1", 150)
    with pytest.raises(Refused, match=r"end too soon: .* for 1h 5[45]m at most, and 2h") as told:
        aws.launch(request, 1)
    assert told.value.kind == "no_capacity"
    block("cr-2", 160)
    found = reservations.find(aws._account, request)
    assert found == Reservation(reservation_id="cr-2", block=True)


def test_a_launch_waits_for_its_group(cloud: Control, aws: AwsProvider) -> None:
    """For a moment no launch knows a new one."""
    cloud.dials(group_lag_s=2)
    cloud.quota("L-417A185B", 1000)
    try:
        bought = aws.launch(at(aws, way(instance_type="p4d.24xlarge")).request(nodes=2), 1)
    finally:
        cloud.dials(group_lag_s=0)
    assert len(bought) == 2


def test_many_at_once_buy_what_each_asked_for(cloud: Control, aws: AwsProvider) -> None:
    with ThreadPoolExecutor(6) as pool:
        sold = list(pool.map(lambda leg: aws.launch(at(aws).request(leg=leg), 1), range(1, 7)))
    assert len({m.machine_id for each in sold for m in each}) == 6
