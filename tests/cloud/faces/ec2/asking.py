"""Short words for what tests of the equipment ask of it again and again."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.cloud.faces.ec2.control import Control

IMAGE, KIND = "ami-0d1000000000022ba", "g5.xlarge"  # of 4 vCPUs


def launch(cloud: Control, token: str = "", *, most: int = 1, least: int = 0, **more: Any) -> Any:
    attempts = more.pop("attempts", 1)
    if more.pop("spot", False):
        more["InstanceMarketOptions"] = {"MarketType": "spot"}
    if token:
        more["ClientToken"] = token
    asked = {"ImageId": IMAGE, "InstanceType": KIND, "MaxCount": most, "MinCount": least or most}
    return cloud.client("ec2", attempts=attempts).run_instances(**{**asked, **more})


def ids(told: Any) -> list[str]:
    return [each["InstanceId"] for each in told["Instances"]]


def refused(call: Any, *args: Any, **more: Any) -> tuple[str, int]:
    with pytest.raises(ClientError) as error:
        call(*args, **more)
    told = error.value.response
    return told["Error"]["Code"], told["ResponseMetadata"]["HTTPStatusCode"]


def listed(cloud: Control) -> list[str]:
    told = cloud.client("ec2").describe_instances(
        Filters=[{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    )
    return [each["InstanceId"] for some in told["Reservations"] for each in some["Instances"]]
