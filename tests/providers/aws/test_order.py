"""What EC2 is asked for, and what a machine is told."""

from __future__ import annotations

import gzip
import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.lifecycle.builders import WAY
from tradewind.model.boot import Boot
from tradewind.model.run import Request, Way
from tradewind.providers.aws.facts import FACTS
from tradewind.providers.aws.footprint import Footprint, Network
from tradewind.providers.aws.limits.images import Image
from tradewind.providers.aws.limits.zones import TypeFacts
from tradewind.providers.aws.machines import order
from tradewind.providers.aws.machines.userdata import MOST_BYTES, script, user_data
from tradewind.providers.base import Refused
from tradewind.providers.boot.luggage import Luggage

ON = replace(
    WAY,
    provider="aws",
    region="us-east-1",
    zone="use1-az1",
    instance_type="p4d.24xlarge",
    market="on_demand",
    facts=FACTS,
)
PLAIN = TypeFacts(name="g5.xlarge", vcpus=4, memory_mib=16384, architecture="x86_64")
FAST = replace(PLAIN, name="p4d.24xlarge", efa=True, efa_cards=(0, 1, 2, 3), efa_first=True)
IMAGE = Image(id="ami-1", root_device="/dev/sda1", root_gb=35, architecture="x86_64")


def footprint(*, public: bool = True, **more: Any) -> Footprint:
    network = Network(
        vpc="vpc-1", security_group="sg-1", subnets={"use1-az1": "subnet-1"}, public=public
    )
    return Footprint(
        account="1",
        bucket="b",
        bucket_region="us-east-1",
        instance_profile="tradewind-x",
        regions={"us-east-1": network},
        **more,
    )


def request(way: Way = ON, nodes: int = 1) -> Request:
    return Request(
        launch_id="run-1-1", run_id="run-1", leg=1, way=replace(way, nodes=nodes), hard_stop_s=3600
    )


def asked(way: Way = ON, nodes: int = 1, kind: TypeFacts = PLAIN, **more: Any) -> dict[str, Any]:
    options = {"public": more.pop("public", True), "key_pair": more.pop("key_pair", "")}
    return order.parameters(
        request(way, nodes),
        "s3://b/team",
        footprint(**options),
        kind=kind,
        image=IMAGE,
        user_data=b"x",
        **more,
    )


def test_all_machines_of_a_leg_or_none_are_bought_once() -> None:
    made = asked(nodes=3)
    assert made["MinCount"] == made["MaxCount"] == 3
    assert made["ClientToken"] == asked(nodes=3)["ClientToken"]
    assert len(made["ClientToken"]) <= 64
    other = replace(request(), way=replace(ON, zone="use1-az2"))
    assert order.token(other, "s3://b") != order.token(request(), "s3://b")
    assert order.token(request(), "s3://c") != order.token(request(), "s3://b")
    again = replace(request(), launch_id="run-1-2")
    assert order.token(again, "s3://b") != order.token(request(), "s3://b")


