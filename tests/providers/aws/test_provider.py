"""EC2 by real boto3, on equipment that has its tokens, limits, lags and lost answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.cloud.faces.ec2.control import Control, running
from tests.eventually import eventually
from tests.lifecycle.builders import SPEC
from tests.providers.aws.account_server import Cut, Watched
from tests.providers.aws.machines import (
    KIND,
    REGION,
    ZONE,
    argument,
    footprint,
    open_aws,
    packed,
    way,
)
from tests.providers.conformance import Conformance, Place
from tradewind.base import clock, steps
from tradewind.base.errors import NoAccess
from tradewind.controller import drive
from tradewind.controller.loop import Loop
from tradewind.model.run import Way
from tradewind.providers.aws import provider
from tradewind.providers.aws.footprint import LAUNCH, OWNER, RUN, tags_of
from tradewind.providers.aws.machines import firewall, groups, order, proven, reservations
from tradewind.providers.aws.machines.order import Reservation
from tradewind.providers.aws.provider import AwsProvider
from tradewind.providers.base import OutcomeUnknown, Refused
from tradewind.store.memory import MemoryStore

pytestmark = pytest.mark.slow


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
    return open_aws(argument(cloud, footprint(cloud, store_url=owner), owner))


class TestAws(Conformance):
    safety = "token"

    @pytest.fixture
    def place(self, cloud: Control, aws: AwsProvider, owner: str) -> Place:
        made = footprint(cloud, store_url=owner)
        return Place(
            aws,
            way(),
            others=open_aws(
                argument(cloud, footprint(cloud, store_url=f"{owner}-2"), f"{owner}-2")
            ),
            again=lambda: open_aws(argument(cloud, made, owner)),
            client=("tests.providers.aws.machines:open_aws", argument(cloud, made, owner)),
            crashes=6,
            room=lambda more: cloud.capacity(more, zone=ZONE, kind=KIND),
            busy=lambda: cloud.fail("RunInstances", "RequestLimitExceeded", status=503),
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
    aws = open_aws(argument(cloud, footprint(cloud, store_url=owner), owner))
    with pytest.raises(Refused, match="has V100s, and the driver of our images") as caught:
        aws.launch(at(aws, old).request(), 1)
    assert caught.value.kind == "not_allowed"
    assert "--image" in str(caught.value.hint)
    assert not aws.list_machines().machines


def test_all_regions_are_listed_at_once(cloud: Control, owner: str) -> None:
    made = footprint(cloud, REGION, "eu-west-1", store_url=owner)
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


def test_a_profile_that_is_gone_is_told_from_a_new_one(
    cloud: Control, aws: AwsProvider, owner: str
) -> None:
    """EC2 says the same of both; only the new one is worth waiting for."""
    other = f"{owner}-2"
    without, iam = footprint(cloud, store_url=other), cloud.client("iam")
    named = {"InstanceProfileName": without.instance_profile}
    iam.remove_role_from_instance_profile(RoleName=without.instance_profile, **named)
    iam.delete_instance_profile(**named)
    gone = open_aws(argument(cloud, without, other))
    cloud.dials(iam_lag_s=1e12)
    try:
        with pytest.raises(Refused) as told:
            aws.launch(at(aws).request(), 1)
        assert told.value.kind == "throttled"
        with pytest.raises(Refused, match="is not there any more") as told:
            gone.launch(at(gone).request(), 1)
        assert told.value.kind == "not_allowed"
        assert "tradewind setup aws" in (told.value.hint or "")
    finally:
        cloud.dials(iam_lag_s=0)


@pytest.mark.parametrize("what", ["profile", "group", "vpc", "subnet", "account"])
def test_what_the_store_says_of_the_account_must_be_so(
    cloud: Control, owner: str, what: str
) -> None:
    """Whoever may write the store may write that down, and an administrator may make the next
    pass: nothing of it becomes a parameter that setup has not made."""
    made, ec2 = footprint(cloud, store_url=owner), cloud.client("ec2", REGION)
    own = made.regions[REGION]
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    told = {"GroupName": "open", "Description": "x", "VpcId": vpc}
    group = ec2.create_security_group(**told)["GroupId"]
    ask = {"VpcId": vpc, "CidrBlock": "10.9.0.0/24", "AvailabilityZone": f"{REGION}a"}
    subnet = ec2.create_subnet(**ask)["Subnet"]["SubnetId"]
    networks = {
        "group": replace(own, security_group=group),
        "vpc": replace(own, vpc=vpc),
        "subnet": replace(own, subnets=own.subnets | {ZONE: subnet}),
    }
    planted = {
        "profile": replace(made, instance_profile="admin"),
        "account": replace(made, account="210987654321"),
    } | {name: replace(made, regions={REGION: each}) for name, each in networks.items()}
    aws = open_aws(argument(cloud, planted[what], owner))
    with pytest.raises((Refused, NoAccess)) as refused:
        aws.launch(at(aws).request(), 1)
    assert "setup aws" in str(refused.value) or what == "account"
    assert not open_aws(argument(cloud, made, owner)).list_machines().machines


@pytest.mark.parametrize(
    ("told", "own"),
    [
        ({"OwnerId": "123456789012"}, True),
        ({"OwnerId": "137112412989", "ImageOwnerAlias": "amazon"}, True),
        ({"OwnerId": proven.OWNERS[0]}, True),
        ({"OwnerId": "666666666666"}, False),
        ({}, False),
    ],
)
def test_an_image_that_the_store_names_is_of_someone_known(
    cloud: Control, aws: AwsProvider, told: dict[str, str], own: bool
) -> None:
    if own:
        proven.check_image(aws._account, told, "s3://b")
        return
    with pytest.raises(Refused, match="belongs to the account"):
        proven.check_image(aws._account, told, "s3://b")


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
    other = open_aws(argument(cloud, footprint(cloud, store_url=owner), owner))
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


FAST = "p4d.24xlarge"


@pytest.fixture
def plenty(cloud: Control) -> Control:
    cloud.quota("L-417A185B", 10_000)
    return cloud


def _behind(aws: AwsProvider, launch_id: str) -> list[dict[str, Any]]:
    """The security groups of a launch's machines."""
    ec2 = aws._account.client("ec2", REGION)
    tags = {OWNER: aws._owner, LAUNCH: launch_id}
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    told = ec2.describe_instances(Filters=filters)["Reservations"]
    cards = [c for r in told for i in r["Instances"] for c in i["NetworkInterfaces"]]
    ids = sorted({group["GroupId"] for card in cards for group in card["Groups"]})
    return list(ec2.describe_security_groups(GroupIds=ids)["SecurityGroups"])


