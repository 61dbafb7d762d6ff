"""Which image a machine starts from. moto has no parameters of Amazon's images: the desk has."""

from __future__ import annotations

import json

import pytest

from tests.providers.aws.cloud import Answer, Cloud, json_error, xml
from tradewind.base.errors import InvalidValue
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits import images
from tradewind.providers.base import Refused

HERE = "us-east-1"


def _registered(account: Account) -> str:
    return str(
        account.client("ec2", HERE).register_image(
            Name="ours",
            RootDeviceName="/dev/sda1",
            BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 45}}],
        )["ImageId"]
    )


def _known(cloud: Cloud, known: dict[str, str]) -> None:
    """As SSM answers, which has these parameters."""

    def answer(region: str, asked: dict[str, str]) -> Answer:
        if asked["Name"] not in known:
            return json_error("ParameterNotFound")
        return Answer(
            json.dumps({"Parameter": {"Name": asked["Name"], "Value": known[asked["Name"]]}})
        )

    cloud.on("GetParameter", answer)


def test_the_newest_that_a_region_knows(cloud: Cloud, account: Account) -> None:
    names = images.parameters("x86_64")
    assert "pytorch-2.12-ubuntu-24.04" in names[0]
    ours = _registered(account)
    _known(cloud, {names[2]: ours, names[3]: "ami-older"})
    found = images.image(account, HERE)
    assert (found.id, found.parameter, found.root_device) == (ours, names[2], "/dev/sda1")
    assert found.architecture == "x86_64"
    assert found.root_gb > 0
    before = len(cloud.asked)
    assert images.image(account, HERE) == found
    assert len(cloud.asked) == before


@pytest.mark.parametrize(
    ("architecture", "accelerator", "first"),
    [
        ("arm64", "gpu", "/aws/service/deeplearning/ami/arm64/oss-nvidia-driver-gpu-pytorch-2.12"),
        ("x86_64", "cpu", "/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm"),
        ("arm64", "cpu", "/aws/service/canonical/ubuntu/server/24.04/stable/current/arm64/hvm"),
        ("x86_64", "neuron", "/aws/service/neuron/dlami/pytorch-2.9/ubuntu-24.04/latest/image_id"),
    ],
)
def test_each_kind_of_machine_has_its_list(architecture: str, accelerator: str, first: str) -> None:
    assert images.parameters(architecture, accelerator)[0].startswith(first)


def test_what_the_user_wants(cloud: Cloud, account: Account) -> None:
    ours = _registered(account)
    assert images.image(account, HERE, wanted=ours).id == ours
    _known(cloud, {"/mine/image": ours})
    assert images.image(account, HERE, wanted="/mine/image").parameter == "/mine/image"
    with pytest.raises(Refused, match=r"no image for gpu on x86_64: .* parameter /other/image"):
        images.image(account, HERE, wanted="/other/image")
    with pytest.raises(InvalidValue, match="'ubuntu' is no image"):
        images.image(account, HERE, wanted="ubuntu")


def _told(**other: str) -> Answer:
    """moto's images have no architecture, and are always there."""
    ours = {"imageId": "ami-1", "imageState": "available", "architecture": "arm64"}
    ours["imageOwnerId"] = "123456789012"
    root = {"deviceName": "/dev/xvda", "ebs": {"volumeSize": 45}}
    more = {"deviceName": "/dev/sdb", "ebs": {"volumeSize": 500}}
    ours |= {"rootDeviceName": "/dev/xvda"} | other
    return xml("DescribeImages", imagesSet=[ours | {"blockDeviceMapping": [more, root]}])


def test_an_image_that_does_not_fit(cloud: Cloud, account: Account) -> None:
    with pytest.raises(Refused, match=r"InvalidAMIID.NotFound") as refused:
        images.image(account, HERE, wanted="ami-0123456789abcdef0")
    assert refused.value.kind == "not_found"
    cloud.on("DescribeImages", _told())
    with pytest.raises(Refused, match="is for arm64, and the machines are x86_64"):
        images.image(account, HERE, wanted="ami-1")
    cloud.on("DescribeImages", _told(imageState="deregistered"))
    with pytest.raises(Refused, match="ami-1 of us-east-1 is deregistered"):
        images.image(account, HERE, wanted="ami-1")
    cloud.on("DescribeImages", xml("DescribeImages", imagesSet=[]))
    with pytest.raises(Refused, match="there is no image ami-1 in us-east-1"):
        images.image(account, HERE, wanted="ami-1")


def test_the_root_device_and_its_size(cloud: Cloud, account: Account) -> None:
    cloud.on("DescribeImages", _told())
    found = images.image(account, HERE, "arm64", "ami-1")
    assert (found.root_device, found.root_gb) == ("/dev/xvda", 45)


def test_a_region_without_any(cloud: Cloud, account: Account) -> None:
    _known(cloud, {})
    with pytest.raises(Refused, match="nor the 5 after it") as refused:
        images.image(account, HERE)
    assert refused.value.kind == "not_found"
    assert "--image" in str(refused.value.hint)


def test_denied_is_not_the_same_as_none(cloud: Cloud, account: Account) -> None:
    cloud.on("GetParameter", json_error("AccessDeniedException", "not authorized"))
    with pytest.raises(Refused, match="AccessDeniedException") as refused:
        images.image(account, HERE)
    assert refused.value.kind == "not_allowed"
    assert cloud.actions().count("GetParameter") == 1