def test_machines_are_closed_and_leave_nothing_behind() -> None:
    made = asked()
    assert made["MetadataOptions"] == {
        "HttpEndpoint": "enabled",
        "HttpTokens": "required",
        "HttpPutResponseHopLimit": 1,
    }
    assert made["InstanceInitiatedShutdownBehavior"] == "terminate"
    (disk,) = made["BlockDeviceMappings"]
    assert disk["Ebs"]["Encrypted"]
    assert disk["Ebs"]["DeleteOnTermination"]
    assert disk["Ebs"]["VolumeSize"] == 55
    assert asked(replace(ON, disk_gb=900))["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] == 900
    assert "KeyName" not in made
    assert asked(key_pair="mine")["KeyName"] == "mine"


@pytest.mark.parametrize("market", ["on_demand", "spot"])
def test_everything_is_tagged_when_it_is_made(market: str) -> None:
    made = asked(replace(ON, market=market))
    kinds = {each["ResourceType"] for each in made["TagSpecifications"]}
    wanted = {"instance", "volume", "network-interface"}
    assert kinds == wanted | ({"spot-instances-request"} if market == "spot" else set())
    for each in made["TagSpecifications"]:
        named = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
        assert named["tradewind:owner"] == "s3://b/team"
        assert (named["tradewind:run"], named["tradewind:leg"]) == ("run-1", "1")
        assert named["tradewind:launch"] == "run-1-1"
    assert ("InstanceMarketOptions" in made) == (market == "spot")


def test_machines_that_talk_fast_stand_together() -> None:
    assert "Placement" not in asked(nodes=1, kind=FAST)
    assert "Placement" not in asked(nodes=2, kind=PLAIN)
    made = asked(nodes=2, kind=FAST, public=False)
    assert made["Placement"]["GroupName"] == order.group_name(request(nodes=2), "s3://b/team")


def _layout(**more: Any) -> list[tuple[int, int, str]]:
    made = asked(nodes=2, **more)["NetworkInterfaces"]
    return [(it["NetworkCardIndex"], it["DeviceIndex"], it["InterfaceType"]) for it in made]


def test_each_card_has_an_interface_for_efa() -> None:
    assert _layout(kind=FAST, public=False) == [
        (0, 0, "interface"),
        (0, 1, "efa-only"),
        (1, 0, "efa-only"),
        (2, 0, "efa-only"),
        (3, 0, "efa-only"),
    ]
    # The first card of p6-b300 has no EFA.
    some = replace(FAST, efa_cards=tuple(range(1, 17)), efa_first=False)
    assert _layout(kind=some, public=False) == [
        (0, 0, "interface"),
        *((card, 0, "efa-only") for card in range(1, 17)),
    ]
    assert _layout(kind=replace(FAST, efa_cards=()), public=False) == [(0, 0, "efa")]
    assert _layout(kind=PLAIN, public=False) == [(0, 0, "interface")]


def test_with_a_public_address_there_is_one_interface() -> None:
    several = asked(nodes=2, kind=FAST, public=False)["NetworkInterfaces"]
    assert not any("AssociatePublicIpAddress" in each for each in several)
    (alone,) = asked(nodes=2, kind=FAST)["NetworkInterfaces"]
    assert (alone["InterfaceType"], alone["AssociatePublicIpAddress"]) == ("efa", True)
    assert _layout(kind=replace(FAST, efa_first=False)) == [(0, 0, "interface")]


@pytest.mark.parametrize("public", [True, False])
def test_machines_that_talk_are_behind_a_group_of_their_own(public: bool) -> None:
    def groups(**more: Any) -> set[str]:
        made = asked(public=public, kind=FAST, **more)["NetworkInterfaces"]
        return {group for each in made for group in each["Groups"]}

    assert groups() == {"sg-1"}
    assert groups(nodes=2, security_group="sg-2") == {"sg-2"}


def test_what_the_user_has_reserved_is_taken() -> None:
    kept = order.Reservation(reservation_id="cr-1", block=False)
    made = asked(replace(ON, market="reserved"), reservation=kept)
    target = made["CapacityReservationSpecification"]["CapacityReservationTarget"]
    assert target == {"CapacityReservationId": "cr-1"}
    assert "InstanceMarketOptions" not in made
    block = order.Reservation(reservation_id="cr-2", block=True)
    made = asked(replace(ON, market="reserved"), reservation=block)
    assert made["InstanceMarketOptions"] == {"MarketType": "capacity-block"}


def test_what_is_reserved_stands_where_it_was_reserved() -> None:
    """A group of another name does not match a reservation, and a block stands together anyway."""
    kept = order.Reservation(reservation_id="cr-1", block=False)
    within = replace(kept, group="theirs")
    block = replace(within, block=True)
    way = replace(ON, market="reserved")
    assert asked(way, 2, FAST, reservation=within)["Placement"] == {"GroupName": "theirs"}
    assert asked(way, 1, PLAIN, reservation=within)["Placement"] == {"GroupName": "theirs"}
    for each in (kept, block):
        assert "Placement" not in asked(way, 2, FAST, reservation=each)
        assert not order.wants_group(request(way, 2), FAST, each)
    assert not order.wants_group(request(way, 2), FAST, within)
    # By EFA they talk all the same.
    made = asked(way, 2, FAST, reservation=block, public=False)["NetworkInterfaces"]
    assert len(made) == 5


def test_a_zone_without_a_subnet_is_refused() -> None:
    with pytest.raises(Refused, match="no subnet for machines in use1-az9") as caught:
        asked(replace(ON, zone="use1-az9"))
    assert caught.value.kind == "not_found"


BOOT = Boot(
    store_url="s3://b/team",
    run_id="run-1",
    leg=1,
    rank=0,
    nodes=2,
    machine_id="",
    launch_id="run-1-1",
    hard_stop_s=3600,
    after=3,
    notice="aws",
)
LUGGAGE = Luggage(
    kit="https://b.s3.amazonaws.com/kits/1/kit.tar?X-Amz-Signature=ab&c='d'",
    sha256="0" * 64,
    tell=("https://b.s3.amazonaws.com/0?it's", "https://b.s3.amazonaws.com/1?it's"),
    environment={"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_S3": "http://10.0.0.1:8333"},
)


def test_what_a_machine_is_told_fits_and_is_a_script() -> None:
    """Links that temporary credentials sign carry a token of a kilobyte or two."""
    token = secrets.token_urlsafe(1500)  # the same in all of them; a signature is each one's own
    tell = tuple(f"{LUGGAGE.tell[0]}{token}{secrets.token_hex(32)}" for _ in range(8))
    long = replace(LUGGAGE, kit=LUGGAGE.kit + token + secrets.token_hex(32), tell=tell)
    assert len(user_data(BOOT, long)) < MOST_BYTES // 2
    text = gzip.decompress(user_data(BOOT, LUGGAGE)).decode()
    assert text == script(BOOT, LUGGAGE)
    assert text.startswith("#!/bin/bash\n")
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert done.stderr == ""
    assert "export AWS_REGION=eu-west-1\n" in text
    given = text.split("<<'@END@'\n")[1].split("\n@END@")[0]
    told = json.loads(given)
    assert told["kit"] == LUGGAGE.kit
    assert told["boot"]["run_id"] == "run-1"
    assert not {"machine_id", "rank", "host", "kit"} & set(told["boot"])


@pytest.mark.parametrize(("rank", "to"), [("0", "/0?it's"), ("1", "/1?it's"), ("3", "/1?it's")])
def test_each_rank_leaves_word_by_a_link_of_its_own(tmp_path: Path, rank: str, to: str) -> None:
    """The end of the script as a machine runs it, on which the kit could not be had."""
    text = script(BOOT, LUGGAGE)
    end = text[text.index('if [ "$code" != 0 ]') :].replace("sleep 1", "")
    (tmp_path / "rank").write_text(rank)
    (tmp_path / "first.log").write_text("the kit: HTTP Error 404\n")
    fakes = 'code=1; shutdown() { :; }; curl() { echo "${@: -1}" > sent; cp last.log body; }\n'
    subprocess.run(["bash", "-c", fakes + end], cwd=tmp_path, check=True)
    assert (tmp_path / "sent").read_text().endswith(f"{to}\n")
    assert "404" in (tmp_path / "body").read_text()


def test_what_does_not_fit_is_refused() -> None:
    import random

    chosen = random.Random(1)
    noise = "".join(chosen.choice("0123456789abcdefghijklmnop") for _ in range(30_000))
    with pytest.raises(Refused, match="this cloud takes 16,384"):
        user_data(BOOT, replace(LUGGAGE, kit=noise))