def _pairs(group: dict[str, Any], key: str) -> list[tuple[str, str]]:
    return [
        (rule["IpProtocol"], pair["GroupId"])
        for rule in group[key]
        for pair in rule["UserIdGroupPairs"]
    ]


def _left(aws: AwsProvider) -> list[str]:
    """Of legs, besides their machines."""
    return [left.kind for left in aws.leftovers()]


def test_machines_of_a_leg_admit_each_other_and_nobody_else(
    cloud: Control, aws: AwsProvider, owner: str
) -> None:
    for leg in (1, 2):
        aws.launch(at(aws).request(leg=leg, nodes=2), 1)
    aws.launch(at(aws).request(leg=3), 1)
    (one,), (two,), (alone,) = (_behind(aws, f"run-1-{leg}") for leg in (1, 2, 3))
    assert len({one["GroupId"], two["GroupId"], alone["GroupId"]}) == 3
    for group in (one, two):
        itself = [("-1", group["GroupId"])]
        assert _pairs(group, "IpPermissions") == _pairs(group, "IpPermissionsEgress") == itself
        assert [rule["IpRanges"] for rule in group["IpPermissions"]] == [[]]
        tags = tags_of(group["Tags"])
        assert (tags[OWNER], tags[RUN]) == (owner, "run-1")
    assert alone["GroupId"] == footprint(cloud, store_url=owner).regions[REGION].security_group
    assert alone["IpPermissions"] == []


