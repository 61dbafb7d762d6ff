"""Which image a machine starts from: NVIDIA's driver, PyTorch and EFA are in Amazon's own.

Their ids differ from region to region and change by the week; public parameters of SSM name the
newest. The first of a list that a region knows is taken. All are Ubuntu, so that what a machine
does at its start is the same on each.
"""

from __future__ import annotations

from msgspec import Struct

from tradewind.base.errors import InvalidValue
from tradewind.model.driven import is_old
from tradewind.providers import remembered
from tradewind.providers.aws.clients import Account
from tradewind.providers.aws.limits.zones import TypeFacts
from tradewind.providers.aws.machines import proven
from tradewind.providers.aws.troubles import explained
from tradewind.providers.base import Refused

_LEARNING = "/aws/service/deeplearning/ami/{arch}"
_UBUNTU = "/aws/service/canonical/ubuntu/server/24.04/stable/current/{debian}/hvm/ebs-gp3/ami-id"

PARAMETERS = {
    "gpu": (
        *(
            f"{_LEARNING}/oss-nvidia-driver-gpu-pytorch-{version}-ubuntu-24.04/latest/ami-id"
            for version in ("2.12", "2.10", "2.9", "2.8")
        ),
        f"{_LEARNING}/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
        f"{_LEARNING}/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id",
    ),
    "neuron": (
        "/aws/service/neuron/dlami/pytorch-2.9/ubuntu-24.04/latest/image_id",
        "/aws/service/neuron/dlami/multi-framework/ubuntu-24.04/latest/image_id",
        "/aws/service/neuron/dlami/base/ubuntu-24.04/latest/image_id",
    ),
    "cpu": (_UBUNTU,),
}
"""By what a type computes with, newest first."""

OWN_IMAGE = "tradewind setup aws --image ami-…, with one that can"

_DEBIAN = {"x86_64": "amd64", "arm64": "arm64"}


class Image(Struct, frozen=True, kw_only=True):
    id: str
    root_device: str
    """/dev/sda1, mostly: a larger disk must be asked for by this name."""
    root_gb: int
    """No disk may be smaller."""
    architecture: str
    name: str = ""
    parameter: str = ""
    """That of SSM that named it; "" where the user did."""


def parameters(architecture: str, accelerator: str = "gpu") -> list[str]:
    if architecture not in _DEBIAN or accelerator not in PARAMETERS:
        raise InvalidValue(f"there is no image for {accelerator} on {architecture}")
    return [
        name.format(arch=architecture, debian=_DEBIAN[architecture])
        for name in PARAMETERS[accelerator]
    ]


def undriven(kind: TypeFacts) -> str:
    """Why our images are of no use to a type, in words; "": they are."""
    if kind.neurons:
        # Neuron's own images have a PyTorch for each purpose, in places that change, and of late
        # none for training; and they left inf1 behind.
        return f"{kind.name} has no GPU, and we know no image with PyTorch for what it has"
    if not kind.gpus:
        return ""
    if kind.gpu_maker.upper() not in ("", "NVIDIA"):
        return f"{kind.name} has GPUs of {kind.gpu_maker}, and our images a driver for NVIDIA's"
    # Of g2, p2, g3 and p3. The images' notes name G4dn, G5, G6, P4, P5 and P6
    # (docs.aws.amazon.com/dlami). Newer GPUs are not held against a type whether the notes name
    # it or not: the driver (595 in October 2026) knows them.
    if is_old(kind.gpu):
        return f"{kind.name} has {kind.gpu}s, and the driver of our images begins with the T4"
    if kind.gpu_share < 1:
        return f"{kind.name} has a part of a {kind.gpu}, for which our images have no driver"
    return ""


def image(
    account: Account,
    region: str,
    architecture: str = "x86_64",
    wanted: str = "",
    *,
    owner: str = "",
    accelerator: str = "gpu",
) -> Image:
    """`wanted`: an ami-…, or the path of an SSM parameter that names one; "" for the usual ones.
    `owner`: the store that names it. `accelerator`: as TypeFacts has it."""

    def ask() -> Image:
        if wanted.startswith("ami-"):
            return _described(account, region, wanted, architecture, "", owner)
        if wanted and not wanted.startswith("/"):
            raise InvalidValue(
                f"{wanted!r} is no image: neither ami-… nor the path of an SSM parameter",
                hint="for example ami-0123456789abcdef0, or /aws/service/…/ami-id",
            )
        names = [wanted] if wanted else parameters(architecture, accelerator)
        for name in names:
            found = _parameter(account, region, name)
            if found:
                return _described(account, region, found, architecture, name)
        raise Refused(
            "not_found",
            f"{region} knows no image for {accelerator} on {architecture}: there is no parameter "
            + (names[0] if len(names) == 1 else f"{names[0]}, nor the {len(names) - 1} after it"),
            hint="name an image of this region: tradewind setup aws --image ami-…",
        )

    return remembered.one(account, ("image", region, architecture, wanted, accelerator), ask)


def _parameter(account: Account, region: str, name: str) -> str:
    """ "": there is none of this name."""
    try:
        with explained(f"asking SSM of {region} for {name}"):
            told = account.client("ssm", region).get_parameter(Name=name)
    except Refused as error:
        if error.kind == "not_found":
            return ""
        raise
    return str(told["Parameter"]["Value"]).strip()


def _described(
    account: Account, region: str, name: str, architecture: str, told_by: str, owner: str = ""
) -> Image:
    with explained(f"asking AWS about the image {name} in {region}"):
        images = account.client("ec2", region).describe_images(ImageIds=[name])["Images"]
    if not images:
        raise Refused(
            "not_found",
            f"there is no image {name} in {region}",
            hint="images belong to one region; an SSM parameter has one for each",
        )
    told = images[0]
    if told.get("State", "available") != "available":
        raise Refused("not_found", f"the image {name} of {region} is {told['State']}")
    if told.get("Architecture", architecture) != architecture:
        raise Refused(
            "not_allowed",
            f"the image {name} is for {told['Architecture']}, and the machines are {architecture}",
            hint="name an image for their architecture",
        )
    if not told_by:
        proven.check_image(account, told, owner)
    root = told.get("RootDeviceName", "/dev/sda1")
    sizes = [
        it.get("Ebs", {}).get("VolumeSize", 0)
        for it in told.get("BlockDeviceMappings", [])
        if it.get("DeviceName") == root
    ]
    return Image(
        id=name,
        root_device=root,
        root_gb=int(sizes[0]) if sizes else 0,
        architecture=architecture,
        name=told.get("Name", ""),
        parameter=told_by,
    )