def test_groups_go_when_machines_are_gone(plenty: Control, aws: AwsProvider, owner: str) -> None:
    bought = aws.launch(at(aws, way(instance_type=FAST)).request(nodes=2), 1)
    aws.launch(at(aws).request(leg=2, nodes=2), 1)
    aws.list_machines()
    aws.tidy()
    assert len(list(firewall.owned(aws._account, REGION, owner))) == 2  # both are in use
    aws.terminate([machine.machine_id for machine in bought])
    eventually(lambda: any(m.ended_s for m in aws.list_machines().machines))
    assert _left(aws) == ["placement group", "security group"]
    aws.tidy()
    assert _left(aws) == []
    ((_, tags),) = firewall.owned(aws._account, REGION, owner)
    assert tags[LAUNCH] == "run-1-2"
    asked = len(plenty.calls("DescribeSecurityGroups"))
    aws.tidy()  # nothing is looked for that is known to be gone
    assert len(plenty.calls("DescribeSecurityGroups")) == asked


def test_a_pass_tidies_up(cloud: Control, aws: AwsProvider, owner: str, tmp_path: Path) -> None:
    bought = aws.launch(at(aws).request(nodes=2), 1)
    aws.terminate([machine.machine_id for machine in bought])
    eventually(lambda: all(m.ended_s for m in aws.list_machines().machines))
    assert _left(aws) == ["security group"]
    Loop(MemoryStore(), {"aws": aws}, tmp_path).tick()
    assert _left(aws) == []


def test_a_swept_group_may_be_gone_or_in_use(cloud: Control, aws: AwsProvider, owner: str) -> None:
    aws.launch(at(aws).request(nodes=2), 1)
    ((group, _),) = firewall.owned(aws._account, REGION, owner)
    assert not firewall.remove(aws._account, REGION, group)
    aws.terminate([machine.machine_id for machine in aws.list_machines().machines])
    eventually(lambda: _left(aws))
    (left,) = aws.leftovers()
    assert (left.kind, left.name, left.run_id) == ("security group", f"{REGION}/{group}", "run-1")
    assert aws.remove(left)
    assert aws.remove(left)  # as often as one likes


def test_a_refused_launch_leaves_no_group(plenty: Control, aws: AwsProvider, owner: str) -> None:
    plenty.capacity(1, zone=ZONE, kind=FAST)
    with pytest.raises(Refused, match="InsufficientInstanceCapacity"):
        aws.launch(at(aws, way(instance_type=FAST)).request(nodes=2), 1)
    plenty.capacity(None, zone=ZONE, kind=FAST)
    assert plenty.calls("CreateSecurityGroup")
    assert _left(aws) == []


def test_cut_off_after_any_change_a_launch_is_made_once(
    plenty: Control, cloud: Control, owner: str
) -> None:
    """Whoever comes next finds the group, and its rules, and the machines."""
    made, account = footprint(cloud, store_url=owner), Watched()
    for leg in range(1, 10):
        request = at(AwsProvider(account, made, owner, packed), way(instance_type=FAST)).request(
            leg=leg, nodes=2
        )
        cut = AwsProvider(account.again(cut_after=leg), made, owner, packed)
        with suppress(Cut):
            cut.launch(request, 1)
            break
        after = account.changed[-1]
        later = AwsProvider(account.again(), made, owner, packed)
        assert len(later.launch(request, 1)) == 2, after
        (group,) = _behind(later, request.launch_id)
        itself = [("-1", group["GroupId"])]
        assert _pairs(group, "IpPermissions") == _pairs(group, "IpPermissionsEgress") == itself
        groups_ = [tags[LAUNCH] for _, tags in firewall.owned(account, REGION, owner)]
        assert groups_.count(request.launch_id) == 1, after
    assert leg == 6  # a security group, two rules, a placement group, and the machines


@pytest.mark.parametrize(
    "action",
    ["CreateSecurityGroup", "AuthorizeSecurityGroupIngress", "AuthorizeSecurityGroupEgress"],
)
def test_a_lost_answer_about_a_group(cloud: Control, aws: AwsProvider, action: str) -> None:
    cloud.lose(action, count=1)  # boto3 asks again, and is told that it is there
    assert len(aws.launch(at(aws).request(nodes=2), 1)) == 2
    cloud.lose(action, count=4)  # and at last gives up: no machine was asked for
    with pytest.raises(Refused) as caught:
        aws.launch(at(aws).request(leg=2, nodes=2), 1)
    assert caught.value.kind == "throttled"
    assert len(aws.launch(at(aws).request(leg=2, nodes=2), 1)) == 2
    assert len(_behind(aws, "run-1-2")) == 1


def test_a_launch_waits_for_its_security_group(
    cloud: Control, aws: AwsProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a moment not all of EC2 knows a new one."""
    monkeypatch.setattr(firewall, "_PAUSE_S", 0.01)
    cloud.fail("AuthorizeSecurityGroupIngress", "InvalidGroup.NotFound", count=3)
    assert len(aws.launch(at(aws).request(nodes=2), 1)) == 2
    cloud.fail("RunInstances", "InvalidGroup.NotFound", count=1)
    with pytest.raises(Refused) as caught:
        aws.launch(at(aws).request(leg=2, nodes=2), 1)
    assert caught.value.kind == "throttled"
    cloud.fail("RunInstances", "InvalidGroup.NotFound", count=1)
    with pytest.raises(Refused, match=r"InvalidGroup\.NotFound") as caught:
        aws.launch(at(aws).request(leg=3), 1)
    assert caught.value.kind == "not_found"  # setup's is gone
    assert "setup aws" in str(caught.value.hint)


def test_a_group_of_that_name_that_is_not_ours_is_not_used(
    cloud: Control, aws: AwsProvider, owner: str
) -> None:
    request = at(aws).request(nodes=2)
    ec2, vpc = cloud.client("ec2", REGION), footprint(cloud, store_url=owner).regions[REGION].vpc
    name = order.group_name(request, owner)
    theirs = ec2.create_security_group(GroupName=name, Description="x", VpcId=vpc)["GroupId"]
    with pytest.raises(Refused, match=f"{theirs} has the name {name}, and is not ours") as caught:
        aws.launch(request, 1)
    assert caught.value.kind == "not_allowed"
    assert ec2.describe_security_groups(GroupIds=[theirs])["SecurityGroups"]


@pytest.mark.parametrize("kind", ["p4d.24xlarge", "p5.48xlarge", "p6-b300.48xlarge"])
@pytest.mark.parametrize("public", [True, False])
def test_interfaces_are_as_the_cards_have_them(
    cloud: Control, owner: str, kind: str, public: bool
) -> None:
    """The equipment knows which card takes what, and how many."""
    made = footprint(cloud, store_url=owner)
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


# -- prices ------------------------------------------------------------------------------------


def test_spot_costs_what_ec2_tells_now(cloud: Control, aws: AwsProvider) -> None:
    names = {zone: name for zone, name in cloud.zone_names().items() if zone.startswith("use1")}
    spot = way(market="spot", price=400_000, disk_price=10_000)
    other = replace(spot, zone="use1-az2")
    cloud.spot_price(KIND, names[ZONE], 1.5, at=cloud.now() - 7200)
    cloud.spot_price(KIND, names["use1-az2"], 0.3, at=cloud.now() - 7200)
    abroad = replace(spot, region="eu-west-1", zone="euw1-az1")  # where nothing is set up
    assert aws.prices([spot, other, way(), abroad]) == {spot.what: 1_500_000, other.what: 300_000}
    (bought,) = aws.launch(at(aws, other).request(), 1)
    (listed,) = aws.list_machines().machines
    assert listed.machine_id == bought.machine_id
    assert listed.ended_s is None
    assert listed.prices == ((listed.launched_s, 300_000),)


def test_a_launch_compares_prices_of_now(
    cloud: Control, aws: AwsProvider, owner: str, tmp_path: Path
) -> None:
    """What was cheapest when the run was submitted is not bought when another zone is cheaper."""
    names = cloud.zone_names()
    planned = way(market="spot", price=300_000)
    other = replace(planned, zone="use1-az2", price=400_000)
    cloud.spot_price(KIND, names[ZONE], 0.9, at=cloud.now() - 7200)
    cloud.spot_price(KIND, names["use1-az2"], 0.4, at=cloud.now() - 7200)
    store = MemoryStore()
    loop = Loop(store, {"aws": aws}, tmp_path)
    run_id = "now-01a1f4d3e687-497f8a"
    spec = replace(SPEC, ways=(planned, other), deadline_s=None, budget=None)
    steps.run(loop.controller.submit(run_id, spec), drive.performer(store, {"aws": aws}))
    loop.tick()
    (listed,) = [m for m in aws.list_machines().machines if m.run_id == run_id]
    state = loop.controller.memory.runs[run_id].state
    (request,) = state.requests.values()
    assert (request.way.zone, request.way.price) == ("use1-az2", 400_000)
    assert listed.prices == ((listed.launched_s, 400_000),)
